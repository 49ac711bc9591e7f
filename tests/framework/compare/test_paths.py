from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.compare.paths import Step, extend, look_up, parse_path, request_path


def test_paths_are_written_as_documented() -> None:
    assert extend(request_path("0"), ["generated_tokens", 1]) == 'requests["0"].generated_tokens[1]'
    assert extend("counters", ["step_count"]) == "counters.step_count"
    assert extend("counters", ["8", 'a"b', "é"]) == 'counters["8"]["a\\"b"]["\\u00e9"]'


steps = st.lists(st.integers(0, 10**9 - 1) | st.text(st.characters(codec=None)), max_size=4)


@given(steps)
def test_every_path_can_be_read_back(more: list[Step]) -> None:
    assert parse_path(extend("counters", more)) == ("counters", *more)


@pytest.mark.parametrize("text", ["", ".", "a.", ".a.", "a[", "a[]", "a[-1]", 'a["x]', "a b", "a[1]b", "a['x']"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="path"):
        parse_path(text)


def test_a_value_is_looked_up_by_its_path() -> None:
    record = {"requests": {"0": {"generated_tokens": [4, 5]}}}
    assert look_up(record, parse_path('requests["0"].generated_tokens[1]')) == 5
    for text in ("counters", "requests[0]", 'requests["0"].generated_tokens.a', 'requests["0"].generated_tokens[2]'):
        with pytest.raises(LookupError):
            look_up(record, parse_path(text))
