"""What one step computes: an immutable plan, and what comes back of it. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

from engine.request import RequestState, Sample


@dataclass(frozen=True, slots=True)
class PlanRow:
    """The tokens of one request that one step computes: positions `start` … `start + length - 1`.

    `token_ids` are the ids that the host knows; a row with `last_from_device` has one more, the request's latest
    sample, which is read on the device from `last_token[slot]`. A row that `samples` computes the request's last token,
    so its sample is kept; the sample of any other row is thrown away.
    """

    state: RequestState
    slot: int
    start: int
    token_ids: tuple[int, ...]
    last_from_device: bool
    samples: bool
    block_table: tuple[int, ...]

    @property
    def length(self) -> int:
        """Number of tokens the row computes."""
        return len(self.token_ids) + self.last_from_device

    @property
    def is_decode(self) -> bool:
        """Whether the row computes just the request's latest sample."""
        return self.last_from_device and not self.token_ids

    @property
    def is_chunk(self) -> bool:
        """Whether the row computes only a part of what the request had uncomputed when it was admitted."""
        return not self.is_decode and (self.start > 0 or not self.samples)


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows of one step, decode rows first."""

    rows: tuple[PlanRow, ...]

    @property
    def num_tokens(self) -> int:
        """Number of tokens the step computes, padding apart."""
        return sum(row.length for row in self.rows)

    @property
    def prefill_token_count(self) -> int:
        """Number of tokens in rows that are not decode rows."""
        return sum(row.length for row in self.rows if not row.is_decode)

    @property
    def has_prefill(self) -> bool:
        """Whether any row is not a decode row."""
        return any(not row.is_decode for row in self.rows)

    @property
    def has_chunk(self) -> bool:
        """Whether any row is a part of a prompt."""
        return any(row.is_chunk for row in self.rows)


@dataclass(frozen=True, slots=True)
class StepOutput:
    """What a launched plan brought back from the device: a sample for every row, in the plan's order."""

    samples: tuple[Sample, ...]
    padded_row_count: int
