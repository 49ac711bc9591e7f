"""The proof, at start, that on this machine a token's bits depend on its own sequence alone.

It looks at the model that will run: its products with its own shapes, its elementwise functions and reductions, and
whole forward passes of one sequence alone, in chunks beside a neighbour, and decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.kernels import KV_TILE, AttentionMetadata, PagedKVCache, QuerySpan
from engine.numerics.gemm import (
    ROW_BUCKETS,
    LinearWeight,
    first_difference,
    linear,
    probe_rows,
    proof_operands,
)
from engine.numerics.grouped import GroupedWeight, first_group_difference
from engine.numerics.rowwise import exp_, rms_norm, silu
from engine.numerics.threads import thread_count

if TYPE_CHECKING:
    from engine.model.decoder import Decoder

_ROW_COUNTS = (ROW_BUCKETS[0], 24, 96, ROW_BUCKETS[-1])
_BLOCK_SIZE_TOKENS = 16
_CHUNKS = (1, 2, 61, 17)
_DECODED = 3
_SEED = 20240608


class NumericsError(RuntimeError):
    """An operation's result for a row depends on something else than that row."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """What was proven.

    Attributes:
        operations: what was looked at, in order.
        strategies: how each product is carried out.
        num_threads: the thread count that was compared with one thread.
    """

    operations: tuple[str, ...]
    strategies: dict[str, str]
    num_threads: int


def self_check(decoder: Decoder, *, num_threads: int | None = None) -> SelfCheck:
    """Prove batch invariance for a model, on one thread and on several.

    Args:
        decoder: the model that will run.
        num_threads: intra-op threads it will run with; the present number if `None`.

    Raises:
        NumericsError: an operation does not keep the contract; names it, its shape and the case.
    """
    threads = num_threads or torch.get_num_threads()
    with torch.inference_mode(), thread_count(threads):
        weights = {weight.name: weight for weight in decoder.weights()}
        operations = [
            *(_check_product(weight) for weight in weights.values()),
            *(_check_rowwise(*case, decoder.device) for case in _rowwise_cases(decoder)),
            _check_sequence(decoder),
        ]
    return SelfCheck(tuple(operations), product_strategies(decoder), threads)


def product_strategies(decoder: Decoder) -> dict[str, str]:
    """How each of a model's products is carried out, by name."""
    strategies = {weight.name: _way(weight) for weight in decoder.weights()}
    return {**strategies, "attention": str(decoder.attention.strategy)}


def _way(weight: LinearWeight | GroupedWeight) -> str:
    is_packed = isinstance(weight, LinearWeight) and weight.is_packed
    return f"{weight.strategy} of bf16 matrix units" if is_packed else str(weight.strategy)


def _check_product(weight: LinearWeight | GroupedWeight) -> str:
    if isinstance(weight, GroupedWeight):
        _require(weight.name, first_group_difference(weight, _thread_counts(), (0, *_ROW_COUNTS)))
        return weight.name

    twin, probe = proof_operands(weight)

    def product(rows: Tensor) -> Tensor:
        return linear(rows, twin)

    _require(weight.name, first_difference(product, probe, _ROW_COUNTS, _thread_counts()))
    return weight.name


def _thread_counts() -> set[int]:
    return {1, torch.get_num_threads()}


def _rowwise_cases(decoder: Decoder) -> Iterable[tuple[str, Callable[[Tensor], Tensor], int]]:
    shape, dtype = decoder.shape, decoder.dtype
    norm_weight = decoder.norm

    def norm(rows: Tensor) -> Tensor:
        return rms_norm(rows.to(dtype), norm_weight, shape.rms_norm_eps)

    def activation(rows: Tensor) -> Tensor:
        return silu(rows.to(dtype))

    def log_softmax(rows: Tensor) -> Tensor:
        return torch.log_softmax(rows, dim=-1)

    yield "rms_norm", norm, shape.hidden_size

    def routing(rows: Tensor) -> Tensor:
        return torch.softmax(rows, dim=-1)

    for width in {shape.intermediate_size, shape.moe.intermediate_size if shape.moe else shape.intermediate_size}:
        yield "silu", activation, width
    if shape.moe is not None:
        yield "softmax", routing, shape.moe.num_experts
    yield "log_softmax", log_softmax, shape.vocab_size
    yield "exp", _exp, KV_TILE
    yield "sum", _row_sum, KV_TILE


def _exp(rows: Tensor) -> Tensor:
    return exp_(rows.clone())


def _row_sum(rows: Tensor) -> Tensor:
    return rows.sum(-1, keepdim=True)


def _check_rowwise(name: str, function: Callable[[Tensor], Tensor], width: int, device: torch.device) -> str:
    probe = probe_rows(ROW_BUCKETS[-1], width, torch.float32, device)
    case = f"{name} over {width}"
    _require(case, first_difference(function, probe, _ROW_COUNTS, _thread_counts()))
    return case


def _check_sequence(decoder: Decoder) -> str:
    """One sequence in one prefill on one thread, against the same in chunks beside a neighbour, and decoded."""
    length = min(KV_TILE + 22, decoder.rotary.max_positions)
    generator = torch.Generator().manual_seed(_SEED)
    sequence, neighbour = torch.randint(decoder.shape.vocab_size, (2, length), generator=generator)
    with thread_count(1):
        expected = _hidden(decoder, sequence, (length,), None)
    name = f"forward of {length} tokens"
    chunks = _cut(length, _CHUNKS)
    decoded = (*_cut(length - _DECODED, (length,)), *(1,) * _DECODED) if length > _DECODED else chunks
    cases = {
        "in one piece": _hidden(decoder, sequence, (length,), None),
        "in chunks beside a neighbour": _hidden(decoder, sequence, chunks, neighbour),
        "decoded": _hidden(decoder, sequence, decoded, neighbour),
    }
    for case, actual in cases.items():
        _require(name, None if torch.equal(actual, expected) else case)
        last = decoder.logits(expected[-ROW_BUCKETS[0] :])
        _require("logits", None if torch.equal(decoder.logits(actual)[-ROW_BUCKETS[0] :], last) else case)
    return name


def _cut(length: int, chunks: Iterable[int]) -> tuple[int, ...]:
    """Chunk lengths that add up to `length`: as listed while they fit, then the rest."""
    cut: list[int] = []
    for chunk in chunks:
        if sum(cut) + chunk < length:
            cut.append(chunk)
    return (*cut, length - sum(cut))


def _hidden(decoder: Decoder, sequence: Tensor, chunks: Iterable[int], neighbour: Tensor | None) -> Tensor:
    """Hidden states of a sequence run in chunks; a neighbour goes first in every step, as many tokens at a time."""
    blocks = -(-sequence.shape[0] // _BLOCK_SIZE_TOKENS)
    cache = PagedKVCache(
        decoder.shape,
        num_blocks=1 + 2 * blocks,
        block_size_tokens=_BLOCK_SIZE_TOKENS,
        dtype=decoder.dtype,
        device=decoder.device,
    )
    # Backwards, so that neighbouring pages do not lie side by side.
    tables = torch.arange(2 * blocks, 0, -1, device=decoder.device).view(2, blocks)
    rows = [sequence] if neighbour is None else [neighbour, sequence]
    start, pieces = 0, []
    for length in chunks:
        positions = torch.arange(start, start + length, device=decoder.device)
        slots = tables[:, positions // _BLOCK_SIZE_TOKENS] * _BLOCK_SIZE_TOKENS + positions % _BLOCK_SIZE_TOKENS
        metadata = AttentionMetadata(
            write_slots=slots[: len(rows)].reshape(-1),
            spans=tuple(QuerySpan(index * length, length, start + length) for index in range(len(rows))),
            block_tables=tables[: len(rows)],
            block_size_tokens=_BLOCK_SIZE_TOKENS,
        )
        token_ids = torch.cat([row[start : start + length] for row in rows]).to(decoder.device)
        hidden = decoder.forward(token_ids, positions.repeat(len(rows)), cache, metadata)
        pieces.append(hidden[-length:])
        start += length
    return torch.cat(pieces)


def _require(operation: str, difference: str | None) -> None:
    if difference is not None:
        raise NumericsError(
            f"{operation}: a row's bits depend on its neighbours here ({difference} differs from the same row in the "
            "reference); tokens would depend on the batch. Try num_threads 1, or another torch build or CPU library"
        )
