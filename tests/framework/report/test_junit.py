from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

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


def test_what_xml_cannot_hold_is_shown_by_its_code() -> None:
    text = junit_xml(REPORT).decode()
    assert not any(character in text for character in "\x00\x1b\ud800")
    assert "differs \\x1b[31m \\x00\\ud800&lt;&amp;&gt;" in text


def parsed(report: Report) -> ET.Element:
    return ET.fromstring(junit_xml(report))  # noqa: S314 - our own report


WILD = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\x00\x0b\x1b\ud800\ufffe\uffff]]><&\"'\r"), max_size=40
)


@given(st.lists(st.tuples(WILD, st.sampled_from(list(Verdict)), WILD, WILD), max_size=8))
def test_a_parser_reads_every_case_whatever_the_texts(entries: list[tuple[str, Verdict, str, str]]) -> None:
    outcomes = tuple(
        Outcome(name, verdict, ExitCode.REGRESSION, (finding(message),), reason=message, platform=platform)
        for name, verdict, message, platform in entries
        if verdict is not Verdict.QUARANTINED  # it has an entry of the quarantine
    )
    suite = parsed(Report(outcomes, REPORT.drift))
    cases = suite.findall("testcase")
    assert len(cases) == len(outcomes) == int(suite.attrib["tests"])
    for case, outcome in zip(cases, outcomes, strict=True):
        properties = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
        assert properties["verdict"] == outcome.verdict.value
        assert properties["classes"] == "TEXT"
        failed = case.find("failure") if outcome.verdict in (Verdict.FAIL, Verdict.FLAKY) else case.find("error")
        assert (failed is not None) is (outcome.verdict not in (Verdict.PASS, Verdict.SKIP))


def test_a_case_says_where_it_ran_what_it_was_judged_by_and_why_it_failed() -> None:
    tie = Finding(kind=FindingClass.TOKEN, path="requests", rule="exact", message="other", cause="NUMERIC_TIE")
    outcome = Outcome("a/b", Verdict.FAIL, ExitCode.REGRESSION, (tie, finding("x")), platform="cpu")
    (case,) = parsed(Report((outcome,), ())).findall("testcase")
    assert {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")} == {
        "verdict": "FAIL",
        "compared": "0",
        "platform": "cpu",
        "golden": "goldens/a/b/cpu.json",
        "classes": "TEXT, TOKEN",
        "causes": "NUMERIC_TIE",
    }
