from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.framework.toy_root import ADAPTER, CONFIGURATION, ToyRoot, make_toy_root

FLAKY = """\
import os
from toy_adapter import ToyEngine

class FlakyEngine(ToyEngine):
    def run(self, fixture, **named):
        record = super().run(fixture, **named)
        with open("runs", "a") as runs:
            runs.write("x")
        if os.environ.get("TOY_FLAKY") == str(named["overrides"].get("num_threads")):
            record["requests"]["1"]["generated_tokens"][2] += 1
        return record
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("soak"))
    (root.path / "flaky_adapter.py").write_text(FLAKY)
    (root.path / "pyproject.toml").write_text(CONFIGURATION.replace(ADAPTER, "flaky_adapter:FlakyEngine"))
    root.write("a", prompts="one, two, three")
    root.write("folder/b", engine="async_sched_mode: legacy", prompts="one, two")
    root.regen()
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    root = recorded.copy(tmp_path / "root")
    (root.path / "runs").unlink()
    return root


def runs_of(toy: ToyRoot) -> int:
    path = toy.path / "runs"
    return len(path.read_text()) if path.exists() else 0


def kept(toy: ToyRoot, name: str) -> int:
    path = toy.path / ".golden" / "soak" / name / "cpu.jsonl"
    return path.read_text().count('"run":') if path.exists() else 0


def start(toy: ToyRoot, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "framework", "soak", *arguments],
        cwd=toy.path,
        env=toy.environment(TOY_SECONDS="0.01"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_runs(toy: ToyRoot, count: int) -> None:
    for _ in range(6000):
        if kept(toy, "a") >= count:
            return
        time.sleep(0.005)
    raise AssertionError("the soak made no progress")


def test_a_soak_passes_is_reported_and_is_not_done_twice(toy: ToyRoot) -> None:
    done = toy.golden("soak", "--runs", "30", "--report", "soak.md")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 runs of 2 fixtures" in done.stdout
    assert "No false alarm." in done.stdout
    assert "  30 of 30 runs  folder/b" in done.stderr
    report = (toy.path / "soak.md").read_text()
    assert "**No false alarm**: 60 runs of 2 fixtures" in report
    assert str(toy.path) not in report
    assert runs_of(toy) == 60
    code, document = toy.json("soak", "--runs", "30", "--resume")
    assert (code, runs_of(toy)) == (0, 60)
    assert (document["schema"], document["verdict"], document["exit_code"]) == ("golden.soak/1", "PASS", 0)
    entries = {entry["fixture"]: entry for entry in document["fixtures"]}
    assert entries["a"]["variations"]["async_sched_mode legacy"] >= 10
    assert "async_sched_mode legacy" not in entries["folder/b"]["variations"]
    assert entries["a"]["environment"] == {"machine": "one", "platform": "cpu"}
    toy.golden("soak", "a", "--runs", "5", "--fresh")
    assert runs_of(toy) == 65


def test_an_engine_that_is_wrong_on_three_threads_is_caught_and_one_run_shows_it_again(toy: ToyRoot) -> None:
    code, document = toy.json("soak", "a", "--runs", "20", TOY_FLAKY="3")
    assert (code, document["verdict"]) == (1, "FAIL")
    (entry,) = document["fixtures"]
    failed = entry["failed_runs"]
    assert failed
    assert all("num_threads 3" in run["kinds"] for run in failed)
    assert len(failed) == entry["variations"]["num_threads 3"]
    again = failed[0]["again"].split()[1:]
    before = kept(toy, "a")
    done = toy.golden(*again, TOY_FLAKY="3")
    assert done.returncode == 1
    assert re.search(r'TOKEN requests\["[012]"\]\.generated_tokens\[2\]', done.stdout)
    assert "num_threads 3" in done.stdout
    assert toy.golden(*again).returncode == 0
    assert kept(toy, "a") == before
    shown = toy.golden("soak", "a", "--runs", "20", TOY_FLAKY="3").stdout
    assert f"again: {failed[0]['again']}" in shown


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_soak_that_is_stopped_goes_on_with_what_is_missing(toy: ToyRoot, sent: signal.Signals) -> None:
    process = start(toy, "a", "--runs", "100000")  # however late the signal comes, it is not through
    wait_for_runs(toy, 10)
    process.send_signal(sent)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == (130 if sent is signal.SIGINT else -sent)
    if sent is signal.SIGINT:
        assert "the same command (without --fresh) goes on" in stderr
        assert "Traceback" not in stdout + stderr
    done_before = kept(toy, "a")
    assert done_before >= 10
    wanted, before = done_before + 40, runs_of(toy)
    code, document = toy.json("soak", "a", "--runs", str(wanted))
    assert (code, document["fixtures"][0]["runs"]) == (0, wanted)
    assert runs_of(toy) - before <= 40 + 1
    assert kept(toy, "a") == wanted


def test_a_second_soak_of_the_same_root_is_refused(toy: ToyRoot) -> None:
    process = start(toy, "a", "--runs", "100000")
    wait_for_runs(toy, 1)
    second = toy.golden("soak", "a")
    process.kill()
    process.communicate(timeout=30)
    assert second.returncode == 2
    assert "another soak is running here" in second.stderr


def test_a_changed_golden_starts_its_fixture_anew(toy: ToyRoot) -> None:
    toy.golden("soak", "--runs", "8")
    toy.write("a", prompts="one, two, four")
    code, document = toy.json("soak", "--runs", "8")
    assert code == 12
    assert [entry["verdict"] for entry in document["fixtures"]] == ["STALE", "PASS"]
    toy.regen("a")
    before = runs_of(toy)
    assert toy.golden("soak", "--runs", "8").returncode == 0
    assert runs_of(toy) - before == 8


def test_a_crash_ends_with_eleven(toy: ToyRoot) -> None:
    (toy.path / "toy_default_fault").write_text("die")
    code, document = toy.json("soak", "a", "--runs", "2")
    assert code == 11
    assert document["fixtures"][0]["verdict"] == "ERROR"
    assert "last words" in json.dumps(document)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--runs", "0"], "--runs 0: nothing would be run"),
        (["--slow-runs", "-1"], "--slow-runs -1"),
        (["--slow-after-s", "nan"], "--slow-after-s nan"),
        (["--runs", "many"], "--runs"),
        (["--only", "3"], "2 fixtures are selected; name one"),
        (["a", "--only", "-3"], "numbered from 0"),
        (["a", "--only", "3", "--fresh"], "keeps nothing"),
        (["--fresh", "--resume"], "not allowed with"),
        (["--report", "fixtures"], "--report fixtures: it cannot be written"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(toy: ToyRoot, arguments: list[str], words: str) -> None:
    done = toy.golden("soak", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert runs_of(toy) == 0
    assert not (toy.path / ".golden" / "soak").exists()
