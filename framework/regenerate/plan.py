"""What a regeneration would change, decided before anything is asked or written."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from framework.compare.compare import compare_records
from framework.errors import GoldenError, MissingGoldenError
from framework.golden.document import stored_names
from framework.golden.store import Golden, golden_path, read_golden
from framework.judge import staleness
from framework.regenerate.prove import candidate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from framework.regenerate.prove import Proof

SHOWN_LINES = 12
SHOWN_WIDTH = 70


class Kind(StrEnum):
    """What happens to a golden."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Change:
    """One golden's future.

    `document` is what would be written, provenance apart; `old_data` are the bytes that lay there when this was
    planned, None if there was no file.
    """

    proof: Proof
    path: Path
    kind: Kind
    document: dict[str, Any] | None
    old_data: bytes | None
    old_seal: str | None
    by_class: Mapping[str, int]
    lines: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the change as an entry of the `golden.regen/1` document."""
        return {
            "fixture": self.proof.fixture.name,
            "platform": self.proof.platform,
            "path": str(self.path),
            "change": self.kind.value,
            "by_class": dict(self.by_class),
            "runs": self.proof.runs,
            "spread": self.proof.spread.as_json(),
            "instruction_set_error": self.proof.instruction_set_error,
            "problems": [problem.message for problem in self.proof.problems],
            "warnings": list(self.proof.warnings),
        }

    def in_words(self) -> str:
        """Return what a reviewer must see before this is written."""
        proof = self.proof
        head = f"{proof.fixture.name} [{proof.platform}]: {self.kind}, after {proof.runs} runs"
        classes = ", ".join(f"{count} {name}" for name, count in sorted(self.by_class.items()))
        lines = [f"{head} ({classes})" if classes else head]
        lines.extend(f"  {line}" for line in self.lines[:SHOWN_LINES])
        if len(self.lines) > SHOWN_LINES:
            lines.append(f"  and {len(self.lines) - SHOWN_LINES} more")
        lines.extend(f"  refused: {problem.message}" for problem in proof.problems)
        lines.extend(f"  warning: {warning}" for warning in proof.warnings)
        return "\n".join(lines)


def plan_change(proof: Proof, goldens_root: Path, target_root: Path, hashes: Mapping[str, str]) -> Change:
    """Decide what a proof changes of the golden under `goldens_root`; it would be written under `target_root`."""
    path = golden_path(target_root, proof.fixture.name, proof.platform)
    old_data = path.read_bytes() if path.is_file() else None
    if proof.problems:
        return Change(proof, path, Kind.REFUSED, None, old_data, None, {}, ())
    document = candidate(proof) | {"hashes": dict(hashes)}
    try:
        old = read_golden(golden_path(goldens_root, proof.fixture.name, proof.platform))
    except MissingGoldenError:
        return Change(proof, path, Kind.NEW, document, old_data, None, {}, (_contents(document),))
    except GoldenError as error:
        return Change(proof, path, Kind.CHANGED, document, old_data, None, {}, (f"replaces a broken one: {error}",))
    by_class, lines = _differences(proof, old, document, hashes)
    kind = Kind.CHANGED if lines else Kind.UNCHANGED
    return Change(proof, path, kind, document, old_data, old.document["seal"], by_class, tuple(lines))


def _differences(
    proof: Proof,
    old: Golden,
    document: Mapping[str, Any],
    hashes: Mapping[str, str],
) -> tuple[dict[str, int], list[str]]:
    """Compare as a run would: what lies within its tolerance has not changed, and is not written again."""
    assert proof.record is not None, "only a fixture that ran is planned"
    findings = (
        *staleness(proof.fixture, old, hashes),
        *compare_records(old.document, proof.record, proof.fixture.rules).findings,
    )
    by_class = dict(Counter(finding.kind.value for finding in findings))
    lines = [
        f"{finding.kind} {finding.path}: {_short(finding.golden)} → {_short(finding.current)}" for finding in findings
    ]
    stored, kept = stored_names(old.document), stored_names(document)
    lines.extend(f"{name} is no longer asserted, so it goes" for name in sorted(stored - kept))
    then, now = old.document["settings"], document["settings"]
    lines.extend(
        f"setting {name}: {_short(then.get(name))} → {_short(now.get(name))}"
        for name in sorted({*then, *now})
        if json.dumps(then.get(name), sort_keys=True) != json.dumps(now.get(name), sort_keys=True)
    )
    return by_class, lines


def _contents(document: Mapping[str, Any]) -> str:
    tokens = sum(len(request.get("generated_tokens", [])) for request in document["requests"].values())
    return (
        f"{len(document['requests'])} requests, {tokens} generated tokens, {len(document.get('counters', {}))} counters"
    )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN_WIDTH else f"{text[:SHOWN_WIDTH]}…"
