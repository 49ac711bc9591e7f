"""Where a group of work items finds its queries and pages, and where its results go: index tensors of a step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from engine.kernels.cache import KV_TILE, PagedKVCache
from engine.kernels.interface import AttentionMetadata
from engine.kernels.tiling import GROUP_BUDGET, QueryItem, padded_share
from engine.numerics.gemm import pad_rows

_NUMBERS_AT_A_TIME = 1 << 18
"""Numbers of keys or values that a CPU gathers before it multiplies them: as many as its caches hold, 1 MB in fp32."""


def tiles_at_a_time(cache: PagedKVCache) -> int:
    """Tiles that are gathered and multiplied at a time: few on a CPU, as many as a group has on other devices."""
    is_cpu = cache.keys[0].device.type == "cpu"
    return max(1, (_NUMBERS_AT_A_TIME if is_cpu else GROUP_BUDGET) // (KV_TILE * cache.head_dim))


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """One group of items: S tiles of queries against `kv_tiles` tiles of keys each.

    A place is a query row of a product: `room` query tokens times the query heads that share a key/value head, the
    latter padded so that places are a multiple of `ROW_MULTIPLE`.

    Attributes:
        size: S.
        room: query tokens an item.
        places: places an item and key/value head.
        kv_tiles: tiles of keys an item.
        query_rows: `(kv_tiles * num_kv_heads * S * places,)` rows of the queries seen as `(tokens * heads, head_dim)`;
            the query is the same for every tile.
        page_tokens: tokens a page row.
        page_rows: rows of a pool seen as `(rows, page_tokens * head_dim)`, in the order of `query_rows`, cut into
            pieces of `tiles_at_a_time` tiles.
        first_masked: tiles before this one are seen by all queries.
        mask: `(kv_tiles - first_masked, 1, S, room, 1, KV_TILE)` fp32, added to scores; minus infinity where a query
            may not look.
    """

    size: int
    room: int
    places: int
    kv_tiles: int
    query_rows: Tensor
    page_tokens: int
    page_rows: tuple[Tensor, ...]
    first_masked: int
    mask: Tensor


def lay_out(
    groups: list[list[QueryItem]], cache: PagedKVCache, metadata: AttentionMetadata, query_heads: int
) -> tuple[tuple[GroupLayout, ...], Tensor]:
    """Build the index tensors of a step on the host and move them to the pages' device.

    Args:
        groups: items of one room each, longest first.
        cache: the pool.
        metadata: the step.
        query_heads: query heads of the model.

    Returns:
        The groups' layouts, and for each token and query head of the step, padded as `pad_rows` says, the row of its
        result among those of all groups `(groups' kv heads * S * places, head_dim)`.
    """
    block_tables = metadata.block_tables.cpu()
    result_rows = torch.zeros(pad_rows(metadata.write_slots.shape[0]), query_heads, dtype=torch.int64)
    layouts, first_result = [], 0
    for items in groups:
        layout, tokens, results = _lay_out_group(items, cache, block_tables, query_heads)
        result_rows[tokens] = results + first_result
        first_result += cache.num_kv_heads * layout.size * layout.places
        layouts.append(layout)
    return tuple(layouts), result_rows.view(-1).to(cache.keys[0].device)


def _lay_out_group(
    items: list[QueryItem], cache: PagedKVCache, block_tables: Tensor, query_heads: int
) -> tuple[GroupLayout, Tensor, Tensor]:
    """A group's layout, its tokens' rows `(V,)`, and the rows of their results `(V, query_heads)`."""
    size, room, kv_tiles, kv_heads = len(items), items[0].room, items[0].kv_tiles, cache.num_kv_heads
    share = query_heads // kv_heads
    padded = padded_share(room, share)
    columns = torch.tensor([(item.sequence, item.first_row, item.first_position, item.length) for item in items]).T
    sequences, first_rows, first_positions, lengths = columns
    # Places without a token repeat the item's last one, places without a head the last head.
    offsets = torch.minimum(torch.arange(room), lengths[:, None] - 1)
    rows = (first_rows[:, None] + offsets).view(-1)
    heads = [[head * share + min(place, share - 1) for place in range(padded)] for head in range(kv_heads)]
    query_rows = (rows[:, None] * query_heads + torch.tensor(heads)[:, None]).view(-1)
    first_masked = (min(item.first_position for item in items) + 1) // KV_TILE
    keys = torch.arange(first_masked * KV_TILE, kv_tiles * KV_TILE).view(-1, 1, 1, 1, 1, KV_TILE)
    is_hidden = keys > (first_positions[:, None] + offsets).view(size, room, 1, 1)
    page_tokens = min(KV_TILE, cache.block_size_tokens)
    device = cache.keys[0].device
    page_rows = _page_rows(block_tables.index_select(0, sequences), kv_tiles, cache, page_tokens).to(device)
    layout = GroupLayout(
        size=size,
        room=room,
        places=room * padded,
        kv_tiles=kv_tiles,
        query_rows=(query_rows if kv_tiles == 1 else query_rows.repeat(kv_tiles)).to(device),
        page_tokens=page_tokens,
        page_rows=torch.split(page_rows, tiles_at_a_time(cache) * KV_TILE // page_tokens),
        first_masked=first_masked,
        mask=torch.where(is_hidden, -torch.inf, 0.0).to(device),
    )
    tokens = (torch.arange(room) < lengths[:, None]).view(-1).nonzero().view(-1)
    first_places = torch.arange(query_heads).view(kv_heads, share)
    first_places += torch.arange(kv_heads)[:, None] * (size * room * padded - share)
    return layout, rows.index_select(0, tokens), tokens[:, None] * padded + first_places.view(-1)


def _page_rows(tables: Tensor, kv_tiles: int, cache: PagedKVCache, page_tokens: int) -> Tensor:
    """Page rows of S sequences' first tiles, tile by tile, then head by head, then sequence by sequence.

    Positions beyond a table read the dummy block; they are hidden from every query.
    """
    pages_per_block = cache.block_size_tokens // page_tokens
    blocks = -(-kv_tiles * KV_TILE // cache.block_size_tokens)
    pages = functional.pad(tables[:, :blocks], (0, max(0, blocks - tables.shape[1])))
    if pages_per_block > 1:
        pages = (pages[..., None] * pages_per_block + torch.arange(pages_per_block)).flatten(1)
    by_tile = pages[:, : kv_tiles * KV_TILE // page_tokens].reshape(tables.shape[0], kv_tiles, -1).transpose(0, 1)
    heads = torch.arange(cache.num_kv_heads).view(-1, 1, 1) * (cache.num_blocks * pages_per_block)
    return (by_tile.unsqueeze(1) + heads).reshape(-1)
