from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.stop_strings import StopStringSearch

PIECES = st.lists(st.text("abc", max_size=4), max_size=12)
STOP_STRINGS = st.lists(st.text("abc", min_size=1, max_size=5), max_size=3)


@given(PIECES, STOP_STRINGS)
def test_a_text_in_pieces_stops_where_the_whole_text_would(pieces: list[str], stop_strings: list[str]) -> None:
    search, shown, text = StopStringSearch(stop_strings), "", ""
    for piece in pieces:
        text += piece
        shown += search.add(piece)
        expected = min((text.find(stop) for stop in stop_strings if stop in text), default=None)
        assert search.found_at == expected
        if expected is not None:
            break
    assert shown + search.rest() == text[: search.found_at]


@given(PIECES, STOP_STRINGS)
def test_only_what_may_begin_a_stop_string_is_held_back(pieces: list[str], stop_strings: list[str]) -> None:
    search, shown, text = StopStringSearch(stop_strings), "", ""
    for piece in pieces:
        text += piece
        shown += search.add(piece)
        if search.found_at is not None:
            return
        held = text[len(shown) :]
        assert not held or any(stop.startswith(held) for stop in stop_strings)


def test_of_two_that_one_piece_completes_the_one_that_begins_first_counts() -> None:
    search = StopStringSearch(("c", "bcd"))
    assert search.add("abcd") == "a"
    assert search.found_at == 1
    assert search.rest() == ""


def test_of_two_in_different_pieces_the_one_that_is_complete_first_counts() -> None:
    search = StopStringSearch(("c", "bcd"))
    assert search.add("ab") == "a"
    assert search.add("c") == "b"
    assert search.found_at == 2
