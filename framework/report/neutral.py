"""Text of others made harmless for whoever shows it: a terminal, a log that a pipeline reads, Markdown, XML.

What a manifest, a golden or an engine says may hold anything. On a terminal an escape sequence moves the cursor or
renames the window, and a bidirectional control shows a text in another order than it has; a pipeline takes a line that
begins with `::`, or holds `##[`, for a command; Markdown takes `@name` for a call. The writing itself is kept: what is
taken out is shown by its code.
"""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    "|[\ud800-\udfff]"
)
_NO_CHARACTER: Final = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")
_WORKFLOW_COMMAND: Final = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
"""After any blanks, such as U+3000: a runner of GitHub Actions takes away all that Unicode calls white space."""

OLD_COMMAND: Final = re.compile(r"##(?=[a-z]*\[)", re.IGNORECASE)
"""What begins a command wherever it stands in a line: `##[error]`, and `##vso[…]` and `##teamcity[…]` elsewhere."""

_BACKTICKS: Final = re.compile("`+")
_MANY_BACKTICKS: Final = re.compile("`{4,}")
"""Readers of Markdown give up on very long ones, so in a span these are shown by their code."""


def neutral(text: str) -> str:
    """Return a text for a terminal: lines and tabs are kept, every other control is shown by its code."""
    shown = _NO_CHARACTER.sub(_code, _CONTROL.sub(_code, text))
    return OLD_COMMAND.sub(r"##\\", _WORKFLOW_COMMAND.sub(r"\1\\::", shown))


def markdown_code(text: str) -> str:
    """Return a text as a code span on one line of Markdown, in which nothing is markup, HTML, a link or a call.

    It may stand in a cell of a table: a `|`, which would end the cell even there, is shown by its code.
    """
    line = " ".join(neutral(text).replace("|", "\\x7c").replace("\n", " ⏎ ").split()) or " "
    line = _MANY_BACKTICKS.sub(lambda found: "\\x60" * len(found[0]), line)
    fence = _fence(line, shortest=1)
    edge = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{edge}{line}{edge}{fence}"


def markdown_block(text: str) -> str:
    """Return a text as a fenced block of code, line by line, its newline last."""
    shown = neutral(text)
    fence = _fence(shown, shortest=3)
    return f"{fence}text\n{shown}\n{fence}\n"


def _fence(text: str, *, shortest: int) -> str:
    """Return a run of backticks that no run in the text can close."""
    longest = max((len(found[0]) for found in _BACKTICKS.finditer(text)), default=0)
    return "`" * max(shortest, longest + 1)


def _code(found: re.Match[str]) -> str:
    """Return a character as Python writes it."""
    return found[0].encode("unicode_escape").decode("ascii")
