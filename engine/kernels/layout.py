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
"""Keys or values that a core gathers before it multiplies them: 1 MB in fp32, which its caches hold."""


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """One group of items: S tiles of queries, each against as many tiles of keys as its last token sees.

    Tiles of keys are laid out one rank after another: the first tile of every item, then the second tile of every item
    that has one, and so on. Items with more tiles come first, so those that have a tile of some rank are the first few.
    A product is one tile of one item and key/value head; N products, the heads of a tile side by side. A place is a
    query row of a product: `room` query tokens times the query heads that share a key/value head, the latter padded so
    that places are a multiple of `ROW_MULTIPLE`.

    Attributes:
        room: query tokens an item.
        places: places an item and key/value head.
        rank_sizes: products of each rank, never growing; they add up to N.
        query_rows: `(N * places,)` rows of the queries seen as `(tokens * heads, head_dim)`.
        page_tokens: tokens a page row.
        page_rows: rows of a pool seen as `(rows, page_tokens * head_dim)`, product after product; cut into pieces of
            as many products as are gathered at a time.
        items: `(N,)` the item and head, of `rank_sizes[0]`, that each product belongs to.
        first_masked: products before this one are seen by all queries.
        mask: `((N - first_masked) / num_kv_heads, 1, room, 1, KV_TILE)` fp32, added to scores; minus infinity where a
            query may not look.
    """

    room: int
    places: int
    rank_sizes: tuple[int, ...]
    query_rows: Tensor
    page_tokens: int
    page_rows: tuple[Tensor, ...]
    items: Tensor
    first_masked: int
    mask: Tensor


def lay_out(
    groups: list[list[QueryItem]], cache: PagedKVCache, metadata: AttentionMetadata, query_heads: int
) -> tuple[tuple[GroupLayout, ...], Tensor]:
    """Build the index tensors of a step on the host and move them to the pages' device.

    Args:
        groups: items of one room each, those with the most tiles first.
        cache: the pool.
        metadata: the step.
        query_heads: query heads of the model.

    Returns:
        The groups' layouts, and for each token and query head of the step, padded as `pad_rows` says, the row of its
        result among those of all groups `(groups' S * kv heads * places, head_dim)`.
    """
    block_tables = metadata.block_tables.cpu()
    result_rows = torch.zeros(pad_rows(metadata.write_slots.shape[0]), query_heads, dtype=torch.int64)
    layouts, first_result = [], 0
    for items in groups:
        layout, tokens, results = _lay_out_group(items, cache, block_tables, query_heads)
        result_rows[tokens] = results + first_result
        first_result += layout.rank_sizes[0] * layout.places
        layouts.append(layout)
    return tuple(layouts), result_rows.view(-1).to(cache.keys[0].device)


def _lay_out_group(
    items: list[QueryItem], cache: PagedKVCache, block_tables: Tensor, query_heads: int
) -> tuple[GroupLayout, Tensor, Tensor]:
    """A group's layout, its tokens' rows `(V,)`, and the rows of their results `(V, query_heads)`."""
    room, kv_heads, device = items[0].room, cache.num_kv_heads, cache.keys[0].device
    share = query_heads // kv_heads
    padded = padded_share(room, share)
    places = room * padded
    columns = torch.tensor([(item.sequence, item.first_row, item.first_position, item.length) for item in items]).T
    sequences, first_rows, first_positions, lengths = columns
    # Places without a token repeat the item's last one, places without a head the last head.
    offsets = torch.minimum(torch.arange(room), lengths[:, None] - 1)
    rows = first_rows[:, None] + offsets
    heads = torch.tensor(
        [[head * share + min(place, share - 1) for place in range(padded)] for head in range(kv_heads)]
    )
    query_rows = rows[:, None, :, None] * query_heads + heads[:, None]  # (S, kv heads, room, padded)
    tile_counts = torch.tensor([item.kv_tiles for item in items])
    ranks, tile_items = (torch.arange(items[0].kv_tiles)[:, None] < tile_counts).nonzero().T.unbind()
    first_masked_rank = (min(item.first_position for item in items) + 1) // KV_TILE
    first_masked = int((ranks < first_masked_rank).sum())
    keys = ranks[first_masked:, None] * KV_TILE + torch.arange(KV_TILE)
    positions = (first_positions[:, None] + offsets).index_select(0, tile_items[first_masked:])
    is_hidden = keys[:, None, None, None] > positions[:, None, :, None, None]
    page_tokens = min(KV_TILE, cache.block_size_tokens)
    page_rows = _page_rows(block_tables.index_select(0, sequences), ranks, tile_items, cache, page_tokens).to(device)
    layout = GroupLayout(
        room=room,
        places=places,
        rank_sizes=tuple((torch.bincount(ranks) * kv_heads).tolist()),
        query_rows=query_rows.index_select(0, tile_items).view(-1).to(device),
        page_tokens=page_tokens,
        page_rows=torch.split(page_rows, _products_at_a_time(len(ranks) * kv_heads, cache) * KV_TILE // page_tokens),
        items=(tile_items[:, None] * kv_heads + torch.arange(kv_heads)).view(-1).to(device),
        first_masked=first_masked * kv_heads,
        mask=torch.where(is_hidden, -torch.inf, 0.0).to(device),
    )
    tokens = (torch.arange(room) < lengths[:, None]).view(-1).nonzero().view(-1)
    item, place = tokens // room, tokens % room * padded
    first_places = (torch.arange(kv_heads)[:, None] * places + torch.arange(share)).view(-1)
    results = (item * kv_heads * places + place)[:, None] + first_places
    return layout, rows.view(-1).index_select(0, tokens), results


def _products_at_a_time(count: int, cache: PagedKVCache) -> int:
    """Of `count` products, those that are gathered at a time: on a CPU as many as its cores' caches hold."""
    device = cache.keys[0].device
    numbers = _NUMBERS_AT_A_TIME * torch.get_num_threads() if device.type == "cpu" else GROUP_BUDGET
    most = max(1, numbers // (KV_TILE * cache.head_dim))
    return -(-count // -(-count // most))


def _page_rows(tables: Tensor, ranks: Tensor, items: Tensor, cache: PagedKVCache, page_tokens: int) -> Tensor:
    """Page rows of the tiles of some ranks of some items, tile by tile, then head by head.

    Positions beyond a table read the dummy block; they are hidden from every query.
    """
    pages_per_block = cache.block_size_tokens // page_tokens
    pages_per_tile = KV_TILE // page_tokens
    places = ranks[:, None] * pages_per_tile + torch.arange(pages_per_tile)
    blocks = functional.pad(tables, (0, max(0, int(places.max()) // pages_per_block + 1 - tables.shape[1])))
    pages = blocks[items[:, None], places // pages_per_block] * pages_per_block + places % pages_per_block
    heads = torch.arange(cache.num_kv_heads)[:, None] * (cache.num_blocks * pages_per_block)
    return (pages[:, None] + heads).view(-1)
