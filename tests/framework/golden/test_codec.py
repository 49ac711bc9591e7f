from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.errors import ExitCode, GoldenError, MissingGoldenError
from framework.golden.codec import (
    MAX_DEPTH,
    canonical_bytes,
    decode_canonical,
    decode_json,
    non_finite_paths,
    read_json,
)

WHERE = Path("some.json")

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
)
json_values = st.recursive(
    _scalars,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=4), children, max_size=4),
    max_leaves=20,
)


def through_json(value: Any) -> Any:
    """Two lone surrogates that make a pair are one character for every JSON reader."""
    return json.loads(json.dumps(value))


@given(json_values)
@settings(max_examples=300, deadline=None)
def test_what_is_written_is_read_back_and_written_the_same(value: Any) -> None:
    value = through_json(value)
    data = canonical_bytes(value)
    read = decode_json(data, WHERE)
    assert repr(read) == repr(_sorted(value))
    assert canonical_bytes(read) == data


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def test_key_order_does_not_matter_and_list_order_does() -> None:
    assert canonical_bytes({"b": 1, "a": [1, 2]}) == canonical_bytes({"a": [1, 2], "b": 1})
    assert canonical_bytes([1, 2]) != canonical_bytes([2, 1])


def test_a_list_of_numbers_stands_on_one_line() -> None:
    assert canonical_bytes({"a": [1, 2.5], "b": [[1], [2]], "c": [{"id": 1, "a": 0.5}], "d": [], "e": {}}) == (
        b'{\n  "a": [1, 2.5],\n  "b": [\n    [1],\n    [2]\n  ],\n  "c": [\n    {"a": 0.5, "id": 1}\n  ],\n'
        b'  "d": [],\n  "e": {}\n}\n'
    )


@pytest.mark.parametrize("text", ["\ud800", "\u2028", "\x1e", "é", "e\u0301", "😀", "\r\n", "nan", 'a"b\\c'])
def test_any_text_survives_as_ascii_without_carriage_returns(text: str) -> None:
    data = canonical_bytes({"text": text})
    assert data.isascii()
    assert b"\r" not in data
    assert decode_json(data, WHERE) == {"text": text}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, (1, 2), {1: 2}, {"a": [{2: 1}]}, b"x", {1, 2}])
def test_what_json_has_not_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(ValueError, match=r"canonical|JSON|string|range"):
        canonical_bytes({"value": value})


def test_a_list_with_nan_has_no_canonical_form() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical_bytes([1.0, math.nan])


def test_values_too_deep_to_be_read_back_are_not_written() -> None:
    with pytest.raises(ValueError, match="levels deep"):
        canonical_bytes(_nested(MAX_DEPTH + 2))
    assert decode_json(canonical_bytes(_nested(MAX_DEPTH - 1)), WHERE) == _nested(MAX_DEPTH - 1)


def _nested(depth: int) -> Any:
    value: Any = "leaf"
    for _ in range(depth):
        value = [value]
    return value


UNREADABLE = {
    "empty": (b"", "empty"),
    "blank": (b" \n\n", "empty"),
    "truncated": (b'{"a": [1, 2', "truncated"),
    "cut in a string": (b'{"a": "xy', "truncated"),
    "byte order mark": (b"\xef\xbb\xbf{}", "byte order mark"),
    "utf-16": (b"\xff\xfe{\x00}\x00", "byte order mark"),
    "latin-1": (b'{"a": "\xe9"}', "not UTF-8"),
    "two documents": (b"{}\n{}\n", "second document"),
    "conflict": (b'{\n<<<<<<< ours\n"a": 1\n=======\n"a": 2\n>>>>>>> theirs\n}', "merge-conflict markers at line 2"),
    "duplicate keys": (b'{"a": 1, "b": {"c": 1, "c": 2}}', 'key "c" stands twice'),
    "long integer": (b"[" + b"9" * 5000 + b"]", "too long"),
    "deep": (b"[" * 100_000 + b"]" * 100_000, "levels deep"),
    "deep and unclosed": (b'{"a":' * 100_000, "levels deep"),
    "just too deep": (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "levels deep"),
    "control character": (b'{"a": "\x01"}', "not JSON"),
    "not JSON": (b"{a: 1}", "not JSON at line 1 column 2"),
}


@pytest.mark.parametrize(("data", "cause"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable_files_name_path_and_cause(tmp_path: Path, data: bytes, cause: str) -> None:
    path = tmp_path / "golden.json"
    path.write_bytes(data)
    with pytest.raises(GoldenError) as caught:
        read_json(path)
    assert caught.value.exit_code is ExitCode.GOLDEN
    assert str(path) in str(caught.value)
    assert "golden unreadable: " in str(caught.value)
    assert cause in str(caught.value)


def test_a_missing_file_is_told_apart_from_an_unreadable_one(tmp_path: Path) -> None:
    with pytest.raises(MissingGoldenError):
        read_json(tmp_path / "none.json")
    with pytest.raises(GoldenError) as caught:
        read_json(tmp_path)
    assert not isinstance(caught.value, MissingGoldenError)


def test_a_file_that_is_far_too_large_is_refused_without_being_parsed(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(64 * 2**20 + 1)
    with pytest.raises(GoldenError, match="larger than 64 MB"):
        read_json(path)


def test_brackets_in_texts_are_not_nesting() -> None:
    text = "[" * 1000 + '\\"' + "{" * 1000
    assert decode_json(json.dumps({"a": text, "b": [text] * 100}).encode(), WHERE)["a"] == text


def test_nesting_up_to_the_bound_is_read() -> None:
    assert decode_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, WHERE) is not None


def test_numbers_that_are_not_finite_are_read_so_that_they_can_be_found() -> None:
    value = decode_json(b'{"a": [1, NaN], "b": {"c": -Infinity}, "d": 1e400, "e": 2}', WHERE)
    assert non_finite_paths(value) == ["a[1]", "b.c", "d"]


@given(st.binary(max_size=60) | st.text('[]{}",:0123456789.eE+-ntfalsru\\ \n', max_size=60).map(str.encode))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(GoldenError):
        canonical = json.dumps(decode_json(data, WHERE))
        assert json.dumps(json.loads(canonical)) == canonical


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"[" + b"[]," * 4_000_001 + b"1]", "4,000,000 lists"),
        (b"[" + b"{}," * 1_000_001 + b"1]", "1,000,000 objects"),
        (b"{" + b'"a":1,' * 2_000_001 + b'"b":1}', "2,000,000 keys"),
    ],
)
def test_bytes_that_would_take_many_times_their_size_are_refused_before_they_are_parsed(data: bytes, what: str) -> None:
    for decode in (decode_json, decode_canonical):
        with pytest.raises(GoldenError, match=f"golden unreadable: more than {what}"):
            decode(data, Path("g.json"))
