"""What the step loop counts. Every counter starts at zero with an engine run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Counters of one engine run.

    Attributes:
        step_count: calls of the step loop that launched or resolved something.
        async_sched_step_count: async steps that resolved a forward, also one whose rows were all dropped.
        primer_step_count: async steps that launched the first forward of a chain and had nothing to resolve.
        async_sched_compaction_step_count: async steps in which at least one request finished.
        prefill_step_count: steps that launched at least one prefill row.
        decode_step_count: steps that launched decode rows only.
        chunked_prefill_step_count: steps that launched a part of a prompt.
        lifetime_prefill_token_count: tokens computed in prefill rows, also those computed again after an eviction.
        padded_row_count: token rows launched only to fill a step up to the multiple its kernels need.
        dropped_row_count: rows launched for a request that had already ended.
        preemption_count: evictions.
        evicted_block_count: KV blocks that evicted requests gave up.
        paused_request_count_peak: most requests that waited for a block at the same time.
        kv_blocks_peak: most KV blocks held at the same time.
        routing_recorded_token_count: rows of expert ids in the outputs of requests; None where none are recorded.
        routing_replayed_token_count: those of them that were taken from a recording; None likewise.
    """

    step_count: int = 0
    async_sched_step_count: int = 0
    primer_step_count: int = 0
    async_sched_compaction_step_count: int = 0
    prefill_step_count: int = 0
    decode_step_count: int = 0
    chunked_prefill_step_count: int = 0
    lifetime_prefill_token_count: int = 0
    padded_row_count: int = 0
    dropped_row_count: int = 0
    preemption_count: int = 0
    evicted_block_count: int = 0
    paused_request_count_peak: int = 0
    kv_blocks_peak: int = 0
    routing_recorded_token_count: int | None = None
    routing_replayed_token_count: int | None = None

    @classmethod
    def of_routing(cls) -> Counters:
        """Return counters at zero that count routing too."""
        return cls(routing_recorded_token_count=0, routing_replayed_token_count=0)

    def add_routing(self, tokens: int, *, replayed: bool) -> None:
        """Count the rows of expert ids of a request that has ended."""
        assert self.routing_recorded_token_count is not None, "routing is counted where it is recorded"
        assert self.routing_replayed_token_count is not None, "both are counted or neither"
        self.routing_recorded_token_count += tokens
        self.routing_replayed_token_count += tokens * replayed

    def as_dict(self) -> dict[str, int]:
        """Return the counters by name, without those of what the engine was not asked to do."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
