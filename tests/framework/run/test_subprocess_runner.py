from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from framework.compare.finding import FindingClass
from framework.manifest.load import load_manifest
from framework.run.subprocess_runner import SubprocessRunner
from framework.run.task import Result, Task
from framework.workspace import Workspace
from tests.framework.toy_root import ADAPTER, ToyRoot, make_toy_root


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("toy"))
    for fault in ("none", "crash", "die", "killed", "odd_signal", "hang", "memory", "nan", "no_record"):
        root.write(fault, engine=f"fault: {fault}", prompts="hello, world")
    return root


@pytest.fixture(scope="module")
def runner(toy: ToyRoot) -> Iterator[SubprocessRunner]:
    made = SubprocessRunner(Workspace(toy.path, ADAPTER))
    yield made
    made.close()


def run(toy: ToyRoot, runner: SubprocessRunner, name: str, *, limit: float = 20.0, **task: object) -> Result:
    fixtures = toy.path / "fixtures"
    fixture = load_manifest(fixtures / f"{name}.yaml", fixtures_root=fixtures)
    made = Task(fixture, fixtures / "models" / "toy", "cpu", **task)  # type: ignore[arg-type]
    return runner.run(made, time_limit_s=limit)


def test_records_arrive_whatever_the_engine_prints(toy: ToyRoot, runner: SubprocessRunner) -> None:
    result = run(toy, runner, "none")
    assert result.failure is None
    assert result.record is not None
    assert result.record["counters"] == {"step_count": 7, "async_sched_step_count": 6}


def test_overrides_are_laid_over_and_recorded_as_pinned(toy: ToyRoot, runner: SubprocessRunner) -> None:
    result = run(toy, runner, "none", overrides={"async_sched_mode": "legacy"})
    assert result.record is not None
    assert result.record["settings"]["async_sched_mode"] == {"value": "legacy", "source": "pinned"}
    assert result.record["counters"]["async_sched_step_count"] == 0


def test_requests_in_another_order_keep_their_names(toy: ToyRoot, runner: SubprocessRunner) -> None:
    forward, backward = run(toy, runner, "none"), run(toy, runner, "none", order=(1, 0))
    assert forward.record is not None
    assert backward.record is not None
    assert forward.record["requests"] == backward.record["requests"]
    assert list(forward.record["requests"]) != list(backward.record["requests"])


def test_requests_arrive_when_the_task_says_whatever_their_order(toy: ToyRoot, runner: SubprocessRunner) -> None:
    plain, late = run(toy, runner, "none"), run(toy, runner, "none", order=(1, 0), arrivals=(9, 2))
    assert plain.record is not None
    assert late.record is not None
    assert late.record["counters"]["async_sched_step_count"] == 9 + 6
    assert late.record["requests"] == plain.record["requests"]


def test_nan_travels_so_that_it_can_be_found(toy: ToyRoot, runner: SubprocessRunner) -> None:
    result = run(toy, runner, "nan")
    assert result.record is not None
    assert repr(result.record["requests"]["0"]["generated_logprobs"][1]) == "nan"


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("crash", FindingClass.ENGINE_CRASH, ["RuntimeError: the toy fell over", "misbehave", "| an engine may print"]),
        ("die", FindingClass.ENGINE_CRASH, ["status 3", "last words"]),
        ("odd_signal", FindingClass.ENGINE_CRASH, ["killed by signal 40"]),
        ("killed", FindingClass.OUT_OF_MEMORY, ["signal 9"]),
        ("memory", FindingClass.OUT_OF_MEMORY, ["no more toys"]),
        ("no_record", FindingClass.ENGINE_CRASH, ["record is malformed", "no golden.record/1", "nonsense"]),
    ],
)
def test_a_failure_is_told_and_the_next_fixture_runs(
    toy: ToyRoot,
    runner: SubprocessRunner,
    fault: str,
    kind: FindingClass,
    words: list[str],
) -> None:
    result = run(toy, runner, fault)
    assert result.record is None
    assert result.failure is not None
    assert result.failure.kind is kind
    assert all(word in result.failure.message for word in words), result.failure.message
    assert run(toy, runner, "none").failure is None


def test_a_hang_ends_at_its_limit_and_shows_where(toy: ToyRoot, runner: SubprocessRunner) -> None:
    result = run(toy, runner, "hang", limit=0.3)
    assert result.failure is not None
    assert result.failure.kind is FindingClass.TIME_LIMIT
    assert "time limit of 120 s" in result.failure.message
    assert "_hang_here" in result.failure.message
    assert run(toy, runner, "none").failure is None


def test_a_worker_stays_across_fixtures(toy: ToyRoot, runner: SubprocessRunner) -> None:
    run(toy, runner, "none")
    worker = runner._worker
    run(toy, runner, "nan")
    assert worker is not None
    assert runner._worker is worker


def test_a_manifest_edited_after_it_was_read_is_not_run(toy: ToyRoot, runner: SubprocessRunner) -> None:
    path = toy.write("edited")
    fixtures = toy.path / "fixtures"
    fixture = load_manifest(path, fixtures_root=fixtures)
    toy.write("edited", prompts="another")
    result = runner.run(Task(fixture, fixtures / "models" / "toy", "cpu"), time_limit_s=20.0)
    assert result.failure is not None
    assert "manifest changed" in result.failure.message


def test_an_adapter_that_cannot_be_made_in_the_worker_is_told_in_a_line(toy: ToyRoot) -> None:
    (toy.path / "broken_adapter.py").write_text("def x(:\n")
    made = SubprocessRunner(Workspace(toy.path, "broken_adapter:Engine"))
    result = run(toy, made, "none")
    made.close()
    assert result.failure is not None
    assert result.failure.kind is FindingClass.ENGINE_CRASH
    assert "broken_adapter.py:1" in result.failure.message
    assert "Traceback" not in result.failure.message


ORPHAN = """
import sys, time
from pathlib import Path
from framework.manifest.load import load_manifest
from framework.run.subprocess_runner import SubprocessRunner
from framework.run.task import Task
from framework.workspace import Workspace

fixtures = Path(sys.argv[1]) / "fixtures"
fixture = load_manifest(fixtures / "hang.yaml", fixtures_root=fixtures)
runner = SubprocessRunner(Workspace(fixtures.parent, sys.argv[2]))
runner.start()
print(runner._worker._process.pid, flush=True)
runner.run(Task(fixture, fixtures / "models" / "toy", "cpu"), time_limit_s=60.0)
"""


def test_a_worker_ends_when_its_parent_is_killed(toy: ToyRoot) -> None:
    command = [sys.executable, "-c", ORPHAN, str(toy.path), ADAPTER]
    environment = toy.environment(CUDA_VISIBLE_DEVICES="")  # where there may be devices, a worker begins later
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    for _ in range(200):
        if not _is_alive(worker):
            return
        time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker outlived its parent")


def _is_alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.is_file() and status.read_text().rpartition(")")[2].split()[0] != "Z"
