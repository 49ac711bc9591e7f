"""Products of rows with the matrix of their group, whose rows know neither their group's size nor the other groups.

A group's rows are padded to one of `ROW_BUCKETS`, and the library's grouped product is used only after each of those
sizes, beside groups of every other size, has been shown to give the bits of the definition: sixteen rows of one group
alone, on one thread. Where the proof fails, the definition is what runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from engine.numerics.gemm import ROW_BUCKETS, Strategy, cancelling, pad_rows, probe_rows
from engine.numerics.threads import one_thread, run, thread_count

_DEFINITION_ROWS = 16
_COLUMN_MULTIPLE = 64
_SINGLE_THREAD_MULTIPLY_ADDS = 1 << 21
_PROOF_SIZES = (0, *ROW_BUCKETS)
_PROOF_THREADS = (1, 2, 3, 4)

GroupedProduct: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From rows `(M, K)`, matrices `(G, K, N)` and the end of each group's rows `(G,)` int32 to rows `(M, N)`."""


@dataclass(frozen=True, slots=True)
class GroupedWeight:
    """The matrices of all groups made ready for `grouped_linear`.

    Attributes:
        matrix: `(G, in_features, out_features padded to 64)` in the dtype the product is computed in.
        out_features: columns of the result.
        result_dtype: what the result is rounded to, once.
        strategy: how `grouped_linear` carries it out.
        library: the grouped product that this device and dtype have.
    """

    matrix: Tensor
    out_features: int
    result_dtype: torch.dtype
    strategy: Strategy
    library: GroupedProduct

    @property
    def name(self) -> str:
        """The product's shape, as errors and the fingerprint write it."""
        groups, width, _ = self.matrix.shape
        return f"grouped {groups}x{width}x{self.out_features}"

    def product(self, rows: Tensor, ends: Tensor) -> Tensor:
        """The library's product in the compute dtype, with its padded columns; a tail in no group holds anything."""
        multiply_adds = rows.shape[0] * self.matrix[0].numel()
        return run(self.library, rows, self.matrix, ends, is_small=multiply_adds <= _SINGLE_THREAD_MULTIPLY_ADDS)

    def with_strategy(self, strategy: Strategy) -> GroupedWeight:
        """The same weight, carried out in another way."""
        return replace(self, strategy=strategy)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where each of S members of a group finds its row among those of all groups.

    Attributes:
        rows: `(S,)` int64, the row of each member; a group's members are together, in order.
        ends: `(G,)` int32, the end of each group's rows, of which the last may be padding.
        capacity: rows there must be room for, whatever the groups' sizes.
    """

    rows: Tensor
    ends: Tensor
    capacity: int


def bucket_table(device: torch.device) -> Tensor:
    """The rows that a group of 0, 1, … members takes: `(1 + the last of ROW_BUCKETS,)` int64."""
    return torch.tensor([0, *(pad_rows(size) for size in range(1, ROW_BUCKETS[-1] + 1))], device=device)


def place_in_groups(groups: Tensor, num_groups: int, largest: int, buckets: Tensor) -> Placement:
    """Give the members of groups their rows; nothing is read back from the device.

    Args:
        groups: `(S,)` int64, the group of each member.
        num_groups: G.
        largest: members a group can have at most, up to the last of `ROW_BUCKETS`.
        buckets: from `bucket_table`.
    """
    assert largest <= ROW_BUCKETS[-1], "a larger group would not be one proven product"
    device, count = groups.device, groups.shape[0]
    is_member = groups[:, None] == torch.arange(num_groups, device=device)
    places = is_member.cumsum(0)
    sizes = buckets.index_select(0, places[-1])
    ends = sizes.cumsum(0)
    own = groups[:, None]
    rows = places.gather(1, own)[:, 0] - 1 + (ends - sizes).index_select(0, groups)
    occupied = min(num_groups, count)
    # A bucket holds at most half as many again as its members and three.
    capacity = min(occupied * pad_rows(largest), count + count // 2 + 3 * occupied)
    return Placement(rows, ends.to(torch.int32), capacity)


def prepare_grouped(weight: Tensor, *, result_dtype: torch.dtype, compute: torch.dtype) -> GroupedWeight:
    """Lay matrices out for `grouped_linear`, with the safe strategy until `grouped_strategy` has proven the fast one.

    Args:
        weight: `(G, out_features, in_features)`.
        result_dtype: dtype of the product's result.
        compute: dtype the product is computed in.
    """
    padding = -weight.shape[1] % _COLUMN_MULTIPLE
    matrix = functional.pad(weight.mT.to(compute), (0, padding)).contiguous()
    return GroupedWeight(matrix, weight.shape[1], result_dtype, Strategy.SERIAL_TILES, _library_for(matrix))


def grouped_linear(x: Tensor, weight: GroupedWeight, ends: Tensor) -> Tensor:
    """Multiply each row with its group's matrix; its bits depend on the row and that matrix alone.

    Args:
        x: `(M, in_features)`, the groups' rows one group after another.
        weight: from `prepare_grouped`.
        ends: `(G,)` int32, the end of each group's rows; their number is 0 or one of `ROW_BUCKETS`.

    Returns:
        `(M, out_features)` in the weight's result dtype; rows after the last end hold anything.
    """
    wide = x.to(weight.matrix.dtype)
    if weight.strategy is Strategy.BUCKETS:
        y = weight.product(wide, ends)
    elif weight.strategy is Strategy.SERIAL_BUCKETS:
        with one_thread():
            y = weight.product(wide, ends)
    else:
        y = _in_serial_tiles(weight, wide, ends.tolist())
    if weight.out_features != y.shape[1]:
        y = y[:, : weight.out_features]
    return y.to(weight.result_dtype)


def grouped_strategy(weight: GroupedWeight) -> Strategy:
    """Prove a weight's product, and return how to carry it out."""
    fast = weight.with_strategy(Strategy.BUCKETS)
    if first_group_difference(fast, (1,)):
        return Strategy.SERIAL_TILES
    many = {*_PROOF_THREADS, torch.get_num_threads()} - {1}
    return Strategy.SERIAL_BUCKETS if first_group_difference(fast, many) else Strategy.BUCKETS


def first_group_difference(
    weight: GroupedWeight, thread_counts: Iterable[int], group_sizes: Sequence[int] = _PROOF_SIZES
) -> str | None:
    """Name the first group size and thread count where a row's bits are not the definition's, or `None`.

    Every group is tried at every size, each time beside groups of other sizes, with its rows at another place.
    """
    groups = min(weight.matrix.shape[0], len(group_sizes))
    part = replace(weight, matrix=weight.matrix[:groups])
    probe = probe_rows(ROW_BUCKETS[-1], part.matrix.shape[1], part.matrix.dtype, part.matrix.device)
    if part.matrix.dtype is not torch.float32:
        probe, columns = cancelling(probe, part.matrix.mT.flatten(0, 1))
        part = replace(part, matrix=columns.view_as(part.matrix.mT).mT.contiguous())
    alone = [(group + 1) * probe.shape[0] for group in range(groups)]
    expected = _in_serial_tiles(part, probe.repeat(groups, 1), alone).to(part.result_dtype)
    expected = expected.view(groups, probe.shape[0], -1)[..., : part.out_features]
    for threads, shift in itertools.product(sorted(thread_counts), range(len(group_sizes))):
        sizes = [group_sizes[(group + shift) % len(group_sizes)] for group in range(groups)]
        with thread_count(threads):
            actual = _run_sizes(part, probe, sizes)
        for group, rows in enumerate(actual):
            start = _first_row(probe, sizes[group])
            if not torch.equal(rows, expected[group, start : start + sizes[group]]):
                return f"{sizes[group]} rows of a group on {threads} thread{'s' * (threads > 1)}"
    return None


def _run_sizes(weight: GroupedWeight, probe: Tensor, sizes: Sequence[int]) -> Sequence[Tensor]:
    """Each group's results for that many rows of the probe, from one product with a tail that belongs to no group."""
    pieces = [probe[start : start + size] for size in sizes for start in [_first_row(probe, size)]]
    ends = torch.tensor(sizes, device=probe.device).cumsum(0).to(torch.int32)
    rows = grouped_linear(torch.cat((*pieces, probe[: ROW_BUCKETS[0]])), weight, ends)
    return torch.split(rows[: sum(sizes)], list(sizes))


def _first_row(probe: Tensor, size: int) -> int:
    """Rows are taken from the middle of the probe, so that a row is seen at another place than in the definition."""
    return (probe.shape[0] - size) // 2 | 1 if size < probe.shape[0] else 0


def _in_serial_tiles(weight: GroupedWeight, x: Tensor, ends: Sequence[int]) -> Tensor:
    """The definition: sixteen rows of one group at a time, on one thread."""
    y = x.new_zeros(x.shape[0], weight.matrix.shape[2])
    lone_end = torch.tensor([_DEFINITION_ROWS], dtype=torch.int32, device=x.device)
    with one_thread():
        for group, (start, end) in enumerate(itertools.pairwise((0, *ends))):
            alone = replace(weight, matrix=weight.matrix[group : group + 1])
            for first in range(start, end, _DEFINITION_ROWS):
                tile = x[first : min(first + _DEFINITION_ROWS, end)]
                padded = functional.pad(tile, (0, 0, 0, _DEFINITION_ROWS - tile.shape[0]))
                y[first : first + tile.shape[0]] = alone.product(padded, lone_end)[: tile.shape[0]]
    return y


def _library_for(matrix: Tensor) -> GroupedProduct:
    """The library's grouped product where it takes such matrices, else one product a group."""
    rows = matrix.new_zeros(ROW_BUCKETS[0], matrix.shape[1])
    ends = torch.full((1,), rows.shape[0], dtype=torch.int32, device=matrix.device)
    try:
        _grouped_mm(rows, matrix[:1], ends)
    except (RuntimeError, NotImplementedError, AttributeError):  # how torch says that it has none for this device
        return _one_product_a_group
    return _grouped_mm


def _grouped_mm(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    result: Tensor = functional.grouped_mm(rows, matrices, offs=ends)
    return result


def _one_product_a_group(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    y = rows.new_zeros(rows.shape[0], matrices.shape[2])
    for matrix, (start, end) in zip(matrices, itertools.pairwise((0, *ends.tolist())), strict=True):
        if end > start:
            y[start:end] = torch.mm(rows[start:end], matrix)
    return y
