from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from framework.compare.finding import FindingClass
from framework.compare.rules import Rules
from framework.manifest.fixture import Fixture, Prompt, Workload
from framework.run.measure import measure
from framework.run.task import Failure, Result, Task


class ScriptedRunner:
    """Gives throughputs in turn; a failure where the script says None."""

    def __init__(self, *throughputs: Any) -> None:
        self._throughputs = list(throughputs)
        self.ran: list[str] = []

    def start(self) -> None: ...

    def close(self) -> None: ...

    def run(self, task: Task, *, time_limit_s: float) -> Result:
        assert time_limit_s <= task.fixture.time_limit_s
        self.ran.append(task.fixture.name)
        value = self._throughputs.pop(0)
        if value is None:
            return Result(None, Failure(FindingClass.ENGINE_CRASH, "fell over"))
        return Result({"performance": {"tokens_per_second": value}, "number": len(self.ran)}, None)


def task(name: str, repeats: int = 1) -> Task:
    fixture = Fixture(
        name=name,
        path=Path(),
        summary="",
        model="",
        engine={},
        workload=Workload(prompts=(Prompt(text="a"),), sampling={}, repeats=repeats),
        rules=Rules(asserted={}),
    )
    return Task(fixture, Path(), "cpu")


def test_a_fixture_without_repeats_runs_once() -> None:
    runner = ScriptedRunner(5.0)
    measured = measure(runner, task("a"), None)
    assert runner.ran == ["a"]
    assert measured.record == {"performance": {"tokens_per_second": 5.0}, "number": 1}


def test_repeats_give_the_median_and_the_first_warms_up() -> None:
    measured = measure(ScriptedRunner(1000.0, 1.0, 2.0, 9.0), task("a", repeats=3), None)
    assert measured.record is not None
    assert measured.record["performance"] == {"tokens_per_second": 2.0}
    assert len(measured.records) == 4


def test_a_pair_alternates_and_gives_one_ratio_a_counted_round() -> None:
    runner = ScriptedRunner(99.0, 1.0, 2.0, 1.0, 3.0, 1.0, 4.0, 2.0, 5.0, 1.0, 6.0, 1.0)
    measured = measure(runner, task("a"), task("b"))
    assert runner.ran == ["a", "b"] * 6
    assert measured.record is not None
    assert measured.record["performance"]["paired_throughput_ratio"] == [2.0, 3.0, 2.0, 5.0, 6.0]


@pytest.mark.parametrize("broken", [0.0, math.nan, "fast"])
def test_a_throughput_that_cannot_be_divided_by_is_never_a_ratio(broken: Any) -> None:
    measured = measure(ScriptedRunner(*[1.0, 1.0] * 3, 1.0, broken, *[1.0, 1.0] * 2), task("a"), task("b"))
    assert measured.record is not None
    assert math.isnan(measured.record["performance"]["paired_throughput_ratio"][2])


@pytest.mark.parametrize("broken", [math.nan, math.inf, "fast", True])
def test_one_broken_sample_is_not_hidden_by_the_median(broken: Any) -> None:
    measured = measure(ScriptedRunner(1.0, 1.0, broken, 1.0), task("a", repeats=3), None)
    assert measured.record is not None
    assert repr(measured.record["performance"]["tokens_per_second"]) == repr(broken)


def test_a_failure_in_any_round_fails_the_measurement() -> None:
    measured = measure(ScriptedRunner(1.0, 1.0, None), task("a", repeats=3), None)
    assert measured.record is None
    assert measured.failure == Failure(FindingClass.ENGINE_CRASH, "fell over")
