"""Runs a fixture as often as its manifest asks, alternating with its partner where a throughput ratio is judged.

A shared machine's clock is worth nothing by itself; the ratio of two runs side by side is. So a fixture that asserts
`performance.paired_throughput_ratio` is run in turn with the fixture it is related to, the first pair warms up and is
not counted, and every further pair gives one ratio. Every other pair begins with the other side, so that a machine
which steadily slows down or speeds up favours neither.

On a noisy machine five pairs say little. More are taken until the median is known well enough, which is decided by
how far the ratios spread and never by what they are.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from framework.compare.detectable import relative_error_of_median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from framework.explain.schedule import Schedule
    from framework.run.retry import Attempt
    from framework.run.task import Failure, Runner, Task

PAIRED_RATIO = "paired_throughput_ratio"
THROUGHPUT = "tokens_per_second"
MINIMUM_PAIRS = 5
MAXIMUM_PAIRS = 15
KNOWN_WELL_ENOUGH = 0.05
"""The standard error of the median of the ratios, relative to it, at which no more pairs are taken."""

_SHARE_OF_TIME_LIMIT = 0.5
"""More pairs than the fewest are taken in the first half of a fixture's time limit only."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The records of a fixture's runs, or the failure that ended them.

    The first record carries the performance of all: medians, and the list of paired ratios where there is a partner.
    `schedules` are those of the same runs, as far as the engine tells them. `attempts` gave no record before it.
    """

    records: tuple[dict[str, Any], ...]
    failure: Failure | None
    seconds: float
    schedules: tuple[Schedule, ...] = ()
    attempts: tuple[Attempt, ...] = ()

    @property
    def record(self) -> dict[str, Any] | None:
        """The record to judge, if the engine gave one."""
        return self.records[0] if self.records else None


def measure(runner: Runner, task: Task, partner: Task | None) -> Measurement:
    """Run a task `workload.repeats` times, after one more that warms up if there are several.

    With a partner the two alternate, for at least `MINIMUM_PAIRS` counted pairs and at most `MAXIMUM_PAIRS`. The
    fixture's time limit holds for all runs together, and does not begin before what they need is there.
    """
    if (failure := runner.prepare(task)) is not None:
        return Measurement((), failure, 0.0)
    rounds = _Rounds(runner, task, partner, time.monotonic())
    while rounds.more_are_needed():
        if (failure := rounds.run_one()) is not None:
            return Measurement((), failure, rounds.seconds())
    return rounds.measured()


@dataclass(slots=True)
class _Rounds:
    """The rounds of one measurement so far: each runs the task once, and its partner once if there is one."""

    runner: Runner
    task: Task
    partner: Task | None
    started: float
    records: list[dict[str, Any]] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def more_are_needed(self) -> bool:
        done, repeats = len(self.records), self.task.fixture.workload.repeats
        if self.partner is None:
            return done < repeats + (repeats > 1)
        if done < max(repeats, MINIMUM_PAIRS) + 1:
            return True
        is_late = self.seconds() > _SHARE_OF_TIME_LIMIT * self.task.fixture.time_limit_s
        counted = self.ratios[1:]
        if is_late or len(counted) >= MAXIMUM_PAIRS or not all(0.0 < ratio < math.inf for ratio in counted):
            return False
        return relative_error_of_median(counted) > KNOWN_WELL_ENOUGH

    def run_one(self) -> Failure | None:
        """Run a round; every other one begins with the partner."""
        sides = [self.task] if self.partner is None else [self.task, self.partner]
        throughputs: dict[bool, Any] = {}
        for side in sides if len(self.records) % 2 == 0 else sides[::-1]:
            left = max(self.task.fixture.time_limit_s - self.seconds(), 0.0)
            result = self.runner.run(side, time_limit_s=left)
            if result.record is None:
                return result.failure
            throughputs[side is self.task] = result.record.get("performance", {}).get(THROUGHPUT)
            if side is self.task:
                record, schedule = result.record, result.schedule
        self.records.append(record)
        self.schedules.append(schedule)
        if self.partner is not None:
            self.ratios.append(_ratio(throughputs[True], throughputs[False]))
        return None

    def measured(self) -> Measurement:
        counted = self.records[1:] if len(self.records) > 1 else self.records
        performance = _medians([record.get("performance", {}) for record in counted])
        if self.partner is not None:
            performance[PAIRED_RATIO] = self.ratios[1:]
        first = self.records[0] | {"performance": performance}
        return Measurement((first, *self.records[1:]), None, self.seconds(), tuple(self.schedules))


def _ratio(this: Any, other: Any) -> float:
    """Return this over the other; whatever cannot be divided is NaN, which no rule lets pass."""
    numbers = all(isinstance(value, int | float) for value in (this, other))
    return this / other if numbers and other else float("nan")


def _medians(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of every figure; one sample that is no finite number stands for all, so that it is found."""
    medians: dict[str, Any] = {}
    for name in samples[0]:
        values: list[Any] = [sample.get(name) for sample in samples]
        odd = [value for value in values if not _is_finite_number(value)]
        medians[name] = odd[0] if odd else statistics.median(values)
    return medians


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
