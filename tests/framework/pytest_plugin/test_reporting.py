from __future__ import annotations

import json
from datetime import timedelta
from xml.etree import ElementTree as ET

import pytest

from framework.clock import today
from framework.errors import ExitCode
from framework.report.pytest_summary import SHOWN_FAILURES, Heard, Unjudged, run_report, summary_lines
from tests.framework.pytest_plugin.driving import run_pytest
from tests.framework.toy_root import ToyRoot


def heard(fixture: str, verdict: str, *classes: str) -> Heard:
    findings = [{"class": name, "path": f"settings.{name}", "golden": 1, "current": 2} for name in classes]
    entry = {"fixture": fixture, "verdict": verdict, "compared": 3, "seconds": 0.0, "findings": findings}
    return Heard(entry, ExitCode.REGRESSION, {}, "/root")


def test_the_section_shows_changed_defaults_first_and_then_the_worst() -> None:
    outcomes = [
        heard("a", "PASS"),
        heard("b", "FAIL", "TOKEN"),
        heard("c", "FAIL", "SETTINGS_DRIFT", "COUNTER"),
        heard("d", "ERROR", "ENGINE_CRASH"),
        heard("e", "MISSING", "STRUCTURE"),
        heard("f", "SKIP"),
    ]
    lines = summary_lines(outcomes, [Unjudged("fixtures/z.yaml", "no manifest\nmore", ExitCode.MALFORMED)])
    assert lines[0].startswith("DEFAULT CHANGED: ")
    assert [line.split(":")[0].split()[-1] for line in lines[1:]] == ["fixtures/z.yaml", "c", "d", "e", "b"]


def test_the_section_is_bounded() -> None:
    lines = summary_lines([heard(f"f{number:04}", "FAIL", "TOKEN") for number in range(5000)], [])
    assert len(lines) == SHOWN_FAILURES + 1
    assert "4980 more" in lines[-1]


def test_what_has_no_verdict_counts_in_the_report() -> None:
    document = run_report([heard("a", "PASS")], [Unjudged("x", "it is broken", ExitCode.MALFORMED)])
    assert (document["verdict"], document["exit_code"], document["error"]) == ("FAIL", 10, "it is broken")


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_junit_report_has_the_properties_of_each_fixture(toy: ToyRoot, workers: tuple[str, ...]) -> None:
    toy.set_default("fault", "random")
    run_pytest(toy, "fixtures", "--junitxml=junit.xml", *workers)
    root = ET.parse(toy.path / "junit.xml").getroot()  # noqa: S314 - written by this very run
    cases = {case.get("name"): case for case in root.iter("testcase")}
    properties = {
        name: {each.get("name"): each.get("value") for each in case.iter("property")} for name, case in cases.items()
    }
    failed, passed = properties["default"], properties["mode/legacy"]
    assert failed["golden_verdict"] == "FAIL"
    assert "TOKEN" in str(failed["golden_classes"])
    assert failed["golden_causes"] == "WRONG_FROM_START"
    assert passed["golden_platform"] == failed["golden_platform"] == "cpu"
    assert passed["golden_path"] == "goldens/mode/legacy/cpu.json"
    assert int(str(passed["golden_compared"])) > 0
    assert cases["default"].find("failure") is not None


def test_a_quarantined_fixture_is_expected_to_fail(toy: ToyRoot) -> None:
    (toy.path / "toy_adapter.py").write_text(
        (toy.path / "toy_adapter.py").read_text().replace('"step_count": steps + is_async', '"step_count": steps + 5')
    )
    since = today()
    (toy.path / "quarantine.yaml").write_text(
        "quarantine: 1\nentries:\n"
        "  - {fixture: default, platforms: [cpu], class: COUNTER, owner: '@ada', issue: 'https://example.org/1',"
        f' since: "{since}", expires: "{since + timedelta(days=3)}"}}\n'
    )
    done = run_pytest(toy, "fixtures", "-k", "default", "--golden=candidates", "--golden-report=run.json")
    assert done.returncode == 0, done.stdout
    assert "1 xfailed" in done.stdout
    assert "IN QUARANTINE: default, which gave QUARANTINED: for COUNTER until" in done.stdout
    assert "candidate " not in done.stdout
    assert json.loads((toy.path / "run.json").read_text())["fixtures"][0]["verdict"] == "QUARANTINED"
    assert run_pytest(toy, "fixtures", "-k", "default", "--runxfail").returncode == 1


def test_a_report_is_written_where_pytest_was_called_and_without_a_terminal(toy: ToyRoot) -> None:
    (toy.path / "conftest.py").write_text("import os\ndef pytest_sessionfinish(): os.chdir('/')\n")
    run_pytest(toy, "fixtures", "-p", "no:terminal", "--golden-report", "report.json")
    assert json.loads((toy.path / "report.json").read_text())["verdict"] == "PASS"


def test_a_secret_is_in_nothing_that_is_shown(toy: ToyRoot) -> None:
    toy.set_default("fault", "crash")
    path = toy.path / "toy_adapter.py"
    path.write_text(path.read_text().replace('"the toy fell over"', '"the toy fell over hunter2-hunter2"'))
    done = run_pytest(
        toy,
        "fixtures",
        "-k",
        "default",
        "--junitxml=junit.xml",
        "--golden-report=run.json",
        MY_PASSWORD="hunter2-hunter2",  # noqa: S106
    )
    assert done.returncode == 1
    texts = [done.stdout, done.stderr, (toy.path / "junit.xml").read_text(), (toy.path / "run.json").read_text()]
    assert all("hunter2" not in text for text in texts)
    assert "the toy fell over [redacted]" in done.stdout
