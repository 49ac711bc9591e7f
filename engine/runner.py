"""Runs plans on the device: forward and sampling, in the order in which they are launched.

A worker thread owns the device. The thread of the step loop plans and resolves while it computes; it waits only for a
plan that is being resolved. Sampled ids stay on the device in `last_token[slot]`, in both scheduling modes, so a plan
can be launched before the previous one's samples are known to the host.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.batch import Batch, build_batch
from engine.config import ConfigError, InferenceConfig
from engine.kernels import PagedKVCache
from engine.model import Decoder
from engine.numerics import pad_rows
from engine.plan import Plan, StepOutput
from engine.request import Sample
from engine.sampling import SampledTokens, sample_greedily


@dataclass(frozen=True, slots=True)
class PendingStep:
    """A launched plan; everything that comes back of it travels together."""

    future: Future[SampledTokens]
    padded_row_count: int

    def wait(self) -> StepOutput:
        """Wait for the plan and return its samples."""
        sampled = self.future.result()
        columns = (sampled.token_ids.tolist(), sampled.logprobs.tolist(), sampled.margins.tolist())
        samples = tuple(Sample(*values) for values in zip(*columns, strict=True))
        return StepOutput(samples=samples, padded_row_count=self.padded_row_count)


class Runner:
    """Owns the KV cache, the latest token of every slot, and the thread that computes."""

    def __init__(self, decoder: Decoder, config: InferenceConfig) -> None:
        """Allocate the cache of `config.num_blocks` blocks and the dummy block.

        Raises:
            ConfigError: if the cache does not fit the device's memory.
        """
        self._decoder = decoder
        self._block_size = config.block_size_tokens
        self._cache = _allocate_cache(decoder, config)
        self._last_token = torch.zeros(config.max_requests, dtype=torch.int64, device=decoder.device)
        self._worker = ThreadPoolExecutor(1, "engine-runner", initializer=_set_threads, initargs=(config.num_threads,))

    def launch(self, plan: Plan) -> PendingStep:
        """Hand a plan to the worker and return at once."""
        batch = build_batch(plan, block_size_tokens=self._block_size, device=self._decoder.device)
        padded_row_count = pad_rows(plan.num_tokens) - plan.num_tokens
        return PendingStep(self._worker.submit(self._run, batch), padded_row_count)

    def close(self) -> None:
        """Wait for what was launched and end the worker."""
        self._worker.shutdown()

    @torch.inference_mode()
    def _run(self, batch: Batch) -> SampledTokens:
        token_ids = self._with_device_tokens(batch)
        hidden = self._decoder.forward(token_ids, batch.positions, self._cache, batch.metadata)
        logits = self._decoder.logits(hidden.index_select(0, batch.sample_places))
        sampled = sample_greedily(logits)
        self._last_token.index_copy_(0, batch.slots, sampled.token_ids)
        return sampled

    def _with_device_tokens(self, batch: Batch) -> Tensor:
        latest = self._last_token.index_select(0, batch.device_token_slots)
        return batch.token_ids.index_copy(0, batch.device_token_places, latest)


def _allocate_cache(decoder: Decoder, config: InferenceConfig) -> PagedKVCache:
    """Allocate the cache, having looked whether it fits: an allocator may promise memory that is not there."""
    shape, num_blocks = decoder.shape, config.num_blocks + 1
    numbers = 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * num_blocks * config.block_size_tokens
    needed, there = numbers * decoder.dtype.itemsize, _memory_bytes(decoder.device)
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


def _memory_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _set_threads(num_threads: int | None) -> None:
    if num_threads is not None:
        torch.set_num_threads(num_threads)
