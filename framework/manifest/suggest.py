"""The nearest valid name, for errors about a misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_NAME = 100


def as_sentence(text: str) -> str:
    """Return the text with a full stop, unless it ends as a sentence already."""
    return text if text.endswith(("?", ".")) else f"{text}."


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return `Did you mean "x"?` for the valid name nearest to `name`, or all of a few, or nothing."""
    names = sorted(set(valid))
    if not names:
        return ""
    by_folded = {candidate.casefold(): candidate for candidate in names}
    near = difflib.get_close_matches(name[:_LONGEST_NAME].casefold(), by_folded, n=1, cutoff=0.6)
    if near:
        return f'Did you mean "{by_folded[near[0]]}"?'
    few = 12
    return f"There are: {', '.join(names)}." if len(names) <= few else ""
