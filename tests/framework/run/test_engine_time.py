from __future__ import annotations

import time
from pathlib import Path

import pytest

from framework.manifest.load import load_manifest
from framework.run.engine_time import EngineTime
from framework.run.in_process import InProcessRunner
from framework.run.subprocess_runner import SubprocessRunner
from framework.run.task import Task
from framework.workspace import Workspace
from tests.framework.toy_adapter import ToyEngine
from tests.framework.toy_root import ADAPTER, make_toy_root


def counted(*spans: tuple[float, float]) -> EngineTime:
    engine_time = EngineTime()
    engine_time.add(spans, after=0.0)
    return engine_time


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0.0),
        ([(1.0, 2.0), (3.0, 5.0)], 3.0),
        ([(3.0, 5.0), (1.0, 4.0)], 4.0),  # two engines at once are one wait
        ([(1.0, 9.0), (2.0, 3.0)], 8.0),
        ([(0.0, 1.0), (9.0, 20.0)], 1.5),  # what lies outside is not of this run
        ([(4.0, 3.0)], 0.0),
    ],
)
def test_the_time_of_engines_is_counted_once_and_within_the_run(
    spans: list[tuple[float, float]],
    seconds: float,
) -> None:
    assert counted(*spans).seconds(0.5, 10.0) == seconds


def test_what_a_process_tells_cannot_lie_before_its_start_or_in_the_future() -> None:
    engine_time = EngineTime()
    now = time.monotonic()
    engine_time.add([(now - 100.0, now + 100.0)], after=now - 1.0)
    assert 1.0 <= engine_time.seconds(now - 50.0, now + 50.0) < 50.0


def test_an_engine_that_raises_is_counted_too() -> None:
    engine_time = EngineTime()
    with pytest.raises(RuntimeError), engine_time.working():
        raise RuntimeError
    assert len(engine_time.take()) == 1
    assert engine_time.take() == []


@pytest.mark.parametrize("fault", ["none", "crash", "die", "hang"])
def test_an_engine_s_time_is_known_however_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setenv("TOY_SECONDS", "0.2")
    toy = make_toy_root(tmp_path / "root")
    path = toy.write("a", engine=f"fault: {fault}")
    task = Task(load_manifest(path, fixtures_root=toy.path / "fixtures"), toy.path / "fixtures/models/toy", "cpu")
    workspace = Workspace(toy.path, ADAPTER, ("TOY_*",))
    engine_time = EngineTime()
    began = time.monotonic()
    runner = SubprocessRunner(workspace, engine_time=engine_time)
    result = runner.run(task, time_limit_s=0.5 if fault == "hang" else 30.0)
    runner.close()
    ended = time.monotonic()
    assert (result.record is not None) is (fault == "none")
    seconds = engine_time.seconds(began, ended)
    assert {"none": 0.2, "hang": 0.5}.get(fault, 0.0) < seconds < ended - began


def test_an_engine_in_this_process_is_counted(tmp_path: Path) -> None:
    toy = make_toy_root(tmp_path / "root")
    path = toy.write("a")
    task = Task(load_manifest(path, fixtures_root=toy.path / "fixtures"), toy.path / "fixtures/models/toy", "cpu")
    engine_time = EngineTime()
    assert InProcessRunner(ToyEngine(), engine_time).run(task, time_limit_s=1.0).record is not None
    assert len(engine_time.take()) == 1
