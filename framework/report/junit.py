"""JUnit XML: one test case a fixture, for whatever shows test results of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from framework.judge import Verdict
from framework.redact import redacted
from framework.report.neutral import neutral
from framework.report.text import outcome_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from framework.judge import Outcome
    from framework.run.session import Report


def junit_xml(report: Report) -> bytes:
    """Return the report as JUnit XML."""
    suite = ET.Element("testsuite", name="golden", tests=str(len(report.outcomes)))
    failures = sum(outcome.verdict in (Verdict.FAIL, Verdict.FLAKY) for outcome in report.outcomes)
    skipped = sum(outcome.verdict in (Verdict.SKIP, Verdict.QUARANTINED) for outcome in report.outcomes)
    passed = sum(outcome.verdict is Verdict.PASS for outcome in report.outcomes)
    errors = len(report.outcomes) - failures - skipped - passed
    suite.attrib.update(failures=str(failures), errors=str(errors), skipped=str(skipped))
    suite.set("time", f"{sum(outcome.seconds for outcome in report.outcomes):.3f}")
    if report.drift:
        ET.SubElement(suite, "system-out").text = _clean("\n".join(d.in_words() for d in report.drift))
    for outcome in report.outcomes:
        suite.append(_case(outcome))
    ET.indent(suite)
    return bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True)) + b"\n"


def _case(outcome: Outcome) -> ET.Element:
    folder, _, name = outcome.fixture.rpartition("/")
    case = ET.Element(
        "testcase",
        classname=_clean(".".join(["fixtures", *folder.split("/")] if folder else ["fixtures"])),
        name=_clean(name),
        time=f"{outcome.seconds:.3f}",
    )
    properties = ET.SubElement(case, "properties")
    for key, value in properties_of(outcome):
        ET.SubElement(properties, "property", name=key, value=_clean(value))
    if outcome.verdict is Verdict.SKIP:
        ET.SubElement(case, "skipped", message=_clean(outcome.reason))
    elif outcome.verdict is Verdict.QUARANTINED:  # as pytest writes what is expected to fail
        assert outcome.quarantine is not None, "an entry has excused it"
        excuse = ET.SubElement(
            case, "skipped", type="golden.quarantined", message=_clean(outcome.quarantine.in_words())
        )
        excuse.text = _clean("\n".join(outcome_lines(outcome)))
    elif outcome.verdict is not Verdict.PASS:
        tag = "failure" if outcome.verdict in (Verdict.FAIL, Verdict.FLAKY) else "error"
        kinds = ", ".join(sorted({finding.kind.value for finding in outcome.findings}))
        ET.SubElement(case, tag, message=_clean(kinds)).text = _clean("\n".join(outcome_lines(outcome)))
    return case


def properties_of(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield what a test case has beside its result, by name: `golden run` and pytest say the same."""
    yield "verdict", outcome.verdict.value
    yield "compared", str(outcome.compared)
    if outcome.platform:
        yield "platform", outcome.platform
        yield "golden", f"goldens/{outcome.fixture}/{outcome.platform}.json"
    if outcome.findings:
        yield "classes", ", ".join(sorted({finding.kind.value for finding in outcome.findings}))
    if causes := sorted({finding.cause for finding in outcome.findings if finding.cause}):
        yield "causes", ", ".join(causes)


def _clean(text: str) -> str:
    """Take out secrets, and show by its code what XML 1.0 cannot hold, such as an escape or half a surrogate pair."""
    return neutral(redacted(text))
