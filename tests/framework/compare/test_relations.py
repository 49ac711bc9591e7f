from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from framework.compare.relations import RELATION_KINDS, check_relation
from framework.compare.rules import parse_rules
from framework.manifest.fixture import Relation
from tests.framework.compare.samples import REQUEST, Json, record, without

OTHER = REQUEST | {"prompt_tokens": [7], "generated_tokens": [4, 5], "generated_text": "xy"}
FAILED = REQUEST | {
    "generated_tokens": [],
    "generated_logprobs": [],
    "generated_text": "",
    "finish_reason": "error",
    "error": "too long",
}
RULES = {"assert": {"generated_tokens": "exact"}}


def found(kind: str, this: Any, other: Any, rules: Json | None = None) -> list[str]:
    findings = check_relation(Relation(kind, "other"), this, other, parse_rules(rules or RULES))
    assert {finding.kind.value for finding in findings} <= {"RELATION"}
    assert {finding.rule for finding in findings} <= {f"{kind} other"}
    return [finding.path for finding in findings]


@pytest.mark.parametrize("kind", RELATION_KINDS)
def test_equal_records_satisfy_every_relation(kind: str) -> None:
    both = record(requests={"0": REQUEST, "1": OTHER})
    assert found(kind, both, both) == []


@pytest.mark.parametrize("kind", RELATION_KINDS)
def test_another_token_breaks_every_relation(kind: str) -> None:
    changed = record({"generated_tokens": [1, 9, 3]})
    assert found(kind, changed, record()) == ['requests["0"].generated_tokens[1]']


@pytest.mark.parametrize("kind", RELATION_KINDS)
def test_logprobs_are_compared_bit_for_bit_whatever_the_tolerance(kind: str) -> None:
    rules = {"assert": {"generated_logprobs": {"atol": 1.0, "rtol": 0.0}}}
    changed = record({"generated_logprobs": [-0.1, -0.2, -0.30000000000000004]})
    assert found(kind, changed, record(), rules) == ['requests["0"].generated_logprobs[2]']


@pytest.mark.parametrize("kind", RELATION_KINDS)
def test_counters_may_differ(kind: str) -> None:
    assert found(kind, record(counters={"step_count": 9}), record()) == []


@pytest.mark.parametrize(
    "kind", ["async_equals_legacy", "chunked_equals_whole", "cold_equals_cached", "same_outputs_as"]
)
def test_text_finish_reason_and_length_must_be_equal(kind: str) -> None:
    changed = record({"generated_tokens": [1, 2], "generated_text": "ab", "finish_reason": "stop"})
    assert found(kind, changed, record()) == [
        'requests["0"].generated_tokens',
        'requests["0"].generated_text',
        'requests["0"].finish_reason',
    ]


@pytest.mark.parametrize("kind", [kind for kind in RELATION_KINDS if kind != "alone_equals_batched"])
def test_a_request_on_one_side_only_is_found(kind: str) -> None:
    one, two = record(), record(requests={"0": REQUEST, "1": OTHER})
    assert found(kind, one, two) == ['requests["1"]']
    assert found(kind, two, one) == ['requests["1"]']


def test_outputs_alone_may_have_other_prompts() -> None:
    changed = record({"prompt_tokens": [9, 9]})
    assert found("same_outputs_as", changed, record()) == []
    assert found("async_equals_legacy", changed, record()) == ['requests["0"].prompt_tokens[0]']


def test_a_prefix_is_compared_as_far_as_both_reach() -> None:
    shorter = record({"generated_tokens": [1, 2], "generated_logprobs": [-0.1, -0.2], "generated_text": "a"})
    assert found("same_prefix_as", shorter, record()) == []
    assert found("same_prefix_as", record(), shorter) == []
    wrong = record({"generated_tokens": [1, 3], "generated_logprobs": [-0.1, -0.2]})
    assert found("same_prefix_as", wrong, record()) == ['requests["0"].generated_tokens[1]']
    assert found("same_prefix_as", record({"prompt_tokens": [5]}), record()) == ['requests["0"].prompt_tokens']


def test_alone_and_batched_are_paired_by_prompt() -> None:
    alone = record(requests={"0": OTHER})
    batched = record(requests={"0": REQUEST, "1": OTHER, "2": REQUEST})
    assert found("alone_equals_batched", alone, batched) == []
    assert found("alone_equals_batched", batched, alone) == []
    wrong = record(requests={"0": OTHER | {"generated_text": "xz"}})
    assert found("alone_equals_batched", wrong, batched) == ['requests["0"].generated_text']
    assert found("alone_equals_batched", batched, wrong) == ['requests["1"].generated_text']


def test_a_lone_request_without_a_partner_is_found_on_either_side() -> None:
    alone = record(requests={"0": OTHER})
    batched = record(requests={"0": REQUEST, "1": REQUEST})
    assert found("alone_equals_batched", alone, batched) == ['requests["0"]']
    assert found("alone_equals_batched", batched, alone) == ['requests["0"]']


def test_equal_prompts_are_paired_in_order() -> None:
    first, second = REQUEST, REQUEST | {"generated_text": "other"}
    both = record(requests={"0": first, "1": second})
    assert found("alone_equals_batched", both, record(requests={"7": first, "8": second})) == []
    assert found("alone_equals_batched", both, record(requests={"7": second, "8": first})) != []


def test_a_field_that_one_record_lacks_entirely_is_left_out_but_not_tokens() -> None:
    lean = record(requests={"0": without(REQUEST, "generated_text", "finish_reason")})
    assert found("async_equals_legacy", lean, record()) == []
    bare = record(requests={"0": without(REQUEST, "generated_tokens")})
    assert found("async_equals_legacy", bare, record()) == ['requests["0"].generated_tokens']
    assert found("async_equals_legacy", bare, bare) == ['requests["0"].generated_tokens']


def test_a_field_that_one_request_lacks_is_found() -> None:
    both = record(requests={"0": REQUEST, "1": OTHER})
    gap = record(requests={"0": REQUEST, "1": without(OTHER, "generated_text")})
    assert found("async_equals_legacy", gap, both) == ['requests["1"].generated_text']


def test_an_ignored_field_is_not_compared() -> None:
    changed = record({"finish_reason": "stop"})
    assert found("async_equals_legacy", changed, record(), RULES | {"ignore": {"finish_reason": "x"}}) == []


def test_margins_are_not_compared() -> None:
    assert found("async_equals_legacy", record({"margins": [1.0]}), record({"margins": [2.0]})) == []


def test_two_failed_requests_are_equal() -> None:
    one = record(requests={"0": REQUEST, "1": FAILED})
    assert found("async_equals_legacy", one, one) == []
    assert found("same_prefix_as", one, one) == []


@pytest.mark.parametrize("kind", RELATION_KINDS)
def test_two_requests_that_failed_for_two_reasons_differ(kind: str) -> None:
    one = record(requests={"0": REQUEST, "1": FAILED})
    other = record(requests={"0": REQUEST, "1": FAILED | {"error": "no memory"}})
    assert found(kind, one, other) == ['requests["1"].error']


@pytest.mark.parametrize("kind", RELATION_KINDS)
def test_a_relation_that_compared_no_token_proves_nothing(kind: str) -> None:
    failed = record(requests={"0": FAILED, "1": FAILED})
    assert found(kind, failed, failed) == ["requests"]


@pytest.mark.parametrize("kind", RELATION_KINDS)
def test_a_request_that_failed_on_one_side_is_found(kind: str) -> None:
    good, bad = record(requests={"0": REQUEST, "1": REQUEST}), record(requests={"0": REQUEST, "1": FAILED})
    assert 'requests["1"].generated_tokens' in found(kind, good, bad)
    assert 'requests["1"].generated_tokens' in found(kind, bad, good)


@pytest.mark.parametrize("kind", RELATION_KINDS)
@pytest.mark.parametrize("part", [{"ignore": dict.fromkeys(REQUEST.keys() - {"prompt_tokens"}, "not under test")}])
def test_tokens_are_compared_even_where_the_rules_ignore_every_field(kind: str, part: Json) -> None:
    rules = {"assert": {"counters": {"*": "exact"}}, **part}
    assert found(kind, record(), record(), rules) == []
    changed = record({"generated_tokens": [1, 9, 3]})
    assert found(kind, changed, record(), rules) == ['requests["0"].generated_tokens[1]']


@pytest.mark.parametrize("kind", RELATION_KINDS)
@pytest.mark.parametrize("elsewhere", [{"environment": {"machine": "two"}}, {}])
def test_logprobs_of_two_environments_are_compared_by_the_fixtures_own_rule(kind: str, elsewhere: Json) -> None:
    rules = {"assert": {"generated_logprobs": {"atol": 0.01, "rtol": 0.0}}}
    here = record(environment={"machine": "one"})
    near = record({"generated_logprobs": [-0.1, -0.2, -0.301]}, **elsewhere)
    far = record({"generated_logprobs": [-0.1, -0.2, -0.32]}, **elsewhere)
    path = 'requests["0"].generated_logprobs[2]'
    assert found(kind, near, here, rules) == found(kind, here, near, rules) == []
    assert found(kind, near, here, {"assert": {"generated_logprobs": "exact"}}) == [path]
    assert found(kind, far, here, rules) == [path]
    (finding,) = check_relation(Relation(kind, "other"), far, here, parse_rules(rules))
    assert "different environments, so this fixture's own rule holds: atol 0.01, rtol 0.0" in finding.message
    same = record({"generated_logprobs": [-0.1, -0.2, -0.301]}, environment={"machine": "one"})
    assert found(kind, same, here, rules) == [path]


@pytest.mark.parametrize("kind", RELATION_KINDS)
def test_logprobs_without_a_rule_are_left_out_between_environments_and_tokens_are_not(kind: str) -> None:
    here, there = record(environment={"machine": "one"}), {"environment": {"machine": "two"}}
    assert found(kind, record({"generated_logprobs": [-9.0, -9.0, -9.0]}, **there), here) == []
    assert found(kind, record({"generated_tokens": [1, 9, 3]}, **there), here) == ['requests["0"].generated_tokens[1]']


@pytest.mark.parametrize("broken", [None, [], {}, {"requests": None}, {"requests": {}}, {"requests": {"0": 3}}])
def test_a_record_without_requests_proves_nothing(broken: Any) -> None:
    assert found("async_equals_legacy", broken, record()) == ["requests"]
    assert found("async_equals_legacy", record(), broken) == ["requests"]


def test_the_schema_knows_every_kind() -> None:
    text = resources.files("framework.manifest").joinpath("manifest.schema.json").read_text("utf-8")
    item = json.loads(text)["properties"]["relations"]["items"]
    assert item["properties"]["kind"]["enum"] == list(RELATION_KINDS)


def test_findings_say_which_side_is_which() -> None:
    def messages(this: Any, other: Any) -> list[tuple[str, Any, Any]]:
        findings = check_relation(Relation("async_equals_legacy", "other"), this, other, parse_rules(RULES))
        return [(finding.message, finding.golden, finding.current) for finding in findings]

    assert messages(record({"generated_tokens": [1, 9, 3]}), record()) == [
        ("golden is other: golden 2, current 9", 2, 9),
    ]
    both = record(requests={"0": REQUEST, "1": OTHER})
    gap = record(requests={"0": REQUEST, "1": without(OTHER, "generated_text")})
    assert messages(gap, both) == [("golden is other: missing in current", "xy", None)]
    assert messages(both, gap) == [("golden is other: missing in golden", None, "xy")]
    assert messages(record(), both) == [("other has this request, and here none has the same id", None, None)]
    assert messages(both, record()) == [("other has no request with the same id", None, None)]
    assert messages({}, record()) == [("no requests to compare: this record has none", None, None)]
    assert messages(record(), {}) == [("no requests to compare: other has none", None, None)]


def test_one_side_that_is_no_list_has_no_common_beginning() -> None:
    changed = record({"generated_tokens": None})
    assert found("same_prefix_as", changed, record()) == ['requests["0"].generated_tokens']
    assert found("same_prefix_as", record(), changed) == ['requests["0"].generated_tokens']


def test_as_many_requests_on_both_sides_report_an_odd_one_once() -> None:
    this = record(requests={"0": REQUEST, "1": OTHER})
    other = record(requests={"0": REQUEST, "1": OTHER | {"prompt_tokens": [8]}})
    assert found("alone_equals_batched", this, other) == ['requests["1"]']
