"""What changed between two revisions, in words and figures that fit one screen."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any

from framework.explain.words import counted, cut, on_one_line, some

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from framework.explain.figures import Figures
    from framework.explain.overview import DefaultChange, GoldenEntry, ManifestEntry, Overview

SCREEN_LINES = 40
_LINE_WIDTH = 200
_VALUE_WIDTH = 40
_SHOWN_NAMES = 8
_SHOWN_COUNTERS = 5
_SHOWN_DEFAULTS = 3
_SHOWN_MANIFEST_LINES = 8


def overview_lines(found: Overview, base: str, head: str) -> list[str]:
    """Return at most `SCREEN_LINES` lines: defaults, manifests, goldens the worst first, and what did not change."""
    lines = [_headline(found, base, head)]
    for default in found.defaults[:_SHOWN_DEFAULTS]:
        lines += _default_lines(default)
    if (hidden := len(found.defaults) - _SHOWN_DEFAULTS) > 0:
        lines.append(f"and {counted(hidden, 'more changed default')}; `--json` has them all")
    lines += _manifest_lines(found.manifests)
    lines += _golden_blocks(found.goldens, SCREEN_LINES - len(lines) - 1)
    lines.append(f"Not touched: {counted(found.untouched, 'golden')}.")
    return [cut(on_one_line(line), _LINE_WIDTH) for line in lines]


def _headline(found: Overview, base: str, head: str) -> str:
    counts = {what: sum(entry.what == what for entry in found.goldens) for what in _WHATS}
    parts = [f"{counts['changed']} changed", *(f"{n} {what}" for what, n in counts.items() if n and what != "changed")]
    manifests = f"; {counted(len(found.manifests), 'manifest')} not the same" if found.manifests else ""
    total = counted(len(found.goldens), "golden")
    return f"{base} → {head}: {total} not the same ({', '.join(parts)}), {found.untouched} untouched{manifests}."


_WHATS = ("changed", "added", "removed", "unreadable")


def _default_lines(default: DefaultChange) -> Iterator[str]:
    change = f"{default.setting} {_short(default.old)} → {_short(default.new)}"
    yield f"DEFAULT CHANGED {change}; inherited, and recorded again, by {_fixtures(default.followed_by)}"
    if default.left_behind:
        yield f"  not recorded again, so still {_short(default.old)}: {_fixtures(default.left_behind)}"
    yield f"  pinned, so not affected: {_fixtures(default.pinned_by)}" if default.pinned_by else "  no golden pins it"


def _fixtures(names: Sequence[str]) -> str:
    return f"{counted(len(names), 'fixture')} ({_some(names)})"


def _manifest_lines(entries: Sequence[ManifestEntry]) -> list[str]:
    changes = [(entry.path, entry.change) for entry in entries if entry.change]
    lines = [f"JUDGES LESS {path}: {'; '.join(change.widened)}" for path, change in changes if change.widened]
    paths = {what: [entry.path for entry in entries if entry.what == what] for what in ("removed", "added")}
    lines += [f"{counted(len(each), 'manifest')} {what}: {_some(each)}" for what, each in paths.items() if each]
    lines += [f"MANIFEST {path}: {'; '.join(change.others)}" for path, change in changes if change.others]
    hidden = len(lines) - _SHOWN_MANIFEST_LINES
    more = [f"and {counted(hidden, 'more line')} on manifests; `--json` has them all"] if hidden > 0 else []
    return lines[:_SHOWN_MANIFEST_LINES] + more


def _golden_blocks(entries: Sequence[GoldenEntry], room: int) -> list[str]:
    """Describe as many as there is room for, alike ones together, one line kept back for the names of the rest."""
    alike: dict[tuple[str, ...], list[GoldenEntry]] = {}
    for entry in entries:
        alike.setdefault((_what(entry), *_details(entry)), []).append(entry)
    lines: list[str] = []
    groups = list(alike.items())
    for number, ((what, *details), group) in enumerate(groups):
        block = ["", _group_headline(group, what), *details]
        is_last = number == len(groups) - 1
        if len(lines) + len(block) > room - (not is_last):
            rest = [entry for _, others in groups[number:] for entry in others]
            names = _some([f"{entry.fixture} ({_what(entry)})" for entry in rest])
            return [*lines, f"and {counted(len(rest), 'more golden')} (`--json` has them all): {names}"]
        lines += block
    return lines


def _group_headline(group: Sequence[GoldenEntry], what: str) -> str:
    if len(group) == 1:
        return f"{group[0].path}: {what}"
    return f"{counted(len(group), 'golden')}, {what}: {_some([entry.path for entry in group])}"


def _what(entry: GoldenEntry) -> str:
    """Return what became of a golden: how many findings of each class, or that it came, went or cannot be read."""
    if entry.change is None:
        return f"{entry.what} {entry.problem}".rstrip()
    counts = ", ".join(f"{count} {name}" for name, count in sorted(entry.change.by_class.items()))
    return counts or "no compared value changed"


def _details(entry: GoldenEntry) -> Iterator[str]:
    if (change := entry.change) is None:
        return
    accepted = f"; accepted: {_short(change.accepted)}" if change.accepted else ""
    yield f"  why ({change.date or 'no date'}): {change.reason or 'no reason is stored'}{accepted}"
    yield from (f"  {line}" for line in _figure_lines(change.figures))
    settings = [f"{each.name} {_side(each.old)} → {_side(each.new)}" for each in change.settings if not each.is_default]
    if also := [*settings, *change.moved]:
        yield f"  also changed: {', '.join(also)}"
    if change.findings and change.figures.same:
        yield f"  not changed: {', '.join(change.figures.same)}"


def _figure_lines(figures: Figures) -> Iterator[str]:
    if figures.requests:
        yield f"requests that only one of the two has: {_some(figures.requests)}"
    if (tokens := figures.tokens) is not None:
        first = f"{tokens.first.path}: {_short(tokens.first.old)} → {_short(tokens.first.new)}"
        where = counted(len(tokens.requests), "request")
        yield f"tokens: {tokens.changed} of {tokens.total} changed, in {where}, first {first}"
    moves = [f"{move.size:.3g} at {move.place.path}" for move in figures.moves]
    if moves:
        yield f"largest log-prob move: {'; '.join(moves)}"
    if figures.sections:
        shown = [f"{name} {_short(old)} → {_short(new)}" for name, old, new in figures.sections[:_SHOWN_COUNTERS]]
        hidden = len(figures.sections) - _SHOWN_COUNTERS
        yield f"figures: {', '.join(shown)}{f' and {hidden} more' if hidden > 0 else ''}"
    described = {move.field for move in figures.moves}
    others = [
        f"{name} of request{'s' if len(ids) > 1 else ''} {_some(ids)}"
        for name, ids in figures.fields.items()
        if name not in described
    ]
    if others:
        yield f"other fields: {'; '.join(others)}"


def _side(setting: Any) -> str:
    return "none" if setting is None else f"{_short(setting['value'])} ({setting['source']})"


def _some(names: Sequence[str]) -> str:
    return some(names, _SHOWN_NAMES)


def _short(value: Any) -> str:
    if isinstance(value, list) and value and all(type(each) in (int, float) for each in value):
        return f"[median {statistics.median(value):.6g} of {len(value)}]"
    return cut(json.dumps(value, ensure_ascii=False), _VALUE_WIDTH)
