"""Runs a fixture as often as its manifest asks, alternating with its partner where a throughput ratio is judged.

A shared machine's clock is worth nothing by itself; the ratio of two runs side by side is. So a fixture that asserts
`performance.paired_throughput_ratio` is run in turn with the fixture it is related to, the first pair warms up and is
not counted, and every further pair gives one ratio.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from framework.explain.schedule import Schedule
    from framework.run.retry import Attempt
    from framework.run.task import Failure, Runner, Task

PAIRED_RATIO = "paired_throughput_ratio"
THROUGHPUT = "tokens_per_second"
MINIMUM_PAIRS = 5


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

    With a partner the two alternate, for at least `MINIMUM_PAIRS` counted pairs. The fixture's time limit holds for
    all runs together.
    """
    repeats = task.fixture.workload.repeats
    rounds = max(repeats, MINIMUM_PAIRS) + 1 if partner else repeats + (repeats > 1)
    started = time.monotonic()
    deadline = started + task.fixture.time_limit_s
    records: list[dict[str, Any]] = []
    schedules: list[Schedule] = []
    ratios: list[float] = []
    for _ in range(rounds):
        throughputs = []
        for each in (task,) if partner is None else (task, partner):
            result = runner.run(each, time_limit_s=max(deadline - time.monotonic(), 0.0))
            if result.record is None:
                return Measurement((), result.failure, time.monotonic() - started)
            throughputs.append(result.record.get("performance", {}).get(THROUGHPUT))
            if each is task:
                records.append(result.record)
                schedules.append(result.schedule)
        if partner is not None:
            ratios.append(_ratio(*throughputs))
    counted = records[1:] if rounds > 1 else records
    performance = _medians([record.get("performance", {}) for record in counted])
    if partner is not None:
        performance[PAIRED_RATIO] = ratios[1:]
    first = records[0] | {"performance": performance}
    return Measurement((first, *records[1:]), None, time.monotonic() - started, tuple(schedules))


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
