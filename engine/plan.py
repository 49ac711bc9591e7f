"""What one step computes: an immutable plan, and what comes back of it. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.request import RequestState, Sample


@dataclass(frozen=True, slots=True)
class PlanRow:
    """The tokens of one request that one step computes: positions `start` … `start + length - 1`.

    `token_ids` are the ids that the host knows; a row with `last_from_device` has one more, the request's latest
    sample, which is read on the device from `last_token[slot]`. `is_last` says that the row computes the request's last
    token. `scored_token_ids` are prompt tokens whose log-probability the row computes: those that follow the positions
    from `scored_start` on, of which the last one's may belong to the next chunk.
    """

    state: RequestState
    slot: int
    start: int
    token_ids: tuple[int, ...]
    last_from_device: bool
    is_last: bool
    block_table: tuple[int, ...]
    scored_start: int
    scored_token_ids: tuple[int, ...]

    @property
    def length(self) -> int:
        """Number of tokens the row computes."""
        return len(self.token_ids) + self.last_from_device

    @property
    def samples(self) -> bool:
        """Whether the row's sample is kept; that of any other row is thrown away."""
        return self.is_last and self.state.request.sampling.max_new_tokens > 0

    @property
    def is_decode(self) -> bool:
        """Whether the row computes just the request's latest sample."""
        return self.last_from_device and not self.token_ids

    @property
    def is_chunk(self) -> bool:
        """Whether the row computes only a part of what the request had uncomputed when it was admitted."""
        return not self.is_decode and (self.start > 0 or not self.is_last)


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
    """What a launched plan brought back from the device.

    `samples` has one for every row, in the plan's order; `prompt_logprobs` has one number for every scored prompt
    token, row after row. `routing` has for every row the expert ids of its tokens; empty unless they are recorded.
    """

    samples: tuple[Sample, ...]
    padded_row_count: int
    prompt_logprobs: tuple[float, ...] = ()
    routing: tuple[Sequence[Sequence[Sequence[int]]], ...] = ()
