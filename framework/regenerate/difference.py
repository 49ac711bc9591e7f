"""How a golden would differ from the one in force, by class and in words."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.compare.compare import compare_records
from framework.compare.fields import type_of_asserted
from framework.golden.document import stored_names
from framework.judge import staleness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from framework.golden.store import Golden
    from framework.manifest.fixture import Fixture

SHOWN_WIDTH = 70


@dataclass(frozen=True, slots=True)
class Difference:
    """What would change: how many findings of each class, and a line for each and for every setting that changed."""

    by_class: Mapping[str, int]
    lines: tuple[str, ...]


def difference(fixture: Fixture, old: Golden, document: Mapping[str, Any], hashes: Mapping[str, str]) -> Difference:
    """Compare as a run would: what lies within its tolerance has not changed, and is not written again."""
    findings = (
        *staleness(fixture, old, hashes),
        *compare_records(old.document, document, fixture.rules).findings,
    )
    by_class = Counter(finding.kind.value for finding in findings)
    lines = [
        f"{finding.kind} {finding.path}: {_short(finding.golden)} → {_short(finding.current)}" for finding in findings
    ]
    seen = {finding.path for finding in findings}
    for name in sorted(stored_names(old.document) - stored_names(document)):
        if name not in seen:
            kind = type_of_asserted(name).kind
            by_class[kind.value] += 1
            lines.append(f"{kind} {name} is no longer asserted, so it goes")
    then, now = old.document["settings"], document["settings"]
    lines.extend(
        f"setting {name}: {_short(then.get(name))} → {_short(now.get(name))}"
        for name in sorted({*then, *now})
        if json.dumps(then.get(name), sort_keys=True) != json.dumps(now.get(name), sort_keys=True)
    )
    return Difference(dict(by_class), tuple(lines))


def contents(document: Mapping[str, Any]) -> str:
    """Return in one line what a golden holds that had no forerunner."""
    lists = [request.get("generated_tokens") for request in document["requests"].values()]
    tokens = sum(len(each) for each in lists if isinstance(each, list))
    return (
        f"{len(document['requests'])} requests, {tokens} generated tokens, {len(document.get('counters', {}))} counters"
    )


def printable(text: str) -> str:
    """Return a text in one line and without a terminal's controls; a candidate may say anything."""
    flat = text.replace("\n", " ")
    if flat.isprintable():
        return flat
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in flat)


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= SHOWN_WIDTH else f"{text[:SHOWN_WIDTH]}…"
