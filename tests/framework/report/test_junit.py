from __future__ import annotations

from framework.compare.finding import Finding, FindingClass
from framework.errors import ExitCode
from framework.explain.drift import Drift
from framework.judge import Outcome, Verdict
from framework.report.junit import junit_xml
from framework.run.session import Report


def finding(message: str) -> Finding:
    return Finding(kind=FindingClass.TEXT, path="requests", rule="exact", message=message)


REPORT = Report(
    (
        Outcome("sched/good", Verdict.PASS, ExitCode.GOOD, compared=7, seconds=1.5),
        Outcome("sched/bad", Verdict.FAIL, ExitCode.REGRESSION, (finding("differs \x1b[31m \x00\ud800<&>"),)),
        Outcome("crash", Verdict.ERROR, ExitCode.ENGINE, (finding("gone"),)),
        Outcome("gpu", Verdict.SKIP, ExitCode.NOTHING_SELECTED, reason="no GPU here"),
    ),
    (Drift("mode", "legacy", "async", ("sched/bad",), ()),),
)


def test_every_fixture_is_a_case_with_its_verdict() -> None:
    text = junit_xml(REPORT).decode()
    assert 'tests="4" failures="1" errors="1" skipped="1" time="1.500"' in text
    assert '<testcase classname="fixtures.sched" name="good" time="1.500">' in text
    assert '<property name="compared" value="7" />' in text
    assert '<failure message="TEXT">FAIL sched/bad' in text
    assert '<error message="TEXT">ERROR crash' in text
    assert '<skipped message="no GPU here" />' in text
    assert "`mode` default legacy → async" in text


def test_nothing_that_xml_cannot_hold_gets_in() -> None:
    text = junit_xml(REPORT).decode()
    assert not any(character in text for character in "\x00\x1b\ud800")
    assert "&lt;&amp;&gt;" in text
