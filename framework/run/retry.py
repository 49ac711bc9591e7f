"""Runs again what gave no record: an engine that crashed, hung, or ran out of memory, never one that gave other values.

Every attempt is kept and shown, so that a pass that needed a second one never looks like a pass.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from framework.compare.finding import FindingClass

if TYPE_CHECKING:
    from collections.abc import Callable

    from framework.run.measure import Measurement

INFRASTRUCTURE: Final = frozenset({FindingClass.ENGINE_CRASH, FindingClass.OUT_OF_MEMORY, FindingClass.TIME_LIMIT})
"""The classes that may be retried: there is no value in them that a retry could turn."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try that gave no record and was followed by another; `seconds` are its own."""

    kind: FindingClass
    message: str
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return the attempt as it stands under `attempts` in the entry of a `golden.run/1` document."""
        return {"class": self.kind.value, "message": self.message, "seconds": round(self.seconds, 3)}

    def in_words(self) -> str:
        """Return class, time and the first line of the message."""
        return f"{self.kind} after {self.seconds:.1f} s: {self.message.partition(chr(10))[0]}"


def _unheard(fixture_name: str, attempt: Attempt, number: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a fixture may be tried again, and who hears of each try that failed: its name, the attempt, its number.

    None by default: a retry is somebody's decision.
    """

    limit: int = 0
    hear: Callable[[str, Attempt, int], None] = field(default=_unheard)

    def measured(self, fixture_name: str, measure: Callable[[], Measurement]) -> Measurement:
        """Return the first measurement that gave records, or the last one, with the attempts before it.

        Each try has the fixture's whole time limit; `seconds` are those of all tries together.
        """
        attempts: list[Attempt] = []
        while True:
            measurement = measure()
            failure = measurement.failure
            if failure is None or failure.kind not in INFRASTRUCTURE or len(attempts) == self.limit:
                break
            attempts.append(Attempt(failure.kind, failure.message, measurement.seconds))
            self.hear(fixture_name, attempts[-1], len(attempts))
        seconds = measurement.seconds + sum(attempt.seconds for attempt in attempts)
        return dataclasses.replace(measurement, seconds=seconds, attempts=tuple(attempts))


NO_RETRIES: Final = Retries()
