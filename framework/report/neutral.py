"""Text of others made harmless for whoever shows it: a terminal, a log that a pipeline reads, Markdown.

What a manifest, a golden or an engine says may hold anything. On a terminal an escape sequence moves the cursor or
renames the window, and a bidirectional control shows a text in another order than it has; a pipeline takes a line that
begins with `::` for a command; Markdown takes `@name` for a call. The writing itself is kept: what is taken out is
shown by its code.
"""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    "|[\ud800-\udfff]"
)
_WORKFLOW_COMMAND: Final = re.compile(r"^([ \t]*)::", re.MULTILINE)
_OLD_WORKFLOW_COMMAND: Final = "##["
_NEWLINE: Final = "\n"
_MARKDOWN: Final = re.compile(r"[!-$&-+\-.:<>@\[-`{-~]")


def neutral(text: str) -> str:
    """Return a text for a terminal: lines and tabs are kept, every other control is shown by its code."""
    text = _CONTROL.sub(lambda found: _code(found[0]), text)
    text = _WORKFLOW_COMMAND.sub(r"\1\\::", text)
    return text.replace(_OLD_WORKFLOW_COMMAND, "##\\[")


def markdown_code(text: str) -> str:
    """Return a text as a piece of code in one line of Markdown, in which nothing is markup, HTML, a link or a call."""
    return f"<code>{_as_entities(neutral(text).replace(_NEWLINE, ' ⏎ '))}</code>"


def markdown_block(text: str) -> str:
    """Return a text as a block of code, line by line."""
    return f"<pre>{_as_entities(neutral(text))}</pre>"


def _as_entities(text: str) -> str:
    """Return a text of which every ASCII sign is an entity: Markdown reads those as signs and never as markup."""
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", text)


def _code(character: str) -> str:
    """Return a character as Python writes it."""
    return character.encode("unicode_escape").decode("ascii")
