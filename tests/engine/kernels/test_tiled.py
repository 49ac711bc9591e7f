"""Paged attention against the textbook: fp64, dense, one sequence after another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import Tensor

from engine.kernels import KV_TILE, AttentionMetadata, PagedKVCache, QuerySpan
from engine.kernels.tiled import TiledAttention
from engine.kernels.tiling import row_counts
from engine.numerics import Strategy
from engine.numerics.gemm import batch_strategy

HEAD_DIM = 16


@dataclass(frozen=True)
class Shape:
    num_kv_heads: int
    num_layers: int = 1
    head_dim: int = HEAD_DIM


@dataclass(frozen=True)
class Case:
    """Sequences of some lengths, the last tokens of which are queries."""

    lengths: tuple[int, ...]
    queries: tuple[int, ...]


CASES = {
    "decode": Case((1, 5, 64, 65, 200), (1, 1, 1, 1, 1)),
    "prefill": Case((1, 5, 64, 65, 200), (1, 5, 64, 65, 200)),
    "mixed": Case((130, 40, 300, 128, 7), (1, 17, 90, 2, 7)),
    "full tiles alone": Case((64, 128, 192), (1, 1, 1)),
}


def dense(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of one sequence: `(n, H, D)`, `(L, K, D)`, `(L, K, D)` to `(n, H, D)`."""
    share = q.shape[1] // k.shape[1]
    q, k, v = q.double(), k.double().repeat_interleave(share, 1), v.double().repeat_interleave(share, 1)
    scores = torch.einsum("nhd,lhd->hnl", q, k) * HEAD_DIM**-0.5
    last = torch.arange(k.shape[0] - q.shape[0], k.shape[0])
    scores.masked_fill_(torch.arange(k.shape[0]) > last[:, None], -torch.inf)
    return torch.einsum("hnl,lhd->nhd", scores.softmax(-1), v)


def attend(
    case: Case, *, query_heads: int, kv_heads: int, block_size: int, strategy: Strategy, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Results of the pages and of the textbook, `(queries, H * D)`."""
    generator = torch.Generator().manual_seed(4)
    blocks = [-(-length // block_size) for length in case.lengths]
    free = (1 + torch.randperm(sum(blocks), generator=torch.Generator().manual_seed(3))).tolist()
    cache = PagedKVCache(
        Shape(kv_heads),
        num_blocks=1 + sum(blocks),
        block_size_tokens=block_size,
        dtype=dtype,
        device=torch.device("cpu"),
    )
    tables = torch.zeros(len(blocks), max(blocks), dtype=torch.int64)
    slots, spans, expected = [], [], []
    queries: list[Tensor] = []
    for index, (length, count) in enumerate(zip(case.lengths, case.queries, strict=True)):
        tables[index, : blocks[index]] = torch.tensor([free.pop() for _ in range(blocks[index])])
        positions = torch.arange(length)
        places = tables[index, positions // block_size] * block_size + positions % block_size
        q = torch.randn(count, query_heads, HEAD_DIM, generator=generator).to(dtype)
        k, v = torch.randn(2, length, kv_heads, HEAD_DIM, generator=generator).to(dtype)
        cache.keys[0][:, places] = k.transpose(0, 1)
        cache.values[0][:, places] = v.transpose(0, 1)
        spans.append(QuerySpan(sum(part.shape[0] for part in queries), count, length))
        slots.append(places[-count:])
        queries.append(q)
        expected.append(dense(q, k, v))
    rows = torch.cat(queries)
    padding = -rows.shape[0] % 256
    attention = TiledAttention(query_heads, torch.tensor(HEAD_DIM**-0.5), strategy)
    write_slots = torch.cat([*slots, torch.zeros(padding, dtype=torch.int64)])
    step = attention.begin(cache, AttentionMetadata(write_slots, tuple(spans), tables, block_size))
    actual = step.attend(0, torch.cat((rows, torch.full((padding, query_heads, HEAD_DIM), 1e3).to(dtype))))
    assert bool(actual.isfinite().all())
    return actual[: rows.shape[0]], torch.cat(expected).flatten(1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("query_heads", "kv_heads"), [(2, 2), (6, 2), (4, 1), (9, 3)])
def test_pages_give_what_the_textbook_gives(query_heads: int, kv_heads: int, case: str, dtype: torch.dtype) -> None:
    actual, expected = attend(
        CASES[case],
        query_heads=query_heads,
        kv_heads=kv_heads,
        block_size=16,
        strategy=Strategy.BUCKETS,
        dtype=dtype,
    )
    tolerance = 1e-5 if dtype is torch.float32 else 2**-8
    assert torch.allclose(actual.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("block_size", [1, 8, 64, 128, 256])
def test_block_size_and_proven_strategy_do_not_change_a_bit(case: str, block_size: int) -> None:
    run = partial(attend, CASES[case], query_heads=6, kv_heads=2, dtype=torch.float32)
    reference, _ = run(block_size=16, strategy=Strategy.SERIAL_TILES)
    proven = batch_strategy(head_dim=HEAD_DIM, kv_tile=KV_TILE, row_counts=row_counts(3), device=torch.device("cpu"))
    actual, _ = run(block_size=block_size, strategy=proven)
    assert torch.equal(actual, reference)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("tiles", [1, 2, 5, 1000])
def test_how_many_tiles_are_gathered_at_a_time_does_not_change_a_bit(
    monkeypatch: pytest.MonkeyPatch, case: str, dtype: torch.dtype, tiles: int
) -> None:
    run = partial(attend, CASES[case], query_heads=6, kv_heads=2, block_size=16, strategy=Strategy.BUCKETS, dtype=dtype)
    reference, _ = run()
    monkeypatch.setattr("engine.kernels.layout._NUMBERS_AT_A_TIME", tiles * KV_TILE * HEAD_DIM)
    actual, _ = run()
    assert torch.equal(actual, reference)


def test_writing_puts_tokens_into_their_slots_and_padding_into_the_dummy_block() -> None:
    cache = PagedKVCache(Shape(2), num_blocks=3, block_size_tokens=4, dtype=torch.float32, device=torch.device("cpu"))
    metadata = AttentionMetadata(
        torch.tensor([9, 4, 0, 0]), (QuerySpan(0, 1, 2), QuerySpan(1, 1, 1)), torch.tensor([[2], [1]]), 4
    )
    step = TiledAttention(2, torch.tensor(1.0), Strategy.BUCKETS).begin(cache, metadata)
    k, v = torch.randn(2, 8, 2, HEAD_DIM)
    step.write(0, k, v)
    for slot, row in ((9, 0), (4, 1)):
        assert torch.equal(cache.keys[0][:, slot], k[row])
        assert torch.equal(cache.values[0][:, slot], v[row])
    untouched = [slot for slot in range(4, 12) if slot not in (9, 4)]
    assert not cache.keys[0][:, untouched].any()
