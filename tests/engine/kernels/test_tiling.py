from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import KV_TILE, QuerySpan
from engine.kernels.tiling import GROUP_BUDGET, QUERY_TILES, group_items, row_counts

HEADS = 4
NUMBERS_PER_KEY = 64


@st.composite
def spans(draw: st.DrawFn) -> list[QuerySpan]:
    row, result = 0, []
    for _ in range(draw(st.integers(1, 12))):
        length = draw(st.integers(1, 300))
        result.append(QuerySpan(row, length, length + draw(st.integers(0, 4000))))
        row += length
    return result


@given(spans())
def test_every_token_is_in_exactly_one_item_at_its_position(spans: list[QuerySpan]) -> None:
    found = [
        (item.sequence, item.first_row + index, item.first_position + index)
        for group in group_items(spans, numbers_per_key=NUMBERS_PER_KEY, query_heads=HEADS)
        for item in group
        for index in range(item.length)
    ]
    expected = [
        (sequence, span.query_start + index, span.kv_length - span.query_length + index)
        for sequence, span in enumerate(spans)
        for index in range(span.query_length)
    ]
    assert sorted(found) == expected


@given(spans())
def test_a_group_has_one_room_its_longest_item_first_and_a_bounded_size(spans: list[QuerySpan]) -> None:
    for group in group_items(spans, numbers_per_key=NUMBERS_PER_KEY, query_heads=HEADS):
        room, tiles = group[0].room, group[0].kv_tiles
        assert room in QUERY_TILES
        assert all(item.room == room and 1 <= item.length <= room and item.kv_tiles <= tiles for item in group)
        assert all(first.kv_tiles >= second.kv_tiles for first, second in pairwise(group))
        per_tile = KV_TILE * (NUMBERS_PER_KEY + HEADS * room)
        assert len(group) == 1 or sum(item.kv_tiles for item in group) * per_tile <= GROUP_BUDGET


def test_long_sequences_get_smaller_query_tiles() -> None:
    (group, *_) = group_items([QuerySpan(0, 64, 100_000)], numbers_per_key=NUMBERS_PER_KEY, query_heads=32)
    assert {item.room for item in group} == {16}


def test_decoding_rows_of_any_lengths_share_a_group() -> None:
    rows = [QuerySpan(index, 1, 1 + 37 * index) for index in range(32)]
    assert len(list(group_items(rows, numbers_per_key=NUMBERS_PER_KEY, query_heads=HEADS))) == 1


def test_row_counts_cover_all_query_tiles_and_are_multiples_of_four() -> None:
    assert row_counts(1) == (64, 16, 4)
    assert row_counts(5) == (320, 80, 8)
