"""What the pytest plugin says at the end, from the outcomes that the reports brought.

An outcome travels from a worker to the controller as JSON text: ASCII, so nothing a model can write breaks it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from framework.compare.finding import FindingClass
from framework.errors import ExitCode, worst_exit_code
from framework.explain.drift import Drift, collect_drift
from framework.golden.store import write_atomically
from framework.judge import Outcome, Verdict
from framework.report.json_report import RUN_SCHEMA, run_document
from framework.report.neutral import neutral
from framework.report.streams import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from framework.manifest.fixture import Fixture


def outcome_text(outcome: Outcome, fixtures: Mapping[str, Fixture]) -> str:
    """Return an outcome as the text that travels.

    `fixtures` are all of the root: who pins a setting that drifted is said of those too that did not run.
    """
    has_drift = any(finding.kind is FindingClass.SETTINGS_DRIFT for finding in outcome.findings)
    pinned = {name: sorted(fixture.engine) for name, fixture in fixtures.items()} if has_drift else {}
    return json_text({"entry": outcome.as_json(), "exit_code": int(outcome.exit_code), "pinned": pinned})


def summary_lines(texts: Sequence[str]) -> list[str]:
    """Return the lines of the terminal section: changed defaults first, then every fixture in quarantine."""
    outcomes = _parsed(texts)
    compared = sum(outcome["entry"]["compared"] for outcome in outcomes)
    seconds = sum(outcome["entry"]["seconds"] for outcome in outcomes)
    lines = [f"DEFAULT CHANGED: {drift.in_words()}." for drift in _drift(outcomes)]
    lines += [_quarantine_line(outcome["entry"]) for outcome in outcomes if "quarantine" in outcome["entry"]]
    return [*map(neutral, lines), f"{len(outcomes)} fixtures, {compared} values compared in {seconds:.1f} s"]


def _quarantine_line(entry: Mapping[str, Any]) -> str:
    note = entry["quarantine"]
    why_not = f"; {note['why_not']}" if note["why_not"] else ""
    return (
        f"IN QUARANTINE: {entry['fixture']}, which gave {entry['verdict']}: for {', '.join(note['class'])} until"
        f" {note['expires']} ({note['days_left']} days left); owner {note['owner']}, issue {note['issue']}{why_not}"
    )


def write_report(path: Path, texts: Sequence[str]) -> None:
    """Write the `golden.run/1` document."""
    outcomes = _parsed(texts)
    entries = [outcome["entry"] for outcome in outcomes]
    ran = [ExitCode(outcome["exit_code"]) for outcome in outcomes if outcome["entry"]["verdict"] != Verdict.SKIP.value]
    code = worst_exit_code(ran) if ran else ExitCode.NOTHING_SELECTED
    document = run_document(entries, _drift(outcomes), code, RUN_SCHEMA)
    write_atomically(path.absolute(), json_text(document).encode() + b"\n")


def all_skipped(texts: Sequence[str]) -> bool:
    """Say whether there are outcomes and every one of them is a skip."""
    return bool(texts) and all(outcome["entry"]["verdict"] == Verdict.SKIP.value for outcome in _parsed(texts))


def _parsed(texts: Sequence[str]) -> list[dict[str, Any]]:
    return sorted((json.loads(text) for text in texts), key=lambda outcome: str(outcome["entry"]["fixture"]))


def _drift(outcomes: Sequence[dict[str, Any]]) -> tuple[Drift, ...]:
    pinned = {name: settings for outcome in outcomes for name, settings in outcome["pinned"].items()}
    return collect_drift([outcome["entry"] for outcome in outcomes], pinned)
