"""Runs plans on the device: forward and sampling, in the order in which they are launched.

A worker thread owns the device. The thread of the step loop plans and resolves while it computes; it waits only for a
plan that is being resolved. Sampled ids stay on the device in `last_token[slot]`, in both scheduling modes, so a plan
can be launched before the previous one's samples are known to the host.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.batch import Batch, build_batch
from engine.config import ConfigError, InferenceConfig
from engine.kernels import PagedKVCache
from engine.memory import memory_bytes
from engine.model import Decoder
from engine.model.step_routing import StepRouting
from engine.numerics import pad_rows
from engine.plan import Plan, StepOutput
from engine.request import Sample, TokenLogprob
from engine.routing import Recording
from engine.routing_steps import RoutingSteps, chosen_by_row
from engine.sampling import SampledTokens, best_tokens, sample, token_logprobs

_SCORED_AT_A_TIME = 1 << 22
"""Logits of prompt tokens that exist at the same time: 16 MB."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step computed, on the device.

    `best` holds ids and log-probabilities (M, n) of the rows that ask for them, `prompt_logprobs` (S,) those of the
    scored prompt tokens.
    """

    sampled: SampledTokens
    best: tuple[Tensor, Tensor] | None
    prompt_logprobs: Tensor | None


@dataclass(frozen=True, slots=True)
class PendingStep:
    """A launched plan; everything that comes back of it travels together."""

    plan: Plan
    future: Future[StepResult]
    padded_row_count: int
    routing: StepRouting | None

    def wait(self) -> StepOutput:
        """Wait for the plan and return its samples."""
        result = self.future.result()
        sampled, scored = result.sampled, result.prompt_logprobs
        columns = (sampled.token_ids.tolist(), sampled.logprobs.tolist(), sampled.margins.tolist(), self._top(result))
        lengths = [row.length for row in self.plan.rows]
        return StepOutput(
            samples=tuple(Sample(*values) for values in zip(*columns, strict=True)),
            padded_row_count=self.padded_row_count,
            prompt_logprobs=() if scored is None else tuple(scored.tolist()),
            routing=chosen_by_row(self.routing, lengths) if self.routing else (),
        )

    def _top(self, result: StepResult) -> list[tuple[TokenLogprob, ...]]:
        """For each row the best tokens that its request asks for."""
        if result.best is None:
            return [()] * len(self.plan.rows)
        best = zip(*(column.tolist() for column in result.best), strict=True)
        wanted = [row.state.request.sampling.top_n if row.samples else 0 for row in self.plan.rows]
        return [tuple(map(TokenLogprob, *(column[:n] for column in next(best)))) if n else () for n in wanted]


class Runner:
    """Owns the KV cache, the latest token of every slot, and the thread that computes."""

    def __init__(self, decoder: Decoder, config: InferenceConfig, recording: Recording | None = None) -> None:
        """Allocate the cache of `config.num_blocks` blocks and the dummy block; replay the `recording`, if any.

        Raises:
            ConfigError: if the cache does not fit the device's memory.
        """
        self._decoder = decoder
        self._block_size = config.block_size_tokens
        self._cache = _allocate_cache(decoder, config)
        self._last_token = torch.zeros(config.max_requests, dtype=torch.int64, device=decoder.device)
        moe = decoder.shape.moe
        records = moe is not None and config.moe_enable_routing_replay
        self._routing = RoutingSteps(moe, recording, decoder.device) if moe is not None and records else None
        self._worker = ThreadPoolExecutor(1, "engine-runner", initializer=_set_threads, initargs=(config.num_threads,))

    def launch(self, plan: Plan) -> PendingStep:
        """Hand a plan to the worker and return at once."""
        batch = build_batch(plan, block_size_tokens=self._block_size, device=self._decoder.device)
        padded_row_count = pad_rows(plan.num_tokens) - plan.num_tokens
        routing = self._routing.begin(plan) if self._routing else None
        future = self._worker.submit(self._run, batch, routing)
        return PendingStep(plan, future, padded_row_count, routing)

    def close(self) -> None:
        """Wait for what was launched and end the worker."""
        self._worker.shutdown()

    @torch.inference_mode()
    def _run(self, batch: Batch, routing: StepRouting | None) -> StepResult:
        token_ids = self._with_device_tokens(batch)
        hidden = self._decoder.forward(token_ids, batch.positions, self._cache, batch.metadata, routing)
        logits = self._decoder.logits(hidden.index_select(0, batch.sample_places))
        sampled = sample(logits, batch.draws)
        self._last_token.index_copy_(0, batch.slots, sampled.token_ids)
        best = None
        if batch.greatest_top_n:
            best = best_tokens(logits.index_select(0, batch.top_n_rows), batch.greatest_top_n)
        prompt_logprobs = self._prompt_logprobs(hidden, batch) if len(batch.scored_places) else None
        return StepResult(sampled, best, prompt_logprobs)

    def _prompt_logprobs(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Score prompt tokens (S,), a slice at a time: the logits of a long prompt may not fit the memory."""
        rows = max(1, _SCORED_AT_A_TIME // self._decoder.shape.vocab_size)
        parts = []
        for first in range(0, len(batch.scored_places), rows):
            places = batch.scored_places[first : first + rows]
            logits = self._decoder.logits(hidden.index_select(0, places))
            parts.append(token_logprobs(logits, batch.scored_token_ids[first : first + rows]))
        return torch.cat(parts)

    def _with_device_tokens(self, batch: Batch) -> Tensor:
        latest = self._last_token.index_select(0, batch.device_token_slots)
        return batch.token_ids.index_copy(0, batch.device_token_places, latest)


def _allocate_cache(decoder: Decoder, config: InferenceConfig) -> PagedKVCache:
    """Allocate the cache, having looked whether it fits: an allocator may promise memory that is not there."""
    shape, num_blocks = decoder.shape, config.num_blocks + 1
    numbers = 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * num_blocks * config.block_size_tokens
    needed, there = numbers * decoder.dtype.itemsize, memory_bytes(decoder.device)
    if needed > there:
        raise ConfigError(
            f"settings num_blocks and block_size_tokens: a KV cache of {config.num_blocks} blocks of "
            f"{config.block_size_tokens} tokens takes {needed / 1e9:.1f} GB, but {decoder.device} has "
            f"{there / 1e9:.1f} GB; take fewer blocks"
        )
    return PagedKVCache(
        shape,
        num_blocks=num_blocks,
        block_size_tokens=config.block_size_tokens,
        dtype=decoder.dtype,
        device=decoder.device,
    )


def _set_threads(num_threads: int | None) -> None:
    if num_threads is not None:
        torch.set_num_threads(num_threads)
