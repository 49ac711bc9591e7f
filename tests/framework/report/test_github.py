from __future__ import annotations

import re
from pathlib import Path

import pytest

from framework.compare.finding import Finding, FindingClass
from framework.compare.rules import Rules
from framework.errors import ExitCode
from framework.explain.drift import Drift
from framework.judge import Outcome, Verdict
from framework.manifest.fixture import Fixture, Prompt, Relation, Witness, Workload
from framework.report.github import MOST, repository_root, workflow_commands
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
        witnesses=(Witness("counters.a", ">", 0), Witness("counters.x", ">", 0)),
        relations=(Relation("same_outputs_as", "b"), Relation("same_outputs_as", "c")),
        lines={
            "engine": 7,
            "assert": 9,
            "assert.generated_tokens": 12,
            "assert.counters.*": 14,
            "witness": 20,
            "witness[1]": 22,
            "relations": 30,
            "relations[1]": 32,
        },
    )


def finding(
    message: str = "differs",
    rule: str = "generated_tokens: exact",
    kind: str = "TOKEN",
    path: str = "requests",
) -> Finding:
    return Finding(kind=FindingClass(kind), path=path, rule=rule, message=message)


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
        (finding(path="counters.x > 0", rule="witness counters.x > 0", kind="WITNESS"), 22),
        (finding(path="counters.y > 0", rule="witness counters.y > 0", kind="WITNESS"), 20),
        (finding(rule="same_outputs_as c", kind="RELATION"), 32),
        (finding(rule="same_outputs_as with c", kind="RELATION"), 32),
        (finding(rule="same_outputs_as d", kind="RELATION"), 30),
        (finding(rule="counters.*: exact", kind="COUNTER"), 14),
        (finding(rule="finish_reason: exact", kind="TEXT"), 9),
        (finding(path="assert.generated_tokens", rule="exact", kind="RULES"), 12),
        (finding(path="settings.mode", rule="settings", kind="SETTINGS_DRIFT"), 7),
        (finding(rule="engine", kind="ENGINE_CRASH"), 1),
        (finding(rule="golden", kind="SEAL"), 1),
        (finding(rule="golden", kind="STRUCTURE"), 1),
    ],
)
def test_the_line_is_that_of_what_the_finding_is_about(one: Finding, line: int) -> None:
    (command,) = commands(failed("a", one))
    assert f"line={line}," in command


def test_changed_defaults_come_first_and_are_counted_too() -> None:
    outcomes = tuple(failed(f"f{number}") for number in range(3))
    fixtures = {outcome.fixture: fixture(outcome.fixture) for outcome in outcomes}
    drifts = tuple(Drift(f"s{number}", "a::b", "c\n::d", ("f0",), ()) for number in range(12))
    one = workflow_commands(Report(outcomes, drifts[:1]), fixtures, ROOT)
    assert one[0].startswith("::error title=DEFAULT CHANGED::`s0` default a::b → c%0A\\::d since")
    assert len(one) == 4
    found = workflow_commands(Report(outcomes, drifts), fixtures, ROOT)
    assert len(found) == MOST
    assert "3 more defaults changed and 3 more fixtures did not pass" in found[-1]


def test_a_secret_is_not_cut_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t" * 20)
    (command,) = commands(failed("a", finding("x" * 950 + "s3cr3t" * 20)))
    assert "s3cr3t" not in command


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


@pytest.mark.parametrize(
    ("workspace", "root"),
    [("/root/of", "/root/of"), ("/root/of/it", "/root/of/it"), ("/elsewhere", "/root/of/it"), ("", "/root/of/it")],
)
def test_paths_are_relative_to_what_was_checked_out(workspace: str, root: str) -> None:
    assert repository_root(ROOT, {"GITHUB_WORKSPACE": workspace}) == Path(root)
    assert repository_root(ROOT, {}) == ROOT
