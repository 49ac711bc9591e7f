"""Matrix products whose rows do not know their neighbours.

A BLAS picks a kernel, a split of the work over threads and sometimes an order of summation by the number of rows.
Here every product runs at one of a few row counts (`ROW_BUCKETS`), and a fast way of doing it is used only after each
of those counts has been shown to give the bits of the definition: sixteen rows at a time on one thread. Where no proof
succeeds, the definition itself is what runs. So the way chosen never decides a bit, only the time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from engine.numerics.threads import one_thread, run, thread_count

ROW_MULTIPLE = 4
ROW_BUCKETS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_DEFINITION_ROWS = 16
_COLUMN_MULTIPLE = 64
_SINGLE_THREAD_MULTIPLY_ADDS = 1 << 21
_PROOF_BATCHES = (1, 2, 7)
_PROOF_THREADS = (1, 2, 3, 4)
_PROOF_SEED = 20240607

Product: TypeAlias = Callable[[Tensor], Tensor]


class Strategy(StrEnum):
    """How a product is carried out, fastest first; all give the same bits.

    Proven row counts on all threads; proven row counts on one thread, where a library splits the summation over
    threads; and the definition.
    """

    BUCKETS = "buckets"
    SERIAL_BUCKETS = "serial_buckets"
    SERIAL_TILES = "serial_tiles"


@dataclass(frozen=True, slots=True)
class LinearWeight:
    """A weight made ready for `linear`.

    Attributes:
        matrix: `(in_features, out_features padded to 64)` in the dtype the product is computed in; in this layout
            libraries have the fewest special cases for few rows.
        bias: `(out_features padded to 64,)` or `None`.
        out_features: columns of the result.
        result_dtype: what the result is rounded to, once.
        strategy: how `linear` carries it out.
    """

    matrix: Tensor
    bias: Tensor | None
    out_features: int
    result_dtype: torch.dtype
    strategy: Strategy

    @property
    def name(self) -> str:
        """The product's shape, as errors and the fingerprint write it."""
        return f"linear {self.matrix.shape[0]}x{self.out_features}"

    def product(self, rows: Tensor) -> Tensor:
        """The library's product of `(M, in_features)` rows in the compute dtype, with its padded columns."""
        y = run(torch.mm, rows, self.matrix, is_small=_is_small(rows.shape[0] * self.matrix.numel()))
        return y if self.bias is None else y.add_(self.bias)

    def with_strategy(self, strategy: Strategy) -> LinearWeight:
        """The same weight, carried out in another way."""
        return replace(self, strategy=strategy)


def pad_rows(count: int) -> int:
    """The smallest number of rows, at least `count`, that splits into proven row counts."""
    assert count > 0, "a product needs at least one row"
    whole, rest = divmod(count, ROW_BUCKETS[-1])
    return whole * ROW_BUCKETS[-1] + next((size for size in ROW_BUCKETS if size >= rest), 0) * bool(rest)


def compute_dtype(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """The dtype products of `dtype` values are computed in.

    On a CPU bf16 values are widened (exactly), multiplied in fp32, and the result is rounded once: libraries without
    bf16 instructions fall back to loops ten times slower than fp32, and those with them give other bits, so that a
    golden would tell one CPU from another by a thousand times more than fp32 does.
    """
    return torch.float32 if device.type == "cpu" else dtype


def prepare_linear(
    weight: Tensor, bias: Tensor | None, *, result_dtype: torch.dtype, compute: torch.dtype
) -> LinearWeight:
    """Lay a weight out for `linear`: widened to `compute`, columns padded so that no thread gets an odd edge.

    Its strategy is the safe one, until `linear_strategy` has proven the fast one.

    Args:
        weight: `(out_features, in_features)`.
        bias: `(out_features,)` or `None`.
        result_dtype: dtype of the product's result.
        compute: dtype the product is computed in.
    """
    padding = -weight.shape[0] % _COLUMN_MULTIPLE
    matrix = functional.pad(weight.T.to(compute), (0, padding)).contiguous()
    padded_bias = None if bias is None else functional.pad(bias.to(compute), (0, padding)).contiguous()
    return LinearWeight(matrix, padded_bias, weight.shape[0], result_dtype, Strategy.SERIAL_TILES)


def linear(x: Tensor, weight: LinearWeight) -> Tensor:
    """`x @ weight.T + bias`; the bits of a row depend on that row and the weight alone.

    Args:
        x: `(T, in_features)`, `T` as `pad_rows` gives it.
        weight: from `prepare_linear`.

    Returns:
        `(T, out_features)` in the weight's result dtype.
    """
    wide = x.to(weight.matrix.dtype)
    y = by_rows(weight.product, wide, weight.strategy)
    if weight.out_features != y.shape[1]:
        y = y[:, : weight.out_features]
    return y.to(weight.result_dtype)


def batched_matmul(a: Tensor, b: Tensor, strategy: Strategy) -> Tensor:
    """`a @ b` for a batch of small matrices of one fixed shape; rows of `a` are independent of each other.

    Args:
        a: `(B, M, K)` fp32, `M` a multiple of `ROW_MULTIPLE`.
        b: `(B, K, N)` fp32.
        strategy: see `choose_strategy`.
    """
    assert a.shape[1] % ROW_MULTIPLE == 0, "rows are padded by the caller"
    if strategy is Strategy.BUCKETS:
        return run(torch.bmm, a, b, is_small=_is_small(a.numel() * b.shape[2]))
    with one_thread():
        if strategy is Strategy.SERIAL_BUCKETS:
            return torch.bmm(a, b)
        padded = functional.pad(a, (0, 0, 0, -a.shape[1] % _DEFINITION_ROWS))
        tiles = [torch.bmm(tile.contiguous(), b) for tile in torch.split(padded, _DEFINITION_ROWS, dim=1)]
    return torch.cat(tiles, dim=1)[:, : a.shape[1]].contiguous()


def by_rows(product: Product, x: Tensor, strategy: Strategy) -> Tensor:
    """Apply a row-wise product to `(T, K)` rows in the pieces that `strategy` allows.

    Raises:
        AssertionError: `T` is not what `pad_rows` returns.
    """
    if strategy is Strategy.SERIAL_TILES:
        return _in_serial_tiles(product, x)
    if strategy is Strategy.SERIAL_BUCKETS:
        with one_thread():
            return by_rows(product, x, Strategy.BUCKETS)
    if x.shape[0] <= ROW_BUCKETS[-1]:
        assert x.shape[0] in ROW_BUCKETS, f"{x.shape[0]} rows are not a proven row count"
        return product(x)
    return torch.cat([by_rows(product, piece, strategy) for piece in torch.split(x, ROW_BUCKETS[-1])])


def linear_strategy(weight: LinearWeight) -> Strategy:
    """Prove a weight's product, and return how to carry it out."""
    probe = probe_rows(ROW_BUCKETS[-1], weight.matrix.shape[0], weight.matrix.dtype, weight.matrix.device)
    return choose_strategy(weight.product, probe, ROW_BUCKETS)


def batch_strategy(*, head_dim: int, kv_tile: int, row_counts: Sequence[int], device: torch.device) -> Strategy:
    """Prove attention's two batched products, and return how to carry them out.

    Each is tried alone and as one of several in a batch, since a library may share threads out differently.

    Args:
        head_dim: numbers a head.
        kv_tile: keys a product.
        row_counts: the numbers of rows that will be run.
        device: where.
    """
    tile = probe_rows(kv_tile, head_dim, torch.float32, device)
    strategies = []
    for size in _PROOF_BATCHES:
        for right in (tile.repeat(size, 1, 1).mT, tile.repeat(size, 1, 1)):
            probe = probe_rows(max(row_counts), right.shape[1], torch.float32, device)
            strategies.append(choose_strategy(partial(_batched_product, right), probe, row_counts))
    return max(strategies, key=list(Strategy).index)


def _batched_product(right: Tensor, rows: Tensor) -> Tensor:
    """The last of a batch of equal products, `(M, K)` to `(M, N)`."""
    return batched_matmul(rows.repeat(right.shape[0], 1, 1), right, Strategy.BUCKETS)[-1]


def choose_strategy(product: Product, probe: Tensor, row_counts: Sequence[int]) -> Strategy:
    """The fastest strategy that gives the definition's bits at every row count, on 1 to 4 threads and on all.

    Args:
        product: maps `(M, K)` rows to `(M, N)` rows.
        probe: from `probe_rows`.
        row_counts: the numbers of rows that will be run.
    """
    if first_difference(product, probe, row_counts, (1,)):
        return Strategy.SERIAL_TILES
    many = {*_PROOF_THREADS, torch.get_num_threads()} - {1}
    return Strategy.SERIAL_BUCKETS if first_difference(product, probe, row_counts, many) else Strategy.BUCKETS


def probe_rows(count: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Fixed pseudo-random rows `(count, width)` to prove a product with."""
    generator = torch.Generator().manual_seed(_PROOF_SEED)
    return torch.randn(count, width, generator=generator).to(dtype=dtype, device=device)


def first_difference(
    product: Product, probe: Tensor, row_counts: Sequence[int], thread_counts: Iterable[int]
) -> str | None:
    """Name the first row and thread count whose bits are not the definition's, or `None`.

    Rows are taken from the middle of the probe, so that a row is seen at another place than in the definition.
    """
    expected = _in_serial_tiles(product, probe)
    for threads, count in itertools.product(sorted(thread_counts), row_counts):
        start = (probe.shape[0] - count) // 2 | 1 if count < probe.shape[0] else 0
        with thread_count(threads):
            actual = product(probe[start : start + count].clone())
        if not torch.equal(actual, expected[start : start + count]):
            return f"{count} rows on {threads} thread{'s' * (threads > 1)}"
    return None


def _is_small(multiply_adds: int) -> bool:
    return multiply_adds <= _SINGLE_THREAD_MULTIPLY_ADDS


def _in_serial_tiles(product: Product, x: Tensor) -> Tensor:
    """The definition: sixteen rows at a time, on one thread."""
    padded = functional.pad(x, (0, 0, 0, -x.shape[0] % _DEFINITION_ROWS))
    with one_thread():
        tiles = [product(tile) for tile in torch.split(padded, _DEFINITION_ROWS)]
    return torch.cat(tiles)[: x.shape[0]]
