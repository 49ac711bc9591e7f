"""One screen of candidates, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.compare.finding import FindingClass
from framework.regenerate.difference import printable
from framework.regenerate.plan import Change, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

SCREEN_LINES = 40
SCREEN_WIDTH = 118
_LINES_FOR_ONE = 12

_GRAVITY = (
    FindingClass.STRUCTURE,
    FindingClass.RULES,
    FindingClass.LENGTH,
    FindingClass.TOKEN,
    FindingClass.TEXT,
    FindingClass.ROUTING,
    FindingClass.LOGPROB,
    FindingClass.COUNTER,
    FindingClass.PERFORMANCE,
)
"""What a reader wants to see first: other outputs, then other numbers, then another schedule."""

_KINDS = (Kind.REFUSED, Kind.CHANGED, Kind.NEW, Kind.UNCHANGED)


def worst_first(changes: Sequence[Change]) -> list[Change]:
    """Return changes with those first that a reviewer must look at first; by name where they are alike."""
    return sorted(changes, key=_gravity)


def one_screen(changes: Sequence[Change]) -> list[str]:
    """Return at most `SCREEN_LINES` lines on changes, as many for each as fit, and how many have no line."""
    ordered = worst_first(changes)
    counts = {kind: sum(change.kind is kind for change in ordered) for kind in _KINDS}
    said = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    lines = [f"{len(ordered)} candidate(s): {said}."]
    for index, change in enumerate(ordered):
        left = SCREEN_LINES - len(lines)
        if left < len(("a line", "the rest")) and index < len(ordered) - 1:
            lines.append(f"and {len(ordered) - index} more; name one to see it")
            break
        fair = max(1, min(_LINES_FOR_ONE, left - (len(ordered) - index - 1)))
        lines.extend(_of_one(change, fair))
    return lines


def _of_one(change: Change, most: int) -> list[str]:
    """Return a change in at most so many lines: what it is, why it may not come in, and what it changes."""
    classes = ", ".join(f"{count} {name}" for name, count in sorted(change.by_class.items()))
    head = f"{change.fixture} [{change.platform}]: {change.kind}" + (f" ({classes})" if classes else "")
    details = [
        *(f"  refused: {problem.message}" for problem in change.problems),
        *(f"  warning: {warning}" for warning in change.warnings),
        *(f"  {line}" for line in change.lines),
    ]
    shown = details[: most - 1]
    if len(details) > len(shown):
        hidden = len(details) - max(0, len(shown) - 1)
        shown = [*shown[:-1], f"  and {hidden} more"] if shown else []
    return [_clipped(line) for line in (head, *shown)]


def _clipped(line: str) -> str:
    flat = printable(line)
    return flat if len(flat) <= SCREEN_WIDTH else f"{flat[: SCREEN_WIDTH - 1]}…"


def _gravity(change: Change) -> tuple[int, list[tuple[int, int]], str, str]:
    places = {kind.value: place for place, kind in enumerate(_GRAVITY)}
    moved = sorted((places.get(name, len(places)), -count) for name, count in change.by_class.items())
    return _KINDS.index(change.kind), moved or [(len(places) + 1, 0)], change.fixture, change.platform
