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

from engine.numerics.native_bf16 import has_matrix_units, pack, packed_product, packed_product_in_fp32
from engine.numerics.threads import one_thread, run, thread_count

ROW_MULTIPLE = 4
ROW_BUCKETS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_DEFINITION_ROWS = 16
_FEW_ROWS = 32
_COLUMN_MULTIPLE = 64
_SINGLE_THREAD_MULTIPLY_ADDS = 1 << 21
_SINGLE_THREAD_BATCHED_MULTIPLY_ADDS = 1 << 19
_PROOF_BATCHES = (1, 2, 7)
_PROOF_THREADS = (1, 2, 3, 4)
_PROOF_SEED = 20240607

Product: TypeAlias = Callable[[Tensor], Tensor]


class Strategy(StrEnum):
    """How a product is carried out, fastest first; all give the same bits.

    Proven row counts on all threads; those of them up to 32, where a library sums in another order for more; proven
    row counts on one thread, where it splits the summation over threads; and the definition.
    """

    BUCKETS = "buckets"
    SMALL_BUCKETS = "small_buckets"
    SERIAL_BUCKETS = "serial_buckets"
    SERIAL_TILES = "serial_tiles"


@dataclass(frozen=True, slots=True)
class LinearWeight:
    """A weight made ready for `linear`.

    Attributes:
        matrix: `(in_features, out_features padded to 64)` in the dtype the product is computed in; in this layout
            libraries have the fewest special cases for few rows. Where `is_packed`, in a layout of the library's own.
        is_packed: the CPU's bf16 matrix units multiply it.
        bias: `(out_features padded as those of the matrix,)` or `None`.
        in_features: numbers of a row.
        out_features: columns of the result.
        result_dtype: what the result is rounded to, once.
        strategy: how `linear` carries it out.
    """

    matrix: Tensor
    is_packed: bool
    bias: Tensor | None
    in_features: int
    out_features: int
    result_dtype: torch.dtype
    strategy: Strategy

    @property
    def name(self) -> str:
        """The product's shape, as errors and the fingerprint write it."""
        return f"linear {self.in_features}x{self.out_features}"

    def product(self, rows: Tensor) -> Tensor:
        """The library's product of `(M, in_features)` rows in the compute dtype, with its padded columns."""
        is_small = _is_small(rows.shape[0] * self.in_features * self.out_features)
        if self.is_packed:
            packed = packed_product_in_fp32 if self.result_dtype is torch.float32 else packed_product
            return run(packed, rows, self.matrix, self.bias, is_small=is_small)
        y = run(torch.mm, rows, self.matrix, is_small=is_small)
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

    On a CPU bf16 values are widened (exactly), multiplied in fp32, and the result is rounded once, unless it has matrix
    units for bf16: libraries without them fall back to loops that are no faster than fp32, or ten times slower.
    """
    return torch.float32 if device.type == "cpu" and not has_matrix_units() else dtype


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
    is_packed = compute is torch.bfloat16 and weight.device.type == "cpu" and has_matrix_units()
    if is_packed:
        matrix, bias = pack(weight.to(compute)), None if bias is None else bias.to(compute)
    else:
        padding = -weight.shape[0] % _COLUMN_MULTIPLE
        matrix = functional.pad(weight.T.to(compute), (0, padding)).contiguous()
        bias = None if bias is None else functional.pad(bias.to(compute), (0, padding)).contiguous()
    return LinearWeight(
        matrix=matrix,
        is_packed=is_packed,
        bias=bias,
        in_features=weight.shape[1],
        out_features=weight.shape[0],
        result_dtype=result_dtype,
        strategy=Strategy.SERIAL_TILES,
    )


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


def batched_matmul(a: Tensor, b: Tensor, strategy: Strategy, out: Tensor) -> Tensor:
    """`a @ b` for a batch of small matrices of one fixed shape; rows of `a` are independent of each other.

    Args:
        a: `(B, M, K)` fp32, `M` a multiple of `ROW_MULTIPLE`.
        b: `(B, K, N)` fp32.
        strategy: see `choose_strategy`.
        out: `(B, M, N)` fp32, which is overwritten and returned.
    """
    assert a.shape[1] % ROW_MULTIPLE == 0, "rows are padded by the caller"
    product = partial(torch.bmm, out=out)
    if strategy is Strategy.BUCKETS:
        return run(product, a, b, is_small=a.numel() * b.shape[2] <= _SINGLE_THREAD_BATCHED_MULTIPLY_ADDS)
    with one_thread():
        if strategy is Strategy.SERIAL_BUCKETS:
            return product(a, b)
        padded = functional.pad(a, (0, 0, 0, -a.shape[1] % _DEFINITION_ROWS))
        tiles = [torch.bmm(tile.contiguous(), b) for tile in torch.split(padded, _DEFINITION_ROWS, dim=1)]
    return out.copy_(torch.cat(tiles, dim=1)[:, : a.shape[1]])


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
    most = _FEW_ROWS if strategy is Strategy.SMALL_BUCKETS else ROW_BUCKETS[-1]
    if x.shape[0] <= most:
        assert x.shape[0] in ROW_BUCKETS, f"{x.shape[0]} rows are not a proven row count"
        return product(x)
    return torch.cat([by_rows(product, piece, strategy) for piece in torch.split(x, most)])


def linear_strategy(weight: LinearWeight) -> Strategy:
    """Prove a weight's product, and return how to carry it out."""
    twin, probe = proof_operands(weight)
    strategy = choose_strategy(twin.product, probe, ROW_BUCKETS)
    if strategy is not Strategy.BUCKETS:
        few = [count for count in ROW_BUCKETS if count <= _FEW_ROWS]
        if choose_strategy(twin.product, probe, few) is Strategy.BUCKETS:
            return Strategy.SMALL_BUCKETS
    return strategy


def proof_operands(weight: LinearWeight) -> tuple[LinearWeight, Tensor]:
    """A weight of the same shape and kind, and rows `(256, in_features)`, whose product shows the order of its sums."""
    dtype, device = weight.matrix.dtype, weight.matrix.device
    probe = probe_rows(ROW_BUCKETS[-1], weight.in_features, dtype, device)
    if dtype is torch.float32:
        return weight, probe
    matrix = probe_rows(weight.out_features, weight.in_features, dtype, device)
    cancelled, matrix = cancelling(probe, matrix)
    bias = None if weight.bias is None else torch.zeros(weight.out_features, dtype=dtype, device=device)
    twin = prepare_linear(matrix, bias, result_dtype=weight.result_dtype, compute=dtype)
    return twin.with_strategy(weight.strategy), cancelled


def cancelling(rows: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Change rows `(M, K)` and a matrix `(N, K)` so that each of their products is a sum of pairs that cancel out.

    Where a result is rounded to fewer digits than it was summed in, the rounding hides nearly every difference between
    one order of summation and another. A sum of zero is nothing but such differences, and rounding keeps their digits.
    """
    generator = torch.Generator().manual_seed(_PROOF_SEED)
    pairs = torch.randperm(rows.shape[1], generator=generator)[: rows.shape[1] // 2 * 2].view(2, -1).to(rows.device)
    rows, matrix = rows.clone(), matrix.clone()
    rows[:, pairs[1]] = -rows[:, pairs[0]]
    matrix[:, pairs[1]] = matrix[:, pairs[0]]
    if rows.shape[1] % 2:
        unpaired = torch.ones(rows.shape[1], dtype=torch.bool, device=rows.device).index_fill_(0, pairs.view(-1), 0)
        rows[:, unpaired] = 0
    return rows, matrix


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
    out = rows.new_empty(right.shape[0], rows.shape[0], right.shape[2])
    return batched_matmul(rows.repeat(right.shape[0], 1, 1), right, Strategy.BUCKETS, out)[-1]


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
