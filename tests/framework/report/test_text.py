from __future__ import annotations

from typing import Any

from framework.compare.finding import Finding, FindingClass
from framework.errors import ExitCode
from framework.judge import Outcome, Verdict
from framework.report.text import SHOWN_FINDINGS, finding_lines, outcome_lines, settings_lines


def finding(path: str = "counters.x", **fields: Any) -> Finding:
    return Finding(**{"kind": FindingClass.COUNTER, "path": path, "rule": "exact", "message": "differs", **fields})


def outcome(*findings: Finding, reason: str = "") -> Outcome:
    return Outcome("a", Verdict.FAIL, ExitCode.REGRESSION, findings, 5, 2, 1, reason=reason)


def test_a_finding_shows_class_place_rule_and_message() -> None:
    shown = finding_lines(finding(cause="SCHEDULE", message="golden 1, current 2\nmore of it"))
    assert shown == ["  COUNTER (SCHEDULE) counters.x [exact]: golden 1, current 2", "    more of it"]


def test_long_messages_are_cut() -> None:
    assert all(len(line) < 450 for line in finding_lines(finding(message="y" * 10_000 + "\n" + "z" * 10_000)))


def test_settings_that_differ_are_a_line_each() -> None:
    golden = {"settings": {"mode": {"value": "x" * 100}, "depth": {"value": 1}}}
    current = {"settings": {"mode": {"value": "async"}, "depth": {"value": 1}}}
    (line,) = settings_lines(golden, current)
    assert line.startswith("settings differ: mode: golden 'xxx")
    assert line.endswith("current 'async'")


def test_an_outcome_starts_with_its_counts_and_ends_with_what_to_do() -> None:
    shown = outcome_lines(outcome(finding(), reason="not judged here: x"))
    assert shown[0] == "FAIL a: 5 compared, 2 informed, 1 ignored"
    assert shown[1] == "  not judged here: x"
    assert shown[-1].startswith("  next: the schedule moved")


def test_the_first_and_the_worst_of_many_findings_are_shown() -> None:
    findings = [finding(f"counters.n{number}", error=1.0, allowed=1.0) for number in range(50)]
    findings[40] = finding("counters.worst", error=9.0, allowed=1.0)
    shown = "\n".join(outcome_lines(outcome(*findings)))
    assert "counters.n0" in shown
    assert "counters.worst" in shown
    assert "counters.n30" not in shown
    assert f"and {50 - SHOWN_FINDINGS} more" in shown


def test_nan_errors_do_not_confuse_the_choice_of_the_worst() -> None:
    findings = [finding(f"counters.n{number}", error=float("nan"), allowed=1.0) for number in range(20)]
    findings[15] = finding("counters.worst", error=1.0, allowed=0.0)
    assert "counters.worst" in "\n".join(outcome_lines(outcome(*findings)))
