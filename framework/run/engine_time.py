"""When an engine was at work: what is left of a run's wall time is the framework's own.

Moments are those of `time.monotonic`, which all processes of a machine share. They are reported, and reach nothing
that is compared.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(slots=True)
class EngineTime:
    """The spans, each from one moment to another, in which engines loaded or ran; several may overlap.

    Threads may add to the same one: adding to a list is one step.
    """

    _spans: list[tuple[float, float]] = field(default_factory=list)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Count the time until the end of the `with` block, however it ends."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._spans.append((began, time.monotonic()))

    def add(self, spans: Iterable[Sequence[float]], *, after: float) -> None:
        """Add what an engine's process tells of; nothing it tells lies outside `after` and now."""
        now = time.monotonic()
        self._spans.extend((max(began, after), min(ended, now)) for began, ended in spans)

    def take(self) -> list[tuple[float, float]]:
        """Return the spans so far, and begin anew."""
        taken, self._spans = self._spans, []
        return taken

    def seconds(self, began: float, ended: float) -> float:
        """Return for how long, between two moments, at least one engine was at work."""
        total, covered = 0.0, began
        for first, last in sorted(self._spans):
            fresh, until = max(first, covered), min(last, ended)
            if until > fresh:
                total += until - fresh
                covered = until
        return total
