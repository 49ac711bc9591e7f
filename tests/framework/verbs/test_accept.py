from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from framework.golden.store import read_golden
from framework.regenerate.apply import apply_changes
from tests.framework.regenerate.proven import ORIGIN, falsify, keep, plan
from tests.framework.toy_root import ToyRoot, make_toy_root

REASON = ("--reason", "reviewed on a Monday")


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("a", prompts="hello, world")
    root.write("b", prompts="other")
    return root


def pending(toy: ToyRoot) -> list[str]:
    folder = toy.path / ".golden" / "candidates"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_what_a_runner_proved_is_brought_in_elsewhere(toy: ToyRoot, tmp_path: Path) -> None:
    out = tmp_path / "artifact"
    assert toy.golden("regen", "--reason", "new model", "--out", str(out), CI="true").returncode == 0
    elsewhere = toy.copy(tmp_path / "checkout")
    code, document = elsewhere.json("accept", str(out), *REASON, "--yes")
    assert code == 0
    assert (document["schema"], document["verdict"], document["exit_code"]) == ("golden.accept/1", "PASS", 0)
    assert document["written"] == [str(elsewhere.golden_path(name)) for name in ("a", "b")]
    assert [entry["change"] for entry in document["fixtures"]] == ["new", "new"]
    origin = read_golden(elsewhere.golden_path("a")).document["provenance"]
    assert (origin["reason"], origin["accepted"]["reason"]) == ("new model", REASON[1])
    assert elsewhere.golden("run").returncode == 0
    assert elsewhere.golden("check").returncode == 0


def test_pending_candidates_are_accepted_and_leave_their_folder(toy: ToyRoot) -> None:
    keep(toy)
    done = toy.golden("accept", *REASON, "--yes")
    assert done.returncode == 0
    assert "a [cpu]: new, after 8 runs" in done.stdout
    assert "reason" in done.stdout.splitlines()[-1]
    assert pending(toy) == []
    assert toy.golden("accept", *REASON, "--yes").returncode == 13


def test_one_refused_candidate_stops_all_and_nothing_is_lost(toy: ToyRoot) -> None:
    first, second = keep(toy)
    falsify(second, lambda document: document["provenance"]["proof"].update(runs=1))
    code, document = toy.json("accept", *REASON, "--yes")
    assert (code, document["verdict"], document["written"]) == (12, "FAIL", [])
    assert {entry["fixture"]: entry["change"] for entry in document["fixtures"]} == {"a": "new", "b": "refused"}
    assert "at least 3" in document["fixtures"][1]["problems"][0]
    assert list((toy.path / "goldens").iterdir()) == []
    assert first.is_file()
    assert toy.golden("accept", *REASON, "--yes", "--fixture", "a").returncode == 0
    assert pending(toy) == ["b", "b/cpu.json"]


def test_only_a_class_that_was_named_may_move(toy: ToyRoot) -> None:
    toy.regen()
    toy.set_default_mode("legacy")
    assert toy.golden("regen", "--reason", "legacy is the default").returncode == 2
    code, document = toy.json("accept", *REASON, "--yes", "--only", "tokens")
    assert code == 1
    assert "COUNTER moved too" in document["fixtures"][0]["problems"][0]
    assert toy.golden("accept", *REASON, "--yes", "--only", "tokens,counters").returncode == 0
    assert toy.golden("run").returncode == 0
    stored = read_golden(toy.golden_path(document["fixtures"][0]["fixture"])).document["provenance"]["accepted"]
    assert stored["only"] == ["COUNTER", "TOKEN"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--reason", " "), 2, "--reason is empty"),
        ((*REASON, "--only", "countrs"), 2, 'Did you mean "counter"?'),
        (("nowhere", *REASON), 2, "nowhere: no such folder"),
        (("goldens", *REASON), 2, "these are goldens"),
        ((*REASON, "--fixture", "c"), 13, "no candidate matches 'c'"),
        (("fixtures/models", *REASON), 12, "golden unreadable"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(
    toy: ToyRoot, arguments: tuple[str, ...], code: int, words: str
) -> None:
    keep(toy)
    found, document = toy.json("accept", *arguments, "--yes")
    assert found == code
    assert words in str(document)
    assert list((toy.path / "goldens").iterdir()) == []


def test_no_golden_is_accepted_under_ci_or_unasked(toy: ToyRoot) -> None:
    keep(toy)
    done = toy.golden("accept", *REASON, "--yes", CI="true")
    assert (done.returncode, "CI is set" in done.stderr) == (2, True)
    done = toy.golden("accept", *REASON, stdin="y\n")
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
    assert list((toy.path / "goldens").iterdir()) == []
    assert len(pending(toy)) == 4


@pytest.mark.parametrize(("answer", "written"), [("y", True), ("n", False)])
def test_a_person_is_asked_after_having_seen_the_plan(toy: ToyRoot, answer: str, written: bool) -> None:
    keep(toy)
    controller, terminal = os.openpty()
    os.write(controller, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, "-m", "framework", "accept", *REASON],
        cwd=toy.path,
        env=toy.environment(),
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(controller)
    os.close(terminal)
    assert done.returncode == 0
    assert "a [cpu]: new" in done.stdout
    assert "write 2 golden(s)? [y/N]" in done.stderr
    assert toy.golden_path("a").exists() is written
    assert bool(pending(toy)) is not written


def test_a_second_checkout_that_changed_the_golden_is_not_overrun(toy: ToyRoot) -> None:
    toy.regen()
    toy.set_default_mode("legacy")
    toy.golden("regen", "--reason", "legacy", "--out", "out")
    falsify(toy.golden_path("a"), lambda document: document["counters"].update(step_count=99))
    code, document = toy.json("accept", "out", *REASON, "--yes")
    assert code == 12
    assert "STALE_REGEN" in document["fixtures"][0]["problems"][0]
    assert read_golden(toy.golden_path("a")).document["counters"]["step_count"] == 99


KILLED_AT = """
import os, pathlib, signal, sys
from framework.cli import main
replace, left = pathlib.Path.replace, [int(sys.argv.pop(1))]
def kill_before(path, target):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return replace(path, target)
pathlib.Path.replace = kill_before
main()
"""
"""Runs `golden`, and is killed before the given rename of a finished file."""


def _moved(document: dict[str, Any]) -> None:
    document["provenance"]["previous_seal"] = document["seal"]
    document["counters"]["step_count"] = 99


class Prepared:
    """Twelve goldens, and a candidate with other counters for each of them."""

    def __init__(self, toy: ToyRoot) -> None:
        for number in range(10):
            toy.write(f"many/{number}", prompts=f"number {number}")
        apply_changes(plan(toy), state_folder=toy.path / ".golden", origin=ORIGIN)
        shutil.copytree(toy.path / "goldens", toy.path / "out")
        for path in (toy.path / "out").rglob("cpu.json"):
            falsify(path, _moved)
        self.toy = toy
        self.paths = sorted((toy.path / "goldens").rglob("cpu.json"))
        self.old = {path: path.read_bytes() for path in self.paths}
        assert len(self.paths) == 12

    def restore(self) -> None:
        for path, data in self.old.items():
            path.write_bytes(data)

    def new_ones(self) -> int:
        """Count the goldens that are the new ones; every other one must be the old one, byte for byte."""
        new = [read_golden(path) for path in self.paths if path.read_bytes() != self.old[path]]
        assert all(golden.document["counters"]["step_count"] == 99 for golden in new)
        return len(new)

    def go_on(self) -> None:
        done = self.toy.golden("accept", "out", "--yes", *REASON)
        assert done.returncode == 0, done.stderr
        assert self.new_ones() == len(self.paths)
        assert [path.name for path in self.paths[0].parent.iterdir()] == ["cpu.json"]
        assert self.toy.golden("check").returncode == 0


def test_killed_between_two_goldens_each_is_the_old_one_or_the_new_one(toy: ToyRoot) -> None:
    prepared = Prepared(toy)
    for renames in (0, 1, 7, 11):
        prepared.restore()
        command = [sys.executable, "-c", KILLED_AT, str(renames), "accept", "out", "--yes", *REASON]
        done = subprocess.run(
            command, cwd=toy.path, env=toy.environment(), capture_output=True, timeout=60, check=False
        )
        assert done.returncode == -signal.SIGKILL
        assert prepared.new_ones() == renames
    prepared.go_on()


def test_killed_at_random_moments_each_is_the_old_one_or_the_new_one(toy: ToyRoot) -> None:
    prepared = Prepared(toy)
    command = [sys.executable, "-m", "framework", "accept", "out", "--yes", *REASON]
    moment = random.Random(7)  # noqa: S311 - moments, not secrets
    for _ in range(6):
        prepared.restore()
        with subprocess.Popen(command, cwd=toy.path, env=toy.environment(), stdout=-3, stderr=-3) as process:
            time.sleep(moment.uniform(0.15, 0.6))
            process.send_signal(signal.SIGKILL)
        prepared.new_ones()
    prepared.go_on()


def test_goldens_that_cannot_be_written_lose_nothing(toy: ToyRoot) -> None:
    keep(toy)
    toy.golden_path("b").mkdir(parents=True)
    code, document = toy.json("accept", *REASON, "--yes")
    assert code == 12
    assert "b/cpu.json" in str(document)
    assert not toy.golden_path("a").exists()
    assert len(pending(toy)) == 4
