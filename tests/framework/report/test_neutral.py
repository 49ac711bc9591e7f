from __future__ import annotations

import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.report.neutral import markdown_block, markdown_code, neutral

TEXTS = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x1b\x9b\u202e\u2066:#[]()`*_|<>&@\n\r\t"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("a\u202eb", "a\\u202eb"),
        ("a\rb\x00", "a\\rb\\x00"),
        ("::error::owned", "\\::error::owned"),
        ("fine\n  ::set-output name=x::y", "fine\n  \\::set-output name=x::y"),
        ("##[command]rm", "##\\[command]rm"),
        ("\ud800", "\\ud800"),
        ("Zoë in 東京 🙂\tand on\n", "Zoë in 東京 🙂\tand on\n"),
        ("std::vector", "std::vector"),
    ],
)
def test_controls_are_shown_by_their_codes_and_writing_is_kept(text: str, shown: str) -> None:
    assert neutral(text) == shown


@given(TEXTS)
def test_no_control_is_left_and_doing_it_again_changes_nothing(text: str) -> None:
    shown = neutral(text)
    assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") and char not in "\n\t"]
    assert not any(
        unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI") for char in shown
    )
    assert not re.search(r"^[ \t]*::", shown, re.MULTILINE)
    assert neutral(shown) == shown


@given(TEXTS)
def test_markdown_sees_no_markup_and_a_reader_the_text(text: str) -> None:
    code = markdown_code(text)
    inner = code.removeprefix("<code>").removesuffix("</code>")
    assert "\n" not in code
    assert not set(re.sub(r"&#\d+;", "", inner)) & set("<>&`*_[]()|@!#:.~\\$\"'{}^+-")
    assert html.unescape(inner) == neutral(text).replace("\n", " ⏎ ")
    block = markdown_block(text).removeprefix("<pre>").removesuffix("</pre>")
    assert html.unescape(block) == neutral(text)
