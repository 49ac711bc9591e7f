"""Small phrases that reports share: names, counts and texts written by others, all of bounded width on one line."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def some(names: Sequence[str], shown: int) -> str:
    """Return the first names, and how many there are besides."""
    text = ", ".join(itertools.islice(names, shown))
    return text if len(names) <= shown else f"{text} and {len(names) - shown} more"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 request` and `2 requests`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` characters."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def on_one_line(text: str) -> str:
    """Return a text on one line, with what would move a cursor or turn the writing direction written out."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
