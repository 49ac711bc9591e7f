from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from engine.numerics.gemm import ROW_BUCKETS, Strategy, compute_dtype, pad_rows
from engine.numerics.grouped import (
    GroupedWeight,
    bucket_table,
    first_group_difference,
    grouped_linear,
    grouped_strategy,
    place_in_groups,
    prepare_grouped,
)
from engine.numerics.threads import thread_count

CPU = torch.device("cpu")
GROUPS = 8
LONGEST = 512


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with thread_count(1):
        yield


def weight_of(
    dtype: torch.dtype, *, width: int = 64, out: int = 100, compute: torch.dtype | None = None
) -> tuple[Tensor, GroupedWeight]:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(GROUPS, out, width, generator=generator).mul_(width**-0.5).to(dtype)
    prepared = prepare_grouped(weight, result_dtype=dtype, compute=compute or compute_dtype(dtype, CPU))
    return weight, prepared.with_strategy(grouped_strategy(prepared))


def multiply(rows: Tensor, groups: Tensor, weight: GroupedWeight) -> Tensor:
    """Each row with the matrix of its group, up to 256 rows at a time, as a layer of experts does it."""
    results = []
    for some, their in zip(torch.split(rows, ROW_BUCKETS[-1]), torch.split(groups, ROW_BUCKETS[-1]), strict=True):
        placed = place_in_groups(their, GROUPS, some.shape[0], bucket_table(CPU))
        sources = torch.zeros(placed.capacity, dtype=torch.int64).index_copy_(
            0, placed.rows, torch.arange(some.shape[0])
        )
        product = grouped_linear(some.index_select(0, sources), weight, placed.ends)
        results.append(product.index_select(0, placed.rows))
    return torch.cat(results)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("compute", [torch.float32, torch.bfloat16], ids=["in fp32", "in bf16"])
def test_a_rows_bits_do_not_depend_on_how_many_rows_share_its_group(dtype: torch.dtype, compute: torch.dtype) -> None:
    weight, prepared = weight_of(dtype, compute=compute)
    rows = torch.randn(LONGEST, 64, generator=torch.Generator().manual_seed(2)).to(dtype)
    alone = torch.cat([multiply(rows[place : place + 1], torch.tensor([3]), prepared) for place in range(LONGEST)])
    exact = rows.double() @ weight[3].double().T
    coarse = torch.bfloat16 in (dtype, compute)
    assert torch.allclose(alone.double(), exact, rtol=2**-7 if coarse else 1e-5, atol=2e-2 if coarse else 1e-5)
    neighbours = torch.tensor([0, 5, 5, 7])
    for count in range(1, LONGEST + 1):
        company = torch.cat((torch.full((count,), 3), neighbours))
        together = multiply(torch.cat((rows[:count], rows[:4])), company, prepared)
        assert torch.equal(together[:count], alone[:count]), f"differs among {count} rows"


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_members_have_rows_of_their_own_inside_their_group(data: st.DataObject) -> None:
    num_groups, largest = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 256))
    sizes = data.draw(st.lists(st.integers(0, largest), min_size=num_groups, max_size=num_groups).filter(any))
    members = [group for group, size in enumerate(sizes) for _ in range(size)]
    groups = torch.tensor(data.draw(st.permutations(members)) if len(members) < 60 else members[::-1])
    placed = place_in_groups(groups, num_groups, largest, bucket_table(CPU))
    starts = [0, *placed.ends.tolist()]
    assert len(set(placed.rows.tolist())) == len(members)
    for member, row in zip(groups.tolist(), placed.rows.tolist(), strict=True):
        assert starts[member] <= row < starts[member] + sizes[member]
    assert [end - start for start, end in itertools.pairwise(starts)] == [
        pad_rows(size) if size else 0 for size in sizes
    ]
    assert starts[-1] <= placed.capacity


def test_a_library_without_a_grouped_product_is_replaced_by_one_product_a_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, usual = weight_of(torch.float32)
    rows, groups = torch.randn(40, 64), torch.arange(40) % GROUPS
    expected = multiply(rows, groups, usual)

    def missing(*operands: Any, **settings: Any) -> Tensor:
        raise RuntimeError("not for this device")

    monkeypatch.setattr(functional, "grouped_mm", missing)
    _, replaced = weight_of(torch.float32)
    assert replaced.library is not usual.library
    assert torch.allclose(multiply(rows, groups, replaced), expected, rtol=1e-5, atol=1e-6)


Grouped = Callable[..., Tensor]


def depending_on_company(function: Grouped) -> Grouped:
    """What a library does that picks another kernel for many rows."""

    def changed(rows: Tensor, matrices: Tensor, *, offs: Tensor) -> Tensor:
        y = function(rows, matrices, offs=offs)
        return y * (1 + 2**-20) if rows.shape[0] > 32 else y

    return changed


def depending_on_threads(function: Grouped) -> Grouped:
    """What a library does that splits a sum over threads."""

    def changed(rows: Tensor, matrices: Tensor, *, offs: Tensor) -> Tensor:
        y = function(rows, matrices, offs=offs)
        return y if torch.get_num_threads() == 1 else y * (1 + 2**-20)

    return changed


@pytest.mark.parametrize(
    ("change", "strategy"),
    [(depending_on_company, Strategy.SERIAL_TILES), (depending_on_threads, Strategy.SERIAL_BUCKETS)],
)
def test_a_library_whose_rows_know_each_other_is_used_so_that_they_do_not(
    change: Callable[[Grouped], Grouped], strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functional, "grouped_mm", change(functional.grouped_mm))
    _, weight = weight_of(torch.float32)
    assert weight.strategy is strategy
    fast = weight.with_strategy(Strategy.BUCKETS)
    assert first_group_difference(fast, (1, 2)) is not None
    rows, groups = torch.randn(100, 64), torch.arange(100) % GROUPS
    with thread_count(2):
        assert first_group_difference(weight, (1, 2)) is None
        together = multiply(rows, groups, weight)
        assert torch.equal(multiply(rows[7:9], groups[7:9], weight), together[7:9])
