"""`golden diff`: what changed in the goldens between two git revisions, in words and figures."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.errors import ExitCode, GoldenError
from framework.explain.change import Change, change_between
from framework.golden.revisions import Revision, goldens_at
from framework.golden.store import parse_golden
from framework.report.streams import out, print_json
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse

_SHOWN_LINES = 6
_SHOWN_NAMES = 12
_VALUE_WIDTH = 60


@dataclass(frozen=True, slots=True)
class _Entry:
    """One golden that is not the same at both ends: added, removed, unreadable, or changed."""

    path: str
    what: str
    change: Change | None = None

    def as_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"golden": self.path, "what": self.what}
        if self.change is None:
            return entry
        return entry | {
            "reason": self.change.reason,
            "by_class": dict(self.change.by_class),
            "settings": [dict(zip(("setting", "old", "new"), each, strict=True)) for each in self.change.settings],
            "moved": list(self.change.moved),
            "findings": [finding.as_json() for finding in self.change.findings],
        }


def run(arguments: argparse.Namespace) -> ExitCode:
    """Show how the goldens of two revisions differ; a single one is compared with the working tree."""
    workspace = open_workspace(arguments.root, arguments.adapter)
    base_name, dots, head_name = arguments.revisions.partition("..")
    base = goldens_at(workspace.root, base_name or "HEAD")
    head = goldens_at(workspace.root, (head_name or "HEAD") if dots else None)
    entries = [_entry(base, head, path) for path in sorted({*base.files, *head.files}) if _differs(base, head, path)]
    unchanged = len(base.files.keys() & head.files.keys()) - sum(entry.what == "changed" for entry in entries)
    if arguments.json:
        document = {"schema": "golden.diff/1", "base": base.title, "head": head.title, "unchanged": unchanged}
        print_json(document | {"goldens": [entry.as_json() for entry in entries]})
    else:
        out("\n".join(_in_words(base, head, entries, unchanged)))
    return ExitCode.GOOD


def _differs(base: Revision, head: Revision, path: str) -> bool:
    return base.files.get(path) != head.files.get(path)


def _entry(base: Revision, head: Revision, path: str) -> _Entry:
    if path not in base.files:
        return _Entry(path, "added")
    if path not in head.files:
        return _Entry(path, "removed")
    try:
        old, new = (parse_golden(each.read(path), Path(path)).document for each in (base, head))
    except GoldenError as error:
        return _Entry(path, f"unreadable: {error}")
    return _Entry(path, "changed", change_between(old, new))


def _in_words(base: Revision, head: Revision, entries: list[_Entry], unchanged: int) -> list[str]:
    lines = [f"{len(entries)} goldens differ between {base.title} and {head.title}, {unchanged} do not."]
    lines.extend(_settings_lines(entries))
    for entry in entries:
        lines.append("")
        lines.extend(_entry_lines(entry))
    return lines


def _settings_lines(entries: list[_Entry]) -> list[str]:
    """Say every changed setting once, before anything that may follow from it."""
    reached: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for entry in entries:
        for name, old, new in entry.change.settings if entry.change else ():
            reached[name, _short(old), _short(new)].append(entry.path.rpartition("/")[0])
    return [
        f"SETTING {name}: {old} → {new} in {len(paths)} of them: {_some(paths)}"
        for (name, old, new), paths in sorted(reached.items())
    ]


def _entry_lines(entry: _Entry) -> list[str]:
    if entry.change is None:
        return [f"{entry.path}: {entry.what}"]
    change = entry.change
    counts = ", ".join(f"{count} {name}" for name, count in sorted(change.by_class.items()))
    lines = [f"{entry.path}: {counts or 'no value that is compared'}"]
    lines.append(f"  reason: {change.reason}")
    if change.moved:
        lines.append(f"  also changed: {', '.join(change.moved)}")
    lines.extend(
        f"  {finding.kind} {finding.path}: {_short(finding.golden)} → {_short(finding.current)}"
        for finding in change.findings[:_SHOWN_LINES]
    )
    if (hidden := len(change.findings) - _SHOWN_LINES) > 0:
        lines.append(f"  and {hidden} more; `--json` has them all")
    return lines


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    return shown if len(names) <= _SHOWN_NAMES else f"{shown} and {len(names) - _SHOWN_NAMES} more"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_WIDTH else f"{text[:_VALUE_WIDTH]}…"
