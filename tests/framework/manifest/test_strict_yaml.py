from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.errors import ManifestError
from framework.manifest import strict_yaml
from framework.manifest.strict_yaml import Mark, load_bytes, load_file


def read(text: str | bytes) -> Any:
    return load_bytes(text if isinstance(text, bytes) else text.encode(), source="a.yaml").value


def refusal(text: str | bytes) -> str:
    with pytest.raises(ManifestError) as caught:
        read(text)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_plain_data_is_read() -> None:
    text = """
        # a comment
        a: [1, two, "3", 4.0, null, true, {}]
        b: {c: 'no', "on": "010"}
        d: >-
          folded
          text
        e: |
          literal
        f: &x [1]
        g: *x
        h:
    """
    assert read(text) == {
        "a": [1, "two", "3", 4.0, None, True, {}],
        "b": {"c": "no", "on": "010"},
        "d": "folded text",
        "e": "literal\n",
        "f": [1],
        "g": [1],
        "h": None,
    }


def test_windows_line_ends_are_line_ends() -> None:
    assert read("a: 1\r\nb:\r\n  - x\r\n") == {"a": 1, "b": ["x"]}


def test_positions_of_keys_and_values_are_kept() -> None:
    document = load_bytes(b"a:\n  b: [1,\n      2]\nc: x\n", source="a.yaml")
    assert document.keys["a", "b"] == Mark(2, 3)
    assert document.values["a", "b", 1] == Mark(3, 7)
    assert document.mark(("a", "b", 9, "z")) == Mark(2, 6)
    assert document.mark(()) == Mark(1, 1)
    assert document.lines() == {"a": 1, "a.b": 2, "a.b[0]": 2, "a.b[1]": 3, "c": 4}


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1", "'a' stands here and in line 1"),
        ("a: {b: 1, b: 2}\n", "1:11", "'b' stands here and in line 1"),
        ("a: no\n", "1:4", 'Quote it: "no"'),
        ("on: 1\n", "1:1", 'Quote it: "on"'),
        ("a: 010\n", "1:4", 'Quote it: "010"'),
        ("a:\n  - 12:30:45\n", "2:5", 'Quote it: "12:30:45"'),
        ("a: 1_000\n", "1:4", "Quote it"),
        ("a: 2001-01-23\n", "1:4", "is a date"),
        ("commit: 695e0514\n", "1:9", "looks like a hash"),
        ("3: x\n", "1:1", 'Quote it: "3"'),
        ("true: x\n", "1:1", "not a string"),
        ("~: x\n", "1:1", "not a string"),
        ("[a]: x\n", "1:1", "not a string"),
        ("{a: 1}: x\n", "1:1", "not a string"),
        ("&x a: 1\n", "1:1", "an anchor on a key"),
        ("a: &x b\n*x : c\n", "2:1", "an alias as a key"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "3:3", "merge key"),
        ("a: !!str 1\n", "1:4", "tag"),
        ("a: !!python/object:os.system {}\n", "1:4", "tag"),
        ("a: ! x\n", "1:4", "tag"),
        ("a: *x\n", "1:4", "no anchor before it"),
        ("a: &x [*x]\n", "1:8", "an alias inside an anchored value"),
        ("a: &x [1]\nb: &y [*x]\n", "2:8", "an alias inside an anchored value"),
        ("a: 1\n---\nb: 2\n", "2:1", "a second document"),
        ("%YAML 1.1\n---\na: 1\n", "1:1", "directive"),
        ("%TAG ! x\n---\na: 1\n", "1:1", "directive"),
        ("", "1:1", "empty"),
        ("# nothing\n", "1:1", "empty"),
        ("a:\n\t- b\n", "2:1", "a tab in the indentation"),
        ("a: b: c\n", "1:5", "not YAML"),
        ("a: [1, 2\n", "2:1", "not YAML"),
        ("a: 'x\n", "2:1", "not YAML"),
        ("a: 1\n b: 2\n", "2:3", "not YAML"),
        ("a: x\u2028y\n", "1:5", "U+2028"),
        ("a: x\x85y\n", "1:5", "U+0085"),
        ("\ufeffa: 1\n", "1:1", "byte order mark"),
        ("a: 1\nb: \ufeffx\n", "2:4", "U+FEFF"),
        ("a: 1\n<<<<<<< HEAD\nb: 2\n", "2:1", "merge-conflict marker"),
        ("a: \x00\n", "1", "control character"),
        (b"a: 1\nb: \xff\n", "2:4", "not UTF-8"),
        (b"\xff\xfea\x00", "1:1", "byte order mark"),
    ],
)
def test_what_is_not_strict_is_refused_with_its_place(text: str | bytes, place: str, part: str) -> None:
    message = refusal(text)
    assert message.startswith(f"a.yaml:{place}: ")
    assert part in message


def test_aliases_cannot_multiply_without_bound() -> None:
    laughs = "a: &x [" + "1, " * 1000 + "1]\nb: [" + "*x, " * 200 + "*x]\n"
    assert "aliases expanded" in refusal(laughs)


@pytest.mark.parametrize("opening", ["[", "- ", "{a: ", "? "])
def test_nesting_is_bounded(opening: str) -> None:
    assert re.search(r"nested deeper|nesting|not YAML|not a string", refusal(opening * 100_000))
    assert "nested deeper" in refusal("[" * 40 + "]" * 40)


def test_size_is_bounded() -> None:
    assert "larger than" in refusal(b"#" * (strict_yaml.MAXIMUM_BYTES + 1))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ManifestError, match=re.escape(f"{path}: cannot be read")):
            load_file(path)


shaped = st.lists(
    st.sampled_from(
        [
            "a",
            ": ",
            "- ",
            "\n",
            "  ",
            "[",
            "]",
            "{",
            "}",
            ",",
            "&x ",
            "*x",
            "!t ",
            "'",
            '"',
            "|\n",
            "#",
            "1",
            "%",
            "\t",
            "---\n",
            "? ",
            "<<",
            "no",
            "é",
            "\x00",
        ]
    ),
    max_size=25,
).map("".join)


@settings(max_examples=1000, deadline=None)
@given(shaped | st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_data_or_a_refusal(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    try:
        document = load_bytes(data, source="a.yaml")
    except ManifestError as error:
        assert str(error).startswith("a.yaml")  # noqa: PT017
    else:
        assert set(document.lines()) is not None
