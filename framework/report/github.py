"""Annotations of GitHub Actions: at most ten, the worst first, each at the line of the manifest that was broken.

The forms are those that the documentation of workflow commands gives: `%`, CR and LF are written as `%25`, `%0D` and
`%0A`, and in a property `:` and `,` as `%3A` and `%2C` too. GitHub shows ten errors a step and drops the rest without a
word, so the tenth says how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from framework.compare.finding import Finding
from framework.judge import Verdict
from framework.redact import redacted
from framework.report.neutral import neutral
from framework.report.text import severity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from framework.judge import Outcome
    from framework.manifest.fixture import Fixture
    from framework.run.session import Report

MOST: Final = 10
_LONGEST_MESSAGE: Final = 1_000
_UNREMARKABLE: Final = (Verdict.PASS, Verdict.SKIP)


def workflow_commands(report: Report, fixtures: Mapping[str, Fixture], root: Path) -> list[str]:
    """Return the workflow commands of a report; `root` is what paths of manifests are relative to."""
    noted = [
        outcome
        for outcome in sorted(report.outcomes, key=lambda outcome: severity(outcome.verdict))
        if outcome.verdict not in _UNREMARKABLE
    ]
    pairs = [(outcome, outcome.findings[0] if outcome.findings else None) for outcome in noted]
    commands = [_command(outcome, finding, fixtures[outcome.fixture], root) for outcome, finding in pairs]
    if len(commands) <= MOST:
        return commands
    more = f"{len(commands) - MOST + 1} more fixtures did not pass; the summary and `--json` have all of them"
    return [*commands[: MOST - 1], f"::error title=golden::{_data(more)}"]


def _command(outcome: Outcome, finding: Finding | None, fixture: Fixture, root: Path) -> str:
    level = "warning" if outcome.verdict is Verdict.QUARANTINED else "error"
    path = fixture.path
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    title = f"{outcome.fixture}: {outcome.verdict.value}"
    message = outcome.reason or title
    if finding is not None:
        title += f" {finding.kind.value}{f' ({finding.cause})' if finding.cause else ''}"
        others = f"\nand {len(outcome.findings) - 1} more findings" if len(outcome.findings) > 1 else ""
        message = f"{finding.path}: {finding.message[:_LONGEST_MESSAGE]}{others}"
    place = f"file={_property(file)},line={_line(finding, fixture)}"
    return f"::{level} {place},title={_property(title)}::{_data(message)}"


def _line(finding: Finding | None, fixture: Fixture) -> int:
    """Return the line of the rule that failed, else that of the list it stands in, else the first."""
    if finding is None:
        return 1
    name = finding.rule.partition(":")[0]
    section = {"WITNESS": "witness", "RELATION": "relations"}.get(finding.kind.value, "assert")
    known = (fixture.lines.get(f"assert.{name}"), fixture.lines.get(section))
    return next((line for line in known if line), 1)


def _data(text: str) -> str:
    return neutral(redacted(text)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
