"""Paged attention from batched products over fixed tiles of keys, summed in order.

Every product has one shape: a few query rows against `KV_TILE` keys. A sequence's length changes only how many tiles
there are, and a hidden key adds exactly zero. So a token's result is the same alone and in a batch, in one
prefill, in chunks and in decoding; scores and sums are fp32 for every dtype and rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.kernels.cache import KV_TILE, PagedKVCache
from engine.kernels.interface import AttentionMetadata
from engine.kernels.layout import GroupLayout, lay_out
from engine.kernels.tiling import group_items
from engine.numerics.gemm import Strategy, batched_matmul
from engine.numerics.rowwise import exp_


@dataclass(frozen=True, slots=True)
class TiledAttention:
    """Grouped-query attention over pages.

    Attributes:
        num_query_heads: query heads; a multiple of the cache's key/value heads.
        scale: multiplies the queries; 0-dimensional fp32, `head_dim ** -0.5`.
        strategy: how the batched products are carried out.
    """

    num_query_heads: int
    scale: Tensor
    strategy: Strategy

    def begin(self, cache: PagedKVCache, metadata: AttentionMetadata) -> TiledStep:
        """Lay out a step: gather indices and masks, shared by all layers."""
        numbers_per_key = 2 * cache.num_kv_heads * cache.head_dim
        groups = list(group_items(metadata.spans, numbers_per_key=numbers_per_key, query_heads=self.num_query_heads))
        layouts, output_rows = lay_out(groups, cache, metadata, self.num_query_heads)
        return TiledStep(self, cache, metadata.write_slots, layouts, output_rows, _Workspace.of(cache, layouts))


@dataclass(frozen=True, slots=True)
class _Workspace:
    """Where tiles are gathered, a few at a time: memory that is allocated once a step and stays in the caches.

    Attributes:
        pages: `(tiles, KV_TILE, head_dim)` as they lie in the cache.
        tiles: the same in fp32; the same memory if the cache is in fp32.
    """

    pages: Tensor
    tiles: Tensor

    @classmethod
    def of(cls, cache: PagedKVCache, groups: tuple[GroupLayout, ...]) -> _Workspace:
        """Make room for the largest piece of a group."""
        page_rows = max(group.page_rows[0].shape[0] * group.page_tokens for group in groups)
        pages = cache.keys[0].new_empty(page_rows // KV_TILE, KV_TILE, cache.head_dim)
        return cls(pages, pages if pages.dtype is torch.float32 else pages.new_empty(pages.shape, dtype=torch.float32))

    def gather(self, pool: Tensor, rows: Tensor) -> Tensor:
        """Gather rows of a pool `(rows, page_tokens * head_dim)`: fp32 `(tiles, KV_TILE, head_dim)`, until the next."""
        count = rows.shape[0] * pool.shape[1] // self.pages[0].numel()
        torch.index_select(pool, 0, rows, out=self.pages[:count].view(-1, pool.shape[1]))
        return self.tiles[:count] if self.tiles is self.pages else self.tiles[:count].copy_(self.pages[:count])


@dataclass(frozen=True, slots=True)
class TiledStep:
    """`AttentionStep` of `TiledAttention`."""

    attention: TiledAttention
    cache: PagedKVCache
    write_slots: Tensor
    groups: tuple[GroupLayout, ...]
    output_rows: Tensor
    workspace: _Workspace

    def write(self, layer: int, k: Tensor, v: Tensor) -> None:
        """Store keys and values `(rows, num_kv_heads, head_dim)` of the step's tokens."""
        count = self.write_slots.shape[0]
        self.cache.keys[layer].index_copy_(1, self.write_slots, k[:count].transpose(0, 1))
        self.cache.values[layer].index_copy_(1, self.write_slots, v[:count].transpose(0, 1))

    def attend(self, layer: int, q: Tensor) -> Tensor:
        """Attend over the pages: `(rows, num_query_heads, head_dim)` to `(rows, num_query_heads * head_dim)`."""
        heads = q.reshape(-1, q.shape[2]).float() * self.attention.scale
        contexts = [self._attend_group(group, layer, heads) for group in self.groups]
        context = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
        return context.index_select(0, self.output_rows).view(q.shape[0], -1).to(q.dtype)

    def _attend_group(self, group: GroupLayout, layer: int, heads: Tensor) -> Tensor:
        """Context of every place of a group, fp32 `(S * num_kv_heads * places, head_dim)`."""
        queries = heads.index_select(0, group.query_rows).view(-1, group.places, self.cache.head_dim)
        scores = queries.new_empty(queries.shape[0], group.places, KV_TILE)
        for part, out, tiles in self._by_pieces(group, self.cache.keys[layer], queries, scores):
            batched_matmul(part, tiles.mT, self.attention.strategy, out)
        total = _exponentiate(group, scores)
        # The queries are not needed any more: the parts of their contexts take their place.
        for part, out, tiles in self._by_pieces(group, self.cache.values[layer], scores, queries):
            batched_matmul(part, tiles, self.attention.strategy, out)
        return _ordered_sum(group, queries).div_(total).view(-1, self.cache.head_dim)

    def _by_pieces(
        self, group: GroupLayout, pool: Tensor, left: Tensor, out: Tensor
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield a few products at a time: their left sides, where their results go, and their tiles of the pool."""
        pages = pool.view(-1, group.page_tokens * self.cache.head_dim)
        count = group.page_rows[0].shape[0] * group.page_tokens // KV_TILE
        for rows, part, result in zip(group.page_rows, torch.split(left, count), torch.split(out, count), strict=True):
            yield part, result, self.workspace.gather(pages, rows)


def _exponentiate(group: GroupLayout, scores: Tensor) -> Tensor:
    """Turn scores into weights, in place, not yet divided by their total, which is returned.

    Scores are `(N, places, KV_TILE)`, the total `(S * num_kv_heads, places, 1)`.
    """
    if group.mask.shape[0]:
        masked = scores[group.first_masked :]
        shape = (group.mask.shape[0], -1, group.room, group.places // group.room, KV_TILE)
        masked.view(shape).add_(group.mask)
    greatest, *others = scores.amax(-1, keepdim=True).split_with_sizes(group.rank_sizes)
    for part in others:
        first = greatest[: part.shape[0]]
        torch.maximum(first, part, out=first)
    exp_(scores.sub_(greatest.index_select(0, group.items)))
    return _ordered_sum(group, scores.sum(-1, keepdim=True))


def _ordered_sum(group: GroupLayout, parts: Tensor) -> Tensor:
    """Add the parts of an item's tiles `(N, places, …)` in their order: `(S * num_kv_heads, places, …)`."""
    first, *others = parts.split_with_sizes(group.rank_sizes)
    for part in others:
        first[: part.shape[0]] += part
    return first
