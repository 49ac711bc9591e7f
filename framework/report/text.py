"""Outcomes as plain lines: what the terminal, the pytest plugin and `golden compare` all show."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from framework.compare.finding import FindingClass
from framework.explain.drift import settings_that_differ
from framework.judge import Verdict
from framework.quarantine.load import QUARANTINE_FILE
from framework.quarantine.passes import ENOUGH_PASSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from framework.compare.finding import Finding
    from framework.judge import Outcome
    from framework.quarantine.entry import Note
    from framework.run.session import Report

SHOWN_FINDINGS = 8
_VALUE_WIDTH = 60
_LINE_WIDTH = 400

_NEXT_STEP = {
    FindingClass.TOKEN: "the engine gives other tokens: find the change that did it before anything is regenerated",
    FindingClass.COUNTER: "the schedule moved: see which step differs, `golden explain` shows the settings it ran with",
    FindingClass.RULES: "declare each field under assert, inform or ignore, and remove rules that match nothing",
    FindingClass.SETTINGS_DRIFT: "pin the setting where the fixture means the old value, else regenerate with a reason",
    FindingClass.TIME_LIMIT: "see the stacks above: the engine hangs, or `time_limit_s` is too short for this machine",
    FindingClass.ENGINE_CRASH: "the lines above are the last that the engine printed",
    FindingClass.WITNESS: "the run did not do what the fixture is there to prove, so its other values prove nothing",
}


def outcome_lines(outcome: Outcome) -> list[str]:
    """Return an outcome as lines: its verdict, the findings that say most, and what to do next."""
    counts = f"{outcome.compared} compared, {outcome.informed} informed, {outcome.ignored} ignored"
    lines = [f"{outcome.verdict} {outcome.fixture}: {counts}"]
    if outcome.reason:
        lines.append(f"  {outcome.reason}")
    lines.extend(f"  {line}" for line in detectable_lines(outcome))
    if outcome.quarantine:
        lines.append(f"  {quarantine_words(outcome.quarantine)}")
    lines.extend(_cut(f"  {words}") for words in attempt_words(outcome))
    if outcome.reruns:
        lines.append(_cut(f"  {outcome.reruns.message}"))
        lines.extend(f"    kept: {path}" for path in outcome.reruns.records)
    shown = _first_and_worst(outcome.findings)
    for finding in shown:
        lines.extend(finding_lines(finding))
    if (hidden := len(outcome.findings) - len(shown)) > 0:
        lines.append(f"  and {hidden} more; `--json` has them all")
    if outcome.findings and (step := _NEXT_STEP.get(outcome.findings[0].kind)) is not None:
        lines.append(f"  next: {step}")
    return lines


def notes_of(outcome: Outcome) -> list[str]:
    """Return what there is to say of an outcome beside its verdict, in short."""
    quarantine = [quarantine_words(outcome.quarantine)] if outcome.quarantine else []
    return [*filter(None, [outcome.reason]), *detectable_lines(outcome), *quarantine, *attempt_words(outcome)]


def summary_line(report: Report) -> str:
    """Return how many fixtures have each verdict, and how much was compared in how long."""
    counts = Counter(outcome.verdict for outcome in report.outcomes)
    parts = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
    compared = sum(outcome.compared for outcome in report.outcomes)
    seconds = sum(outcome.seconds for outcome in report.outcomes)
    unmet = f" NOT ENOUGH: {report.unmet}." if report.unmet else ""
    return f"{', '.join(parts)}; {compared} values compared in {seconds:.1f} s.{unmet}"


def detectable_lines(outcome: Outcome) -> list[str]:
    """Return a line for each figure that was judged by samples: the smallest change they could have shown."""
    return [f"{name}: a change below {size:.0%} would not be noticed here" for name, size in outcome.detectable.items()]


def finding_lines(finding: Finding) -> list[str]:
    """Return a finding as lines: class, path and rule, then its message, which names the values."""
    cause = f" ({finding.cause})" if finding.cause else ""
    first, *rest = finding.message.split("\n")
    lines = [_cut(f"  {finding.kind}{cause} {finding.path} [{finding.rule}]: {first}")]
    lines.extend(_cut(f"    {line}") for line in rest)
    return lines


def settings_lines(golden: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Return a line for every setting that two records do not share, for information."""
    return [
        f"settings differ: {name}: golden {_short(then)}, current {_short(now)}"
        for name, then, now in settings_that_differ(golden.get("settings", {}), current.get("settings", {}))
    ]


def severity(verdict: Verdict) -> int:
    """Return a rank for sorting, the worst first."""
    order = (
        Verdict.ERROR,
        Verdict.STALE,
        Verdict.MISSING,
        Verdict.FAIL,
        Verdict.FLAKY,
        Verdict.QUARANTINED,
        Verdict.SKIP,
        Verdict.PASS,
    )
    return order.index(verdict)


def quarantine_words(note: Note) -> str:
    """Return what there is to say of a fixture's entry in the quarantine, and that it is needed no more where it is."""
    passes = note.consecutive_passes or 0
    if passes >= ENOUGH_PASSES:
        return f"{note.in_words()}; {passes} passes in a row: REMOVE ME from {QUARANTINE_FILE}"
    return f"{note.in_words()}; {passes} of {ENOUGH_PASSES} passes in a row" if passes else note.in_words()


def attempt_words(outcome: Outcome) -> list[str]:
    """Return a line for each try that gave no record before the one that was judged."""
    return [f"retried, attempt {number}: {each.in_words()}" for number, each in enumerate(outcome.attempts, start=1)]


def _first_and_worst(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Bound what is shown: the first findings, and of the others the one with the largest excess over its bound."""
    if len(findings) <= SHOWN_FINDINGS:
        return findings
    shown, others = findings[: SHOWN_FINDINGS - 1], findings[SHOWN_FINDINGS - 1 :]
    return (*shown, max(others, key=_excess))


def _excess(finding: Finding) -> float:
    if finding.error is None or not finding.error > 0.0:
        return 0.0
    return finding.error / finding.allowed if finding.allowed else float("inf")


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _VALUE_WIDTH else f"{text[:_VALUE_WIDTH]}… ({len(text)} characters)"


def _cut(line: str) -> str:
    return line if len(line) <= _LINE_WIDTH else f"{line[:_LINE_WIDTH]}…"
