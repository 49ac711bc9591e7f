from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.compare.finding import FindingClass
from framework.compare.rules import Rules
from framework.manifest.fixture import Fixture, Prompt, Workload
from framework.run.measure import MAXIMUM_PAIRS, MINIMUM_PAIRS, measure
from framework.run.task import Failure, Result, Task


class ScriptedRunner:
    """Gives throughputs in turn; a failure where the script says None."""

    def __init__(self, *throughputs: Any) -> None:
        self._throughputs = list(throughputs)
        self.ran: list[str] = []

    def start(self) -> None: ...

    def prepare(self, task: Task) -> Failure | None:
        return None

    def rest(self) -> None: ...

    def close(self) -> None: ...

    def stop(self) -> None: ...

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


def test_a_pair_alternates_begins_with_either_side_in_turn_and_gives_one_ratio_a_counted_round() -> None:
    runner = ScriptedRunner(99.0, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0)
    measured = measure(runner, task("a"), task("b"))
    assert runner.ran == ["a", "b", "b", "a"] * 3
    assert measured.record is not None
    assert measured.record["performance"]["paired_throughput_ratio"] == [2.0] * 5


def test_a_machine_that_steadily_slows_down_favours_neither_side() -> None:
    slowing = [100.0 - step for step in range(12)]
    measured = measure(ScriptedRunner(*slowing), task("a"), task("b"))
    assert measured.record is not None
    ratios = measured.record["performance"]["paired_throughput_ratio"]
    assert [ratio > 1.0 for ratio in ratios] == [False, True, False, True, False]


def test_pairs_that_spread_are_followed_by_more_up_to_a_limit() -> None:
    noisy = [1.0, 1.0, 1.0, 3.0] * 30
    measured = measure(ScriptedRunner(*noisy), task("a"), task("b"))
    assert len(measured.records) == MAXIMUM_PAIRS + 1
    steady = measure(ScriptedRunner(*[1.0] * 60), task("a"), task("b"))
    assert len(steady.records) == MINIMUM_PAIRS + 1


@given(st.lists(st.floats(0.5, 2.0), min_size=40, max_size=40), st.floats(0.25, 4.0))
def test_how_many_pairs_are_taken_does_not_depend_on_which_side_is_faster(noise: list[float], faster: float) -> None:
    def pairs(factor: float) -> int:
        samples = [value * (factor if index % 4 in (0, 3) else 1.0) for index, value in enumerate(noise)]
        return len(measure(ScriptedRunner(*samples), task("a"), task("b")).records)

    assert pairs(1.0) == pairs(2.0 ** round(math.log2(faster)))


@pytest.mark.parametrize("broken", [0.0, math.nan, "fast"])
def test_a_throughput_that_cannot_be_divided_by_is_never_a_ratio(broken: Any) -> None:
    measured = measure(ScriptedRunner(*[1.0, 1.0] * 3, 1.0, broken, *[1.0, 1.0] * 2), task("a"), task("b"))
    assert measured.record is not None
    ratio = measured.record["performance"]["paired_throughput_ratio"][2]
    assert math.isnan(ratio) or ratio == 0.0
    assert len(measured.records) == MINIMUM_PAIRS + 1


@pytest.mark.parametrize("broken", [math.nan, math.inf, "fast", True])
def test_one_broken_sample_is_not_hidden_by_the_median(broken: Any) -> None:
    measured = measure(ScriptedRunner(1.0, 1.0, broken, 1.0), task("a", repeats=3), None)
    assert measured.record is not None
    assert repr(measured.record["performance"]["tokens_per_second"]) == repr(broken)


def test_a_failure_in_any_round_fails_the_measurement() -> None:
    measured = measure(ScriptedRunner(1.0, 1.0, None), task("a", repeats=3), None)
    assert measured.record is None
    assert measured.failure == Failure(FindingClass.ENGINE_CRASH, "fell over")
