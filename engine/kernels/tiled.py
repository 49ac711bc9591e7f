"""Paged attention from batched products over fixed tiles of keys, summed in order.

Every product has one shape: a few query rows against `KV_TILE` keys. A sequence's length changes only how many tiles
there are, and a tile of hidden keys adds exactly zero. So a token's result is the same alone and in a batch, in one
prefill, in chunks and in decoding; scores and sums are fp32 for every dtype and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from engine.kernels.cache import KV_TILE, PagedKVCache
from engine.kernels.interface import AttentionMetadata
from engine.kernels.tiling import QueryItem, group_items
from engine.numerics.gemm import ROW_MULTIPLE, Strategy, batched_matmul


@dataclass(frozen=True, slots=True)
class TiledAttention:
    """Grouped-query attention over pages.

    Attributes:
        num_query_heads: query heads; a multiple of the cache's key/value heads.
        scale: multiplies the queries, `head_dim ** -0.5`.
        strategy: how the batched products are carried out.
    """

    num_query_heads: int
    scale: float
    strategy: Strategy

    def begin(self, cache: PagedKVCache, metadata: AttentionMetadata) -> TiledStep:
        """Lay out a step: gather indices and masks, shared by all layers."""
        groups = group_items(
            metadata.spans,
            numbers_per_key=2 * cache.num_kv_heads * cache.head_dim,
            query_heads=self.num_query_heads,
        )
        layouts = tuple(_lay_out(items, cache, metadata) for items in groups)
        return TiledStep(self, cache, metadata.write_slots, layouts)


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """One group of items: S sequences' tiles of `room` queries against `kv_tiles` tiles of keys.

    Attributes:
        size: S.
        room: query tokens an item.
        kv_tiles: tiles of keys an item.
        query_rows: `(S * room,)` row of each query token; its last one's again where an item is not full.
        sources: `(V,)` the places among `S * room` that hold a token.
        targets: `(V,)` the rows those tokens have in the step.
        page_rows: `(num_kv_heads * S * blocks,)` rows of the cache seen as `(heads * num_blocks, block)`.
        first_masked: tiles before this one are seen by all queries.
        mask: `(S, kv_tiles - first_masked, room, 1, KV_TILE)` fp32, added to scores; minus infinity where a query may
            not look.
    """

    size: int
    room: int
    kv_tiles: int
    query_rows: Tensor
    sources: Tensor
    targets: Tensor
    page_rows: Tensor
    first_masked: int
    mask: Tensor


@dataclass(frozen=True, slots=True)
class TiledStep:
    """`AttentionStep` of `TiledAttention`."""

    attention: TiledAttention
    cache: PagedKVCache
    write_slots: Tensor
    groups: tuple[GroupLayout, ...]

    def write(self, layer: int, k: Tensor, v: Tensor) -> None:
        """Store keys and values `(rows, num_kv_heads, head_dim)` of the step's tokens."""
        count = self.write_slots.shape[0]
        self.cache.keys[layer].index_copy_(1, self.write_slots, k[:count].transpose(0, 1))
        self.cache.values[layer].index_copy_(1, self.write_slots, v[:count].transpose(0, 1))

    def attend(self, layer: int, q: Tensor) -> Tensor:
        """Attend over the pages: `(rows, num_query_heads, head_dim)` to `(rows, num_query_heads * head_dim)`."""
        out = q.new_zeros(q.shape[0], q.shape[1] * q.shape[2])
        for group in self.groups:
            queries = self._query_tiles(group, q)
            scores = batched_matmul(queries, self._pages(group, self.cache.keys[layer]).mT, self.attention.strategy)
            total = self._exponentiate(group, scores)
            parts = batched_matmul(scores, self._pages(group, self.cache.values[layer]), self.attention.strategy)
            context = self._ordered_sum(group, parts) / total
            out.index_copy_(0, group.targets, self._token_rows(group, context, q.shape[1]).to(q.dtype))
        return out

    def _query_tiles(self, group: GroupLayout, q: Tensor) -> Tensor:
        """Scaled queries `(heads * S * kv_tiles, room * heads a group, head_dim)`, padded to the row multiple."""
        heads, head_dim = self.cache.num_kv_heads, self.cache.head_dim
        share = q.shape[1] // heads
        padded_share = share if group.room % ROW_MULTIPLE == 0 else -(-share // ROW_MULTIPLE) * ROW_MULTIPLE
        rows = q.index_select(0, group.query_rows).view(group.size, group.room, heads, share, head_dim)
        tiles = q.new_zeros(heads, group.size, 1, group.room, padded_share, head_dim, dtype=torch.float32)
        tiles[:, :, 0, :, :share] = rows.permute(2, 0, 1, 3, 4)
        tiles.mul_(self.attention.scale)
        spread = tiles.expand(-1, -1, group.kv_tiles, -1, -1, -1)
        return spread.reshape(-1, group.room * padded_share, head_dim)

    def _pages(self, group: GroupLayout, pool: Tensor) -> Tensor:
        """Gather a group's pages, fp32 `(heads * S * kv_tiles, KV_TILE, head_dim)`."""
        blocks = pool.view(-1, self.cache.block_size_tokens * self.cache.head_dim)
        return blocks.index_select(0, group.page_rows).view(-1, KV_TILE, self.cache.head_dim).float()

    def _exponentiate(self, group: GroupLayout, scores: Tensor) -> Tensor:
        """Turn scores into weights, in place, not yet divided by their total, which is returned.

        The total is `(heads, S, rows, 1)`.
        """
        heads = self.cache.num_kv_heads
        shared = scores.view(heads, group.size, group.kv_tiles, group.room, -1, KV_TILE)
        shared[:, :, group.first_masked :].add_(group.mask)
        peaks = scores.amax(-1, keepdim=True).view(heads, group.size, group.kv_tiles, -1, 1)
        scores.view(heads, group.size, group.kv_tiles, -1, KV_TILE).sub_(peaks.amax(2, keepdim=True)).exp_()
        return self._ordered_sum(group, scores.sum(-1, keepdim=True))

    def _ordered_sum(self, group: GroupLayout, parts: Tensor) -> Tensor:
        """Add the tiles' parts `(heads * S * kv_tiles, rows, N)` one after another: `(heads, S, rows, N)`."""
        tiles = parts.view(self.cache.num_kv_heads, group.size, group.kv_tiles, parts.shape[1], parts.shape[2])
        total = tiles[:, :, 0] + 0.0
        for index in range(1, group.kv_tiles):
            total += tiles[:, :, index]
        return total

    def _token_rows(self, group: GroupLayout, context: Tensor, query_heads: int) -> Tensor:
        """Pick the tokens' rows `(V, num_query_heads * head_dim)` out of `(heads, S, rows, head_dim)`."""
        heads, head_dim = self.cache.num_kv_heads, self.cache.head_dim
        split = context.view(heads, group.size, group.room, -1, head_dim)[:, :, :, : query_heads // heads]
        rows = split.permute(1, 2, 0, 3, 4).reshape(group.size * group.room, query_heads * head_dim)
        return rows.index_select(0, group.sources)


def _lay_out(items: list[QueryItem], cache: PagedKVCache, metadata: AttentionMetadata) -> GroupLayout:
    """Build a group's index tensors on the host and move them to the pages' device."""
    room, kv_tiles, size = items[0].room, items[0].kv_tiles, len(items)
    device = cache.keys[0].device
    first_rows, first_positions, lengths = torch.tensor(
        [(item.first_row, item.first_position, item.length) for item in items]
    ).T[:, :, None]
    offsets = torch.arange(room)
    is_token = offsets < lengths
    # Places without a token repeat the item's last one.
    offsets = torch.minimum(offsets, lengths - 1)
    rows, positions = (first_rows + offsets).view(-1), first_positions + offsets
    first_masked = (int(positions.min()) + 1) // KV_TILE
    keys = torch.arange(first_masked * KV_TILE, kv_tiles * KV_TILE).view(-1, 1, 1, KV_TILE)
    mask = torch.zeros(()).masked_fill(keys > positions.view(size, 1, room, 1, 1), -torch.inf)
    sources = is_token.view(-1).nonzero().view(-1)
    return GroupLayout(
        size=size,
        room=room,
        kv_tiles=kv_tiles,
        query_rows=rows.to(device),
        sources=sources.to(device),
        targets=rows[sources].to(device),
        page_rows=_page_rows(items, cache, metadata.block_tables).to(device),
        first_masked=first_masked,
        mask=mask.to(device),
    )


def _page_rows(items: list[QueryItem], cache: PagedKVCache, block_tables: Tensor) -> Tensor:
    """Rows of `(num_kv_heads * num_blocks, block)` that hold a group's pages, head by head."""
    blocks = -(-items[0].kv_tiles * KV_TILE // cache.block_size_tokens)
    sequences = torch.tensor([item.sequence for item in items], device=block_tables.device)
    tables = block_tables[:, :blocks].index_select(0, sequences)
    tables = functional.pad(tables, (0, blocks - tables.shape[1]))
    heads = torch.arange(cache.num_kv_heads, device=block_tables.device) * cache.num_blocks
    return (heads[:, None, None] + tables).view(-1)
