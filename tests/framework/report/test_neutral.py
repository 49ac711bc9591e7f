from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from framework.redact import redacted
from framework.report.neutral import markdown_block, markdown_code, neutral
from framework.report.streams import json_text

TEXTS = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\x1b\x9b\u202e\u2066:#[]()`*_|<>&@\\\n\r\t\u3000")
)


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


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u2003", "\u1680", " \t", "\u205f"])
def test_a_command_after_any_blank_is_none(blank: str) -> None:
    assert "::error" in neutral(f"{blank}::error::owned").replace("\\::", "::")
    assert not re.search(r"^[^\S\n]*::", neutral(f"fine\n{blank}::error::owned"), re.MULTILINE)


@pytest.mark.parametrize("text", ["##[error]x", "a ##vso[task.complete]", "##teamcity[x]", "###[group]"])
def test_commands_that_stand_anywhere_are_none(text: str) -> None:
    assert not re.search(r"##[a-z]*\[", neutral(text))


def tokens(markdown: str) -> list[Token]:
    found = MarkdownIt("commonmark").enable("table").parse(markdown)
    return [token for block in found for token in (block, *(block.children or ()))]


@given(TEXTS)
@example("`" * 100 + "|<b>")
@example("\\|")
@example("")
def test_a_span_is_one_piece_of_code_also_in_a_table(text: str) -> None:
    code = markdown_code(text)
    shown = " ".join(neutral(text).replace("|", "\\x7c").replace("\n", " ⏎ ").split())
    for page in (f"a {code} b", f"| a | b |\n|---|---|\n| {code} | c |\n"):
        types = [token.type for token in tokens(page)]
        assert types.count("code_inline") == 1
        assert not {"link_open", "html_inline", "html_block", "em_open", "strong_open", "image"} & set(types)
        (span,) = (token for token in tokens(page) if token.type == "code_inline")
        assert span.content.replace("\\x60", "`").strip() == shown.replace("\\x60", "`")
        assert types.count("td_open") == (2 if page.startswith("|") else 0)


@given(TEXTS)
def test_a_block_is_one_block_line_by_line(text: str) -> None:
    (block,) = tokens(markdown_block(text))
    assert (block.type, block.content) == ("fence", f"{neutral(text)}\n")


@given(TEXTS)
def test_json_keeps_the_text_and_commands_nobody(text: str) -> None:
    written = json_text({"text": text, "list": [text]})
    assert json.loads(written) == {"text": redacted(text), "list": [redacted(text)]}
    assert written.isascii()
    assert "\x7f" not in written
    assert not re.search(r"^\s*::|##[a-z]*\[", written, re.MULTILINE | re.IGNORECASE)
