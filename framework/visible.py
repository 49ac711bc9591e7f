"""Whether a reader can see a text at all."""

from __future__ import annotations

import unicodedata

_LOOK_EMPTY = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Fillers that Unicode counts as letters or symbols, and that nobody can see."""


def is_visible(text: str) -> bool:
    """Say whether a text has a character that a reader can see: a letter, a number, punctuation or a symbol."""
    return any(unicodedata.category(char)[0] in "LNPS" and char not in _LOOK_EMPTY for char in text)
