"""How long steps took, and a summary that holds up when there is nothing to summarise. Never a compared value."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Timing:
    """Seconds of the steps that resolved something, by what the same step launched.

    In async mode the step that launches the only prefill resolves nothing, and the one that resolves it launches decode
    rows: a single burst has no prefill sample at all.
    """

    prefill_seconds: list[float] = field(default_factory=list)
    decode_seconds: list[float] = field(default_factory=list)
    total_seconds: float = 0.0
    generated_token_count: int = 0

    def add_step(self, seconds: float, *, resolved: bool, has_prefill: bool) -> None:
        """Book one call of the step loop."""
        self.total_seconds += seconds
        if resolved:
            (self.prefill_seconds if has_prefill else self.decode_seconds).append(seconds)

    @property
    def tokens_per_second(self) -> float | None:
        """Generated tokens a second over all steps; None if no time has passed."""
        return self.generated_token_count / self.total_seconds if self.total_seconds else None

    def summary(self) -> str:
        """Return the summary as text, one figure a line; a figure without samples is `n/a`."""
        rate = self.tokens_per_second
        return "\n".join(
            (
                f"generated tokens   {self.generated_token_count}",
                f"total              {self.total_seconds:.3f} s",
                f"throughput         {'n/a' if rate is None else f'{rate:.1f} tokens/s'}",
                f"prefill step       {_median_milliseconds(self.prefill_seconds)}",
                f"decode step        {_median_milliseconds(self.decode_seconds)}",
            )
        )


def _median_milliseconds(seconds: Sequence[float]) -> str:
    if not seconds:
        return "n/a (no samples)"
    return f"{statistics.median(seconds) * 1e3:.2f} ms (median of {len(seconds)})"
