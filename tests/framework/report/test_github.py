from __future__ import annotations

import re
from pathlib import Path

import pytest

from framework.compare.finding import Finding, FindingClass
from framework.compare.rules import Rules
from framework.errors import ExitCode
from framework.judge import Outcome, Verdict
from framework.manifest.fixture import Fixture, Prompt, Workload
from framework.report.github import MOST, workflow_commands
from framework.run.session import Report

ROOT = Path("/root/of/it")


def fixture(name: str) -> Fixture:
    return Fixture(
        name=name,
        path=ROOT / "fixtures" / f"{name}.yaml",
        summary="",
        model="",
        engine={},
        workload=Workload(prompts=(Prompt(text="a"),), sampling={}),
        rules=Rules(asserted={}),
        lines={"assert": 9, "assert.generated_tokens": 12, "witness": 20},
    )


def finding(message: str = "differs", rule: str = "generated_tokens: exact", kind: str = "TOKEN") -> Finding:
    return Finding(kind=FindingClass(kind), path="requests", rule=rule, message=message)


def failed(name: str, *findings: Finding) -> Outcome:
    return Outcome(name, Verdict.FAIL, ExitCode.REGRESSION, findings or (finding(),))


def commands(*outcomes: Outcome) -> list[str]:
    fixtures = {outcome.fixture: fixture(outcome.fixture) for outcome in outcomes}
    return workflow_commands(Report(outcomes, ()), fixtures, ROOT)


def test_a_failure_is_shown_at_the_line_of_its_rule() -> None:
    assert commands(failed("a/b", finding("golden 1, current 2"))) == [
        "::error file=fixtures/a/b.yaml,line=12,title=a/b%3A FAIL TOKEN::requests: golden 1, current 2"
    ]


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (finding(rule="x > 0", kind="WITNESS"), 20),
        (finding(rule="same_outputs_as with b", kind="RELATION"), 1),
        (finding(rule="counters.*: exact", kind="COUNTER"), 9),
    ],
)
def test_where_the_rule_has_no_line_its_section_has(one: Finding, line: int) -> None:
    (command,) = commands(failed("a", one))
    if one.kind is FindingClass.RELATION:
        line = 1
    assert f"line={line}," in command


def test_passing_and_skipped_fixtures_are_not_annotated() -> None:
    skipped = Outcome("s", Verdict.SKIP, ExitCode.NOTHING_SELECTED, reason="elsewhere")
    assert commands(Outcome("p", Verdict.PASS, ExitCode.GOOD), skipped) == []


def test_there_are_ten_at_most_the_worst_first_and_the_last_counts_the_rest() -> None:
    crash = Outcome("z", Verdict.ERROR, ExitCode.ENGINE, (finding("gone", "engine", "ENGINE_CRASH"),))
    found = commands(*(failed(f"f{number}") for number in range(30)), crash)
    assert len(found) == MOST
    assert "z%3A ERROR ENGINE_CRASH" in found[0]
    assert "22 more fixtures did not pass" in found[-1]
    assert len(commands(*(failed(f"f{number}") for number in range(MOST)))) == MOST


@pytest.mark.parametrize("text", ["a\n::error::owned", "100%0A", "x,line=1::y", "a\r\nb", "\x1b[0m::stop"])
def test_no_text_becomes_a_command_or_a_property(text: str) -> None:
    (command,) = commands(failed("a", finding(text)))
    assert "\n" not in command
    assert "\r" not in command
    assert "\x1b" not in command
    assert re.fullmatch(r"::error file=[^,]*,line=\d+,title=[^:,]*::.*", command)
