from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from framework.compare.finding import Finding, FindingClass
from framework.compare.rules import parse_rules
from framework.errors import ExitCode, GoldenError, MissingGoldenError, SealError
from framework.golden.document import build_golden
from framework.golden.store import Golden
from framework.judge import (
    Outcome,
    Verdict,
    failed_outcome,
    judge,
    judge_files,
    judge_golden_alone,
    missing_outcome,
    skipped_outcome,
    stale_outcome,
    staleness,
    unreadable_outcome,
)
from framework.manifest.fixture import Fixture, Prompt, Relation, Witness, Workload
from framework.run.adapter import SettingDescription
from framework.run.task import Failure

RULES = parse_rules(
    {
        "assert": {
            "generated_tokens": "exact",
            "counters": {"*": "exact"},
            "performance": {
                "paired_throughput_ratio": {"ratio": [0.5, 2.0]},
                "tokens_per_second": {"ratio": [0.9, 1.1]},
            },
        },
    },
    where="test",
    lines={},
)
FIXTURE = Fixture(
    name="a",
    path=Path("a.yaml"),
    summary="",
    model="toy",
    engine={},
    workload=Workload(prompts=(Prompt(text="a"),), sampling={}),
    rules=RULES,
    witnesses=(Witness("counters.step_count", ">", 0),),
    manifest_sha256="m",
)
RECORD: dict[str, Any] = {
    "schema": "golden.record/1",
    "fixture": "a",
    "requests": {"0": {"prompt_tokens": [1], "generated_tokens": [2, 3]}},
    "counters": {"step_count": 2},
    "performance": {"paired_throughput_ratio": [1.0, 1.0, 1.0], "tokens_per_second": 10.0},
    "settings": {"mode": {"value": "async", "source": "default"}},
    "environment": {"machine": "one"},
}
SETTINGS = {"mode": SettingDescription("async", "str", "")}
HASHES = {"model": "x", "tokenizer": "y"}


def golden(record: dict[str, Any] = RECORD) -> Golden:
    document = build_golden(record, RULES, platform="cpu", hashes=HASHES, manifest_sha256="m", provenance={})
    return Golden(Path("goldens/a/cpu.json"), b"", document)


def judged(*records: dict[str, Any], fixture: Fixture = FIXTURE, **arguments: Any) -> Outcome:
    of = arguments.get("golden", golden())
    return judge(fixture, of, records, arguments.get("settings", SETTINGS), arguments.get("partners", {}))


def kinds(outcome: Outcome) -> list[str]:
    return [finding.kind.value for finding in outcome.findings]


def with_tokens(*tokens: int) -> dict[str, Any]:
    return RECORD | {"requests": {"0": {"prompt_tokens": [1], "generated_tokens": list(tokens)}}}


def test_the_same_record_passes_and_counts_what_was_judged() -> None:
    outcome = judged(RECORD)
    assert (outcome.verdict, outcome.exit_code, outcome.findings) == (Verdict.PASS, ExitCode.GOOD, ())
    assert outcome.compared == 7


def test_drift_comes_first_then_values_relations_witnesses() -> None:
    fixture = dataclasses.replace(FIXTURE, relations=(Relation("same_outputs_as", "b"),))
    record = with_tokens(2, 4) | {"counters": {"step_count": 0}}
    settings = {"mode": SettingDescription("legacy", "str", "")}
    outcome = judged(record, fixture=fixture, settings=settings, partners={"b": RECORD})
    assert outcome.exit_code is ExitCode.REGRESSION
    assert kinds(outcome) == ["SETTINGS_DRIFT", "COUNTER", "TOKEN", "RELATION", "WITNESS"]


@pytest.mark.parametrize(
    ("machine", "logprob", "expected"),
    [
        ("one", -0.5, []),
        ("one", -0.501, ["RELATION"]),
        ("two", -0.501, []),
        ("two", -0.52, ["RELATION"]),
    ],
)
def test_a_relation_is_exact_in_one_environment_only(machine: str, logprob: float, expected: list[str]) -> None:
    rules = parse_rules(
        {
            "assert": {"generated_tokens": "exact", "generated_logprobs": {"atol": 0.01, "rtol": 0.0}},
            "inform": ["counters", "performance"],
        }
    )
    fixture = dataclasses.replace(FIXTURE, rules=rules, relations=(Relation("same_outputs_as", "b"),))
    request = RECORD["requests"]["0"]
    record = RECORD | {"requests": {"0": request | {"generated_logprobs": [-0.5, -0.25]}}}
    partner = record | {
        "requests": {"0": request | {"generated_logprobs": [logprob, -0.25]}},
        "environment": {"machine": machine},
    }
    document = build_golden(record, rules, platform="cpu", hashes=HASHES, manifest_sha256="m", provenance={})
    of = Golden(Path("goldens/a/cpu.json"), b"", document)
    outcomes = [
        judged(record, fixture=fixture, golden=of, partners={"b": partner}),
        judge_golden_alone(fixture, of, SETTINGS, {"b": partner}),
    ]
    assert [kinds(outcome) for outcome in outcomes] == [expected, expected]


def test_a_partner_that_gave_nothing_is_never_silence() -> None:
    fixture = dataclasses.replace(FIXTURE, relations=(Relation("same_outputs_as", "b"),))
    assert kinds(judged(RECORD, fixture=fixture)) == ["RELATION"]


def test_a_repeat_that_differs_is_found_and_said_to_be_one() -> None:
    outcome = judged(RECORD, with_tokens(2, 4), with_tokens(2, 5))
    assert kinds(outcome) == ["TOKEN"]
    assert outcome.findings[0].message.startswith("in run 2 of 3, not in the first: ")


def test_times_are_judged_only_where_they_were_recorded_and_ratios_everywhere() -> None:
    slow: dict[str, Any] = {"paired_throughput_ratio": [1.0, 1.0, 1.0], "tokens_per_second": 1.0}
    assert kinds(judged(RECORD | {"performance": slow})) == ["PERFORMANCE"]
    elsewhere = RECORD | {"performance": slow, "environment": {"machine": "two"}}
    outcome = judged(elsewhere)
    assert outcome.verdict is Verdict.PASS
    assert "performance.tokens_per_second" in outcome.reason
    unfair = slow | {"paired_throughput_ratio": [9.0, 9.0, 9.0]}
    assert kinds(judged(elsewhere | {"performance": unfair})) == ["PERFORMANCE"]


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"tokens_per_second": float("nan")}, [("NON_FINITE", "performance.tokens_per_second")]),
        ({"tokens_per_second": 0.0}, [("PERFORMANCE", "performance.tokens_per_second")]),
        ({"tokens_per_second": -1.0}, [("PERFORMANCE", "performance.tokens_per_second")]),
        ({"tokens_per_second": None}, [("STRUCTURE", "performance.tokens_per_second")]),
        ({"tokens_per_second": 1e-9}, []),
        ({}, [("STRUCTURE", "performance.tokens_per_second")]),
    ],
)
def test_a_broken_figure_is_found_on_every_machine(figures: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    performance = {"paired_throughput_ratio": [1.0, 1.0, 1.0], **figures}
    outcome = judged(RECORD | {"performance": performance, "environment": {"machine": "two"}})
    assert [(finding.kind.value, finding.path) for finding in outcome.findings] == expected


def test_a_run_with_no_rule_left_to_judge_is_skipped_and_says_why() -> None:
    rules = parse_rules(
        {
            "assert": {"performance": {"*": {"ratio": [0.9, 1.1]}}},
            "inform": ["generated_tokens", "counters"],
        }
    )
    record = RECORD | {"performance": {"tokens_per_second": 10.0}}
    document = build_golden(record, rules, platform="cpu", hashes=HASHES, manifest_sha256="m", provenance={})
    of = Golden(Path("goldens/a/cpu.json"), b"", document)
    fixture = dataclasses.replace(FIXTURE, rules=rules)
    elsewhere = record | {"environment": {"machine": "two"}}
    outcome = judged(elsewhere, fixture=fixture, golden=of)
    assert (outcome.verdict, outcome.exit_code) == (Verdict.SKIP, ExitCode.NOTHING_SELECTED)
    assert "performance.*" in outcome.reason
    assert "environment" in outcome.reason
    assert judged(record, fixture=fixture, golden=of).verdict is Verdict.PASS
    broken = elsewhere | {"performance": {"tokens_per_second": 0.0}}
    assert kinds(judged(broken, fixture=fixture, golden=of)) == ["PERFORMANCE"]
    idle = elsewhere | {"counters": {"step_count": 0}}
    assert kinds(judged(idle, fixture=fixture, golden=of)) == ["WITNESS"]


def test_two_files_of_two_machines_are_judged_by_every_rule() -> None:
    slow = {"paired_throughput_ratio": [1.0, 1.0, 1.0], "tokens_per_second": 1.0}
    elsewhere = RECORD | {"performance": slow, "environment": {"machine": "two"}}
    outcome = judge_files(RECORD, elsewhere, RULES)
    assert (kinds(outcome), outcome.reason) == (["PERFORMANCE"], "")


def test_two_files_are_judged_without_a_fixture() -> None:
    assert judge_files(RECORD, RECORD, RULES).verdict is Verdict.PASS
    outcome = judge_files(RECORD, with_tokens(2, 4), RULES)
    assert (outcome.fixture, kinds(outcome)) == ("a", ["TOKEN"])


def test_a_golden_alone_is_judged_by_settings_contents_and_relations() -> None:
    assert judge_golden_alone(FIXTURE, golden(), SETTINGS, {}).verdict is Verdict.PASS
    drifted = judge_golden_alone(FIXTURE, golden(), {"mode": SettingDescription("x", "str", "")}, {})
    assert kinds(drifted) == ["SETTINGS_DRIFT"]
    related = dataclasses.replace(FIXTURE, relations=(Relation("same_outputs_as", "b"),))
    assert kinds(judge_golden_alone(related, golden(), SETTINGS, {"b": with_tokens(2, 4)})) == ["RELATION"]


@pytest.mark.parametrize(
    ("name", "held"),
    [("generated_tokens", True), ("generated_logprobs", False), ("counters.*", True), ("counters.other", False)],
)
def test_a_rule_that_the_golden_holds_nothing_for_is_found_offline(name: str, held: bool) -> None:
    rules = dataclasses.replace(RULES, asserted={name: RULES.asserted["generated_tokens"]})
    outcome = judge_golden_alone(dataclasses.replace(FIXTURE, rules=rules), golden(), SETTINGS, {})
    assert [finding.path for finding in outcome.findings] == ([] if held else [f"assert.{name}"])


def test_an_unchanged_golden_is_not_stale_and_every_change_is_named() -> None:
    assert staleness(FIXTURE, golden(), HASHES) == ()
    edited = dataclasses.replace(FIXTURE, manifest_sha256="other")
    findings = staleness(edited, golden(), {"model": "z", "adapter": "new"})
    assert [finding.path for finding in findings] == [
        "manifest_sha256",
        "hashes.adapter",
        "hashes.model",
        "hashes.tokenizer",
    ]
    assert {finding.kind for finding in findings} == {FindingClass.STALE}
    assert all("golden regen a" in finding.message for finding in findings)


STALE = Finding(kind=FindingClass.STALE, path="x", rule="stale", message="m")


@pytest.mark.parametrize(
    ("outcome", "verdict", "code", "kind"),
    [
        (stale_outcome(FIXTURE, (STALE,)), Verdict.STALE, ExitCode.GOLDEN, "STALE"),
        (missing_outcome(FIXTURE, MissingGoldenError("m")), Verdict.MISSING, ExitCode.GOLDEN, "STRUCTURE"),
        (unreadable_outcome(FIXTURE, SealError("m")), Verdict.ERROR, ExitCode.GOLDEN, "SEAL"),
        (unreadable_outcome(FIXTURE, GoldenError("m")), Verdict.ERROR, ExitCode.GOLDEN, "STRUCTURE"),
        (
            failed_outcome(FIXTURE, Failure(FindingClass.TIME_LIMIT, "m"), 1.0),
            Verdict.ERROR,
            ExitCode.ENGINE,
            "TIME_LIMIT",
        ),
    ],
)
def test_what_ends_before_a_comparison_has_its_own_verdict(
    outcome: Outcome,
    verdict: Verdict,
    code: ExitCode,
    kind: str,
) -> None:
    assert (outcome.verdict, outcome.exit_code, kinds(outcome)) == (verdict, code, [kind])


def test_a_skipped_fixture_says_why_in_its_entry() -> None:
    entry = skipped_outcome(FIXTURE, "no GPU here").as_json()
    assert (entry["verdict"], entry["reason"], entry["findings"]) == ("SKIP", "no GPU here", [])
    assert "reason" not in judged(RECORD).as_json()
