"""How a step's query rows are cut into groups of work items. Plain integers, no tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.kernels.cache import KV_TILE
from engine.kernels.interface import QuerySpan
from engine.numerics.gemm import ROW_MULTIPLE

QUERY_TILES = (64, 16, 1)
"""Query tokens an item may have room for."""

GROUP_BUDGET = 1 << 22
"""Numbers (scores, keys and values) a group may hold at a time; bounds memory at long lengths."""


def padded_share(room: int, share: int) -> int:
    """Places a query token gets for the `share` query heads of one key/value head.

    So many that an item's places, `room * padded_share`, are a multiple of `ROW_MULTIPLE`.
    """
    return share if room % ROW_MULTIPLE == 0 else -(-share // ROW_MULTIPLE) * ROW_MULTIPLE


def row_counts(share: int) -> tuple[int, ...]:
    """The numbers of rows that attention's products are run with."""
    return tuple(room * padded_share(room, share) for room in QUERY_TILES)


@dataclass(frozen=True, slots=True)
class QueryItem:
    """Consecutive query tokens of one sequence.

    Attributes:
        sequence: index of its span.
        first_row: its first row among the step's tokens.
        first_position: that token's position in its sequence.
        length: its tokens, at most `room`.
        room: query tokens its group computes for, a member of `QUERY_TILES`.
    """

    sequence: int
    first_row: int
    first_position: int
    length: int
    room: int

    @property
    def kv_tiles(self) -> int:
        """Tiles of keys that its last token sees."""
        return (self.first_position + self.length - 1) // KV_TILE + 1


def group_items(spans: Sequence[QuerySpan], *, numbers_per_key: int, query_heads: int) -> Iterator[list[QueryItem]]:
    """Cut spans into items and yield them in groups of one room, those with the most tiles of keys first.

    Neither the cut nor the grouping decides a bit of the result.

    Args:
        spans: the step's sequences.
        numbers_per_key: numbers gathered for a key position (keys and values of all heads).
        query_heads: heads that a query token is scored with.
    """
    items = [item for index, span in enumerate(spans) for item in _cut(index, span, query_heads)]
    items.sort(key=lambda item: (item.room, -item.kv_tiles))
    group: list[QueryItem] = []
    size = 0
    for item in items:
        numbers = item.kv_tiles * KV_TILE * (numbers_per_key + query_heads * item.room)
        if group and (item.room != group[0].room or size + numbers > GROUP_BUDGET):
            yield group
            group, size = [], 0
        group.append(item)
        size += numbers
    if group:
        yield group


def _cut(sequence: int, span: QuerySpan, query_heads: int) -> Iterator[QueryItem]:
    """Cut one span: large tiles while they are more than half full, then small ones; a lone token on its own."""
    large, small, single = QUERY_TILES
    if large * query_heads * span.kv_length > GROUP_BUDGET:
        large = small
    done = 0
    while done < span.query_length:
        left = span.query_length - done
        room = large if left > large // 2 else small if left > 1 else single
        length = min(room, left)
        yield QueryItem(
            sequence=sequence,
            first_row=span.query_start + done,
            first_position=span.kv_length - left,
            length=length,
            room=room,
        )
        done += length
