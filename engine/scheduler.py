"""Decides what the next step computes. No torch here, and no sampled id is ever read.

One rule: every request has known and promised tokens chasing computed ones, under a token budget, a row budget and the
block pool. Whole prompts, chunks and decode steps are the same rule with different numbers.

A request whose next token needs a block that nobody can give is paused: it keeps what it holds and waits. Blocks go to
the oldest first, so the youngest pauses first. When every request is paused and none is about to end, the youngest is
evicted: it gives up its blocks, goes back to the head of the queue, and is computed again from its first token.
"""

from __future__ import annotations

from collections import deque

from engine.blocks import BlockPool
from engine.config import InferenceConfig
from engine.plan import Plan, PlanRow
from engine.request import FinishReason, RequestState


class Scheduler:
    """Owns the queue, the running requests, the slots and the block pool."""

    def __init__(self, config: InferenceConfig) -> None:
        """Start empty, with the budgets of `config`."""
        self._max_tokens = config.max_tokens
        self._chunked_prefill = config.enable_chunked_prefill
        self._block_size = config.block_size_tokens
        self._waiting: deque[RequestState] = deque()
        self._running: list[RequestState] = []  # oldest first
        self._leaving: list[RequestState] = []  # ended, but a plan in flight still names what they hold
        self._free_slots = list(range(config.max_requests - 1, -1, -1))
        self.pool = BlockPool(config.num_blocks)
        self.preemption_count = 0
        self.evicted_block_count = 0
        self.paused_request_count_peak = 0

    @property
    def has_requests(self) -> bool:
        """Whether any request waits or runs."""
        return bool(self._waiting or self._running)

    def add(self, state: RequestState) -> None:
        """Queue a request; the caller has checked that it can ever run."""
        self._waiting.append(state)

    def plan(self) -> Plan | None:
        """Return what to launch now, booked as launched, or None if nothing can be computed; evict as a last resort."""
        budget = self._max_tokens
        rows: list[PlanRow] = []
        paused = 0
        for state in self._running:
            if state.last_token_on_device and not state.fully_promised and budget > 0:
                if self._grow(state):
                    rows.append(self._row(state, 1))
                    budget -= 1
                else:
                    paused += 1
        self.paused_request_count_peak = max(self.paused_request_count_peak, paused)
        for state in self._running:
            if not state.last_token_on_device and (length := self._chunk(state, budget)):
                rows.append(self._row(state, length))
                budget -= length
        while not paused and self._waiting and (length := self._admissible(self._waiting[0], budget)):
            state = self._admit()
            rows.append(self._row(state, length))
            budget -= length
        if paused and not rows:
            self._evict_youngest()
        for row in rows:
            self._book_launch(row)
        return Plan(tuple(rows)) if rows else None

    def resolved(self, state: RequestState) -> None:
        """Book that one plan naming the request is no longer in flight; call it after the sample was taken."""
        state.in_flight -= 1
        if state.finished:
            self._forget(state)
        elif state.evicted:
            self._release(state)

    def cancel(self, state: RequestState) -> None:
        """End a live request now; rows of it that are in flight are dropped when they resolve."""
        assert not state.finished, "only a live request can be cancelled"
        state.finish_reason = FinishReason.CANCELLED
        self._forget(state)

    def give_up(self) -> RequestState | None:
        """End the request at the head of the queue if it waits for what nobody holds any more, and return it.

        Call it when nothing could be planned, nothing is in flight and nobody was evicted. A sound pool never gets
        there: what a single request may need was checked before it was queued.
        """
        if self._running or not self._waiting:
            return None
        state = self._waiting[0]
        state.finish_reason = FinishReason.ERROR
        state.error = (
            f"it waits for {self._blocks_for(len(state.token_ids))} KV blocks, but only {self.pool.num_free} of "
            f"{self.pool.num_blocks} are free and no running request holds the others: the engine has lost blocks"
        )
        self._forget(state)
        return state

    def _forget(self, state: RequestState) -> None:
        for holder in (self._waiting, self._running, self._leaving):
            if state in holder:
                holder.remove(state)
        if state.in_flight:
            self._leaving.append(state)
        self._release(state)

    def _release(self, state: RequestState) -> None:
        if state.in_flight or state.slot is None:
            return
        self.pool.give_back(state.blocks)
        self._free_slots.append(state.slot)
        state.blocks = []
        state.slot = None

    def _grow(self, state: RequestState) -> bool:
        """Make sure that the next token has a block; return whether it has."""
        if state.computed < len(state.blocks) * self._block_size:
            return True
        if not self.pool.num_free:
            return False
        state.blocks.extend(self.pool.take(1))
        return True

    def _chunk(self, state: RequestState, budget: int) -> int:
        """Return how many tokens of a request that is being prefilled to compute now; never leave just one."""
        length = min(state.uncomputed, budget)
        return max(length - 1 if state.uncomputed - length == 1 else length, 0)

    def _admissible(self, state: RequestState, budget: int) -> int:
        """Return how many tokens to compute if the queue's head is admitted now, or 0 if it has to wait."""
        known = len(state.token_ids)
        if state.in_flight or not self._free_slots or self._blocks_for(known) > self.pool.num_free:
            return 0
        # What an eviction made longer than a step is split even where prompts are not: it fits no other way.
        if known > budget and not self._chunked_prefill and known <= self._max_tokens:
            return 0
        return self._chunk(state, budget)

    def _admit(self) -> RequestState:
        state = self._waiting.popleft()
        state.slot = self._free_slots.pop()
        state.blocks = self.pool.take(self._blocks_for(len(state.token_ids)))
        state.evicted = False
        self._running.append(state)
        return state

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self._block_size)

    def _row(self, state: RequestState, length: int) -> PlanRow:
        assert state.slot is not None, "a running request has a slot"
        start, end = state.computed, state.computed + length
        assert end <= len(state.blocks) * self._block_size, "every planned token has a place in the cache"
        decode = state.last_token_on_device
        assert decode or end <= len(state.token_ids), "only the latest sample may be unknown to the host"
        scored_start, scored_end = self._scored(state, start, end)
        return PlanRow(
            state=state,
            slot=state.slot,
            start=start,
            token_ids=() if decode else tuple(state.token_ids[start:end]),
            last_from_device=decode,
            is_last=end == len(state.token_ids) + state.promised,
            block_table=tuple(state.blocks),
            scored_start=scored_start,
            scored_token_ids=state.request.prompt_token_ids[scored_start + 1 : scored_end + 1],
        )

    def _scored(self, state: RequestState, start: int, end: int) -> tuple[int, int]:
        """Return the positions, the end excluded, that score prompt tokens which no launched plan has scored yet."""
        if not state.request.sampling.prompt_logprobs:
            return start, start
        first = max(start, state.scored - 1)
        return first, max(first, min(end, state.prompt_length - 1))

    def _book_launch(self, row: PlanRow) -> None:
        state = row.state
        state.computed = row.start + row.length
        state.in_flight += 1
        state.scored += len(row.scored_token_ids)
        if row.samples:
            state.promised += 1
            state.last_token_on_device = True

    def _evict_youngest(self) -> None:
        if self._leaving or any(state.fully_promised for state in self._running):
            return  # blocks come free without an eviction as soon as what is in flight resolves
        state = self._running.pop()
        self.preemption_count += 1
        self.evicted_block_count += len(state.blocks)
        state.computed = 0
        state.last_token_on_device = False
        state.evicted = True
        self._waiting.appendleft(state)
        self._release(state)
