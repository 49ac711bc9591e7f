from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from framework.report.timing import Timing, process_began


def test_the_share_of_the_framework_is_what_no_engine_took() -> None:
    timing = Timing(wall=10.0, engine=9.6)
    assert timing.in_words() == "The framework around the engine took 0.4 s of 10.0 s (4%)."
    assert timing.as_json() == {
        "wall_seconds": 10.0,
        "engine_seconds": 9.6,
        "framework_seconds": 0.4,
        "framework_share": 0.04,
    }


def test_a_clock_that_is_coarse_gives_no_negative_share() -> None:
    assert Timing(wall=0.0, engine=0.1).share == 0.0
    assert Timing(wall=1.0, engine=1.1).framework == 0.0


def test_a_process_began_before_now_and_after_its_parent() -> None:
    began = process_began()
    script = "from framework.report.timing import process_began; import time; print(process_began(), time.monotonic())"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    child_began, child_now = map(float, child.stdout.split())
    assert began <= child_began <= child_now <= time.monotonic()


def test_where_the_system_does_not_tell_it_began_just_now(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)
    before = time.monotonic()
    assert process_began() >= before
