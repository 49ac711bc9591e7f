"""Annotations of GitHub Actions: at most ten, the worst first, each at the line of the manifest that was broken.

The forms are those that the documentation of workflow commands gives: `%`, CR and LF are written as `%25`, `%0D` and
`%0A`, and in a property `:` and `,` as `%3A` and `%2C` too. GitHub shows ten errors a step and drops the rest without a
word, so the tenth says how many there are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from framework.compare.finding import Finding, FindingClass
from framework.judge import Verdict
from framework.redact import redacted
from framework.report.neutral import neutral
from framework.report.text import severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from framework.judge import Outcome
    from framework.manifest.fixture import Fixture
    from framework.run.session import Report

MOST: Final = 10
_LONGEST_MESSAGE: Final = 1_000
_UNREMARKABLE: Final = (Verdict.PASS, Verdict.SKIP)
_NOT_OF_A_RULE: Final = frozenset(
    {
        FindingClass.STALE,
        FindingClass.SEAL,
        FindingClass.ENGINE_CRASH,
        FindingClass.TIME_LIMIT,
        FindingClass.OUT_OF_MEMORY,
        FindingClass.STALE_REGEN,
    }
)


def workflow_commands(report: Report, fixtures: Mapping[str, Fixture], root: Path) -> list[str]:
    """Return the workflow commands of a report: changed defaults, then the worst fixtures.

    `root` is the folder of the repository: paths of manifests are relative to it, as the documentation asks for.
    """
    ordered = sorted(report.outcomes, key=lambda outcome: severity(outcome.verdict))
    noted = [outcome for outcome in ordered if outcome.verdict not in _UNREMARKABLE]
    commands = [f"::error title=DEFAULT CHANGED::{_data(_cut(drift.in_words()))}" for drift in report.drift]
    commands += [_command(outcome, fixtures[outcome.fixture], root) for outcome in noted]
    if len(commands) <= MOST:
        return commands
    hidden = commands[MOST - 1 :]
    fixtures_hidden = min(len(hidden), len(noted))
    parts = [f"{len(hidden) - fixtures_hidden} more defaults changed"] if len(hidden) > fixtures_hidden else []
    parts += [f"{fixtures_hidden} more fixtures did not pass"] if fixtures_hidden else []
    more = f"{' and '.join(parts)}; the summary and `--json` have all of them"
    return [*commands[: MOST - 1], f"::error title=golden::{_data(more)}"]


def repository_root(root: Path, environment: Mapping[str, str]) -> Path:
    """Return the folder of the repository that holds `root`: what GitHub Actions checked out, else `root` itself."""
    checked_out = Path(environment.get("GITHUB_WORKSPACE", ""))
    return checked_out if checked_out.is_absolute() and root.is_relative_to(checked_out) else root


def _command(outcome: Outcome, fixture: Fixture, root: Path) -> str:
    level = "warning" if outcome.verdict is Verdict.QUARANTINED else "error"
    finding = outcome.findings[0] if outcome.findings else None
    path = fixture.path
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    title = f"{outcome.fixture}: {outcome.verdict.value}"
    message = outcome.reason or title
    if finding is not None:
        title += f" {finding.kind.value}{f' ({finding.cause})' if finding.cause else ''}"
        others = f"\nand {len(outcome.findings) - 1} more findings" if len(outcome.findings) > 1 else ""
        message = f"{_cut(f'{finding.path}: {finding.message}')}{others}"
    place = f"file={_property(file)},line={_line(finding, fixture)}"
    return f"::{level} {place},title={_property(title)}::{_data(message)}"


def _line(finding: Finding | None, fixture: Fixture) -> int:
    """Return the line of what the finding is about: the rule, the witness, the relation, the settings; else the first.

    A setting that drifted is not in the manifest, so the line is that of `engine`, where it could be pinned.
    """
    if finding is None:
        return 1
    lines, kind = fixture.lines, finding.kind
    name = finding.path if kind is FindingClass.RULES else f"assert.{finding.rule.partition(':')[0]}"
    places: list[str] = [name, "assert"]
    if kind is FindingClass.WITNESS:
        places = [*_items("witness", [str(each) == finding.path for each in fixture.witnesses]), "witness"]
    elif kind is FindingClass.RELATION:
        named = [finding.rule.split() in ([r.kind, r.other], [r.kind, "with", r.other]) for r in fixture.relations]
        places = [*_items("relations", named), "relations"]
    elif kind is FindingClass.SETTINGS_DRIFT:
        places = ["engine"]
    elif kind in _NOT_OF_A_RULE or finding.rule == "golden":
        places = []
    return next((lines[place] for place in places if place in lines), 1)


def _items(section: str, are_meant: Sequence[bool]) -> list[str]:
    """Return where in the manifest those items of a list stand that are meant."""
    return [f"{section}[{index}]" for index, is_meant in enumerate(are_meant) if is_meant]


def _cut(text: str) -> str:
    text = redacted(text)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"


def _data(text: str) -> str:
    return neutral(redacted(text)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
