from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.framework.compare.samples import REQUEST, compared, found, record, rules, without

TOKENS = 'requests["0"].generated_tokens'
LOGPROBS = 'requests["0"].generated_logprobs'
TEXT = 'requests["0"].generated_text'


def test_a_record_equals_itself() -> None:
    assert found(record(), record()) == []


@pytest.mark.parametrize(
    ("golden", "current", "expected"),
    [
        (131, 0, "COUNTER"),
        (3, 4, "COUNTER"),
        (2**53 + 1, 2**53, "COUNTER"),
        (3, 3.0, "STRUCTURE"),
        (1, True, "STRUCTURE"),
        (3.0, 3.0, "STRUCTURE"),
        (3, None, "STRUCTURE"),
        (3, "3", "STRUCTURE"),
        (3, math.nan, "NON_FINITE"),
        (math.nan, math.nan, "NON_FINITE"),
        (3, math.inf, "NON_FINITE"),
    ],
)
def test_a_counter_is_an_integer_and_exact(golden: Any, current: Any, expected: str) -> None:
    got = found(record(counters={"step_count": golden}), record(counters={"step_count": current}))
    assert got == [(expected, "counters.step_count")]


def test_equal_integers_above_the_range_of_floats_are_equal() -> None:
    assert found(record(counters={"bytes": 2**53 + 1}), record(counters={"bytes": 2**53 + 1})) == []


def test_a_counter_missing_or_new_is_structure() -> None:
    one, two = record(counters={"a": 1}), record(counters={"a": 1, "b": 2})
    assert found(two, one) == [("STRUCTURE", "counters.b")]
    assert found(one, two) == [("STRUCTURE", "counters.b")]


@pytest.mark.parametrize("other", [None, [], "x", 3])
def test_counters_that_are_no_map_are_structure(other: Any) -> None:
    assert found(record(), record(counters=other)) == [("STRUCTURE", "counters")]
    assert found(record(counters=other), record(counters=other)) == [("STRUCTURE", "counters")]


def test_absent_null_and_empty_counters_are_three_things() -> None:
    absent, null, empty = without(record(), "counters"), record(counters=None), record(counters={})
    for one, other in ((absent, null), (absent, empty), (null, empty)):
        assert found(one, other) == [("STRUCTURE", "counters")]


def test_a_histogram_among_counters_is_compared_entry_by_entry() -> None:
    golden = record(counters={"replays": {"8": 2, "16": 1}})
    current = record(counters={"replays": {"8": 2, "16": 3}})
    assert found(golden, golden) == []
    assert found(golden, current) == [("COUNTER", 'counters.replays["16"]')]


def test_a_counter_may_have_a_tolerance() -> None:
    written = rules({"counters": {"*": "exact", "peak": {"atol": 1, "rtol": 0}}})
    golden = record(counters={"peak": 2**60, "step_count": 3})
    assert found(golden, record(counters={"peak": 2**60 + 1, "step_count": 3}), written) == []
    assert found(golden, record(counters={"peak": 2**60 + 2, "step_count": 3}), written) == [
        ("COUNTER", "counters.peak")
    ]


def test_a_request_missing_or_extra_is_one_finding_each() -> None:
    one, two = record(), record(requests={"0": REQUEST, "1": REQUEST})
    assert found(two, one) == [("STRUCTURE", 'requests["1"]')]
    assert found(one, two) == [("STRUCTURE", 'requests["1"]')]


def test_a_rule_that_matches_no_request_is_found() -> None:
    assert found(record(requests={}), record(requests={})) == [
        ("RULES", "assert.generated_tokens"),
        ("RULES", "assert.generated_text"),
        ("RULES", "assert.generated_logprobs"),
    ]


def test_a_logprob_missing_in_the_golden_is_structure() -> None:
    golden = record(requests={"0": without(REQUEST, "generated_logprobs")})
    assert found(golden, record()) == [("STRUCTURE", LOGPROBS)]


def test_null_on_both_sides_of_a_list_is_structure() -> None:
    both = record({"generated_logprobs": None})
    assert found(both, both) == [("STRUCTURE", LOGPROBS)]


def test_empty_lists_on_both_sides_prove_nothing() -> None:
    both = record({"generated_tokens": [], "generated_logprobs": [], "generated_text": ""})
    assert found(both, both) == [("RULES", TOKENS), ("RULES", LOGPROBS)]


@pytest.mark.parametrize(
    ("request_part", "parts", "path"),
    [
        ({}, {"counters": {"step_count": {}}}, "counters.step_count"),
        ({}, {"counters": {"step_count": []}}, "counters.step_count"),
        ({}, {"counters": {"step_count": [[]]}}, "counters.step_count"),
        ({}, {"counters": {"step_count": {"a": [], "b": {}}}}, "counters.step_count"),
        ({"routing_indices": [[], []]}, {}, 'requests["0"].routing_indices'),
        ({"routing_indices": [[[]]]}, {}, 'requests["0"].routing_indices'),
        ({"top_n_logprobs": [[], []]}, {}, 'requests["0"].top_n_logprobs'),
        ({"finish_reason": {}}, {}, 'requests["0"].finish_reason'),
        ({"finish_reason": [{}]}, {}, 'requests["0"].finish_reason'),
    ],
)
def test_nested_empty_things_on_both_sides_prove_nothing(
    request_part: dict[str, Any], parts: dict[str, Any], path: str
) -> None:
    both = record(request_part, **parts)
    asserted = dict.fromkeys(["finish_reason", *request_part], "exact")
    written = rules(asserted, ignore={})
    assert found(both, both, written) == [("RULES", path)]
    name = path.rpartition(".")[2]
    allowed = {"exact": True, "allow_empty": True}
    part = {"counters": {"*": allowed}} if parts else {name: allowed}
    assert found(both, both, rules(asserted | part, ignore={})) == []


def test_empty_lists_pass_where_the_rule_allows_them() -> None:
    written = rules(
        {
            "generated_tokens": {"exact": True, "allow_empty": True},
            "generated_logprobs": {"atol": 0.001, "rtol": 0.0, "allow_empty": True},
        }
    )
    both = record({"generated_tokens": [], "generated_logprobs": [], "generated_text": ""})
    assert found(both, both, written) == []


def test_fields_that_nothing_declares_are_found_once_by_their_bare_name() -> None:
    two = record(requests={"0": REQUEST, "1": REQUEST})
    assert found(two, two, {"assert": {"generated_tokens": "exact"}}) == [
        ("RULES", "generated_text"),
        ("RULES", "finish_reason"),
        ("RULES", "generated_logprobs"),
        ("RULES", "counters"),
    ]


def test_a_counter_beside_the_declared_ones_is_found_by_its_own_name() -> None:
    both = record(counters={"step_count": 3, "other": 1})
    assert found(both, both, rules({"counters": {"step_count": "exact"}})) == [("RULES", "counters.other")]


def test_a_field_that_only_the_run_has_must_be_declared_too() -> None:
    assert found(record(), record({"surprise": 1})) == [("RULES", "surprise")]


def test_a_rule_that_matches_nothing_is_found_and_names_the_nearest() -> None:
    (finding,) = compared(record(), record(), rules({"generated_logprob": "exact"})).findings
    assert (finding.kind, finding.path) == ("RULES", "assert.generated_logprob")
    assert '"generated_logprobs"' in finding.message


@pytest.mark.parametrize("counters", [{}, {"step_count": 3}])
def test_a_star_over_nothing_is_found(counters: dict[str, int]) -> None:
    written = rules({"counters": {"*": "exact", **dict.fromkeys(counters, "exact")}})
    both = record(counters=counters)
    assert found(both, both, written) == [("RULES", "assert.counters.*")]


def test_a_named_counter_that_nobody_records_is_found() -> None:
    written = rules({"counters": {"*": "exact", "step_cuont": "exact"}})
    assert found(record(), record(), written) == [("RULES", "assert.counters.step_cuont")]


def test_a_name_beats_its_section() -> None:
    written = rules(inform=["performance", "counters.noisy"], ignore={"finish_reason": "x", "counters.odd": "differs"})
    golden, current = record(counters={"a": 1, "noisy": 1, "odd": 1}), record(counters={"a": 1, "noisy": 2, "odd": 2})
    assert found(golden, current, written) == []


def test_margins_settings_and_environment_are_informed_unless_asserted() -> None:
    golden = record({"margins": [1.0]}, settings={"a": {"value": 1}}, environment={"torch": "1"})
    current = record({"margins": [2.0]}, settings={"a": {"value": 2}}, environment={"torch": "2"})
    assert found(golden, current) == []
    written = rules({"margins": {"atol": 0.1, "rtol": 0.0}, "settings": "exact", "environment": "exact"})
    assert found(golden, current, written) == [
        ("SETTINGS_DRIFT", "settings.a.value"),
        ("STRUCTURE", "environment.torch"),
        ("LOGPROB", 'requests["0"].margins[0]'),
    ]


def test_an_error_and_a_finish_reason_are_structure() -> None:
    written = rules({"finish_reason": "exact", "error": "exact"}, ignore={})
    golden = record({"error": "too long", "finish_reason": "error"})
    assert found(golden, golden, written) == []
    assert found(golden, record({"error": "other", "finish_reason": "error"}), written) == [
        ("STRUCTURE", 'requests["0"].error')
    ]
    assert found(golden, record({"error": "too long"}), written) == [("STRUCTURE", 'requests["0"].finish_reason')]


def test_findings_come_in_the_order_in_which_they_explain() -> None:
    golden = record(requests={"0": REQUEST, "1": REQUEST})
    current = record(
        {"generated_tokens": [1, 2, 4], "generated_text": "abd", "generated_logprobs": [-1.0, -0.2, -0.3], "extra": 1},
        counters={"step_count": 4},
    )
    assert found(golden, current) == [
        ("STRUCTURE", 'requests["1"]'),
        ("RULES", "extra"),
        ("COUNTER", "counters.step_count"),
        ("TOKEN", f"{TOKENS}[2]"),
        ("TEXT", TEXT),
        ("LOGPROB", f"{LOGPROBS}[0]"),
    ]


def test_requests_are_reported_in_the_order_of_their_numbers() -> None:
    golden = record(requests={str(i): REQUEST for i in range(12)})
    current = record(requests={str(i): REQUEST | {"generated_text": "x"} for i in range(12)})
    assert [path for _, path in found(golden, current)] == [f'requests["{i}"].generated_text' for i in range(12)]


def test_a_list_finding_names_the_first_place_the_number_and_the_worst() -> None:
    (finding,) = compared(record(), record({"generated_logprobs": [-0.102, -0.2, -0.9]})).findings
    assert finding.path == f"{LOGPROBS}[0]"
    assert finding.error == pytest.approx(0.002)
    assert finding.allowed == 0.001
    assert "2 of 3" in finding.message
    assert "[2]" in finding.message


def test_a_length_finding_tells_what_the_beginning_is_like() -> None:
    (finding,) = compared(record(), record({"generated_tokens": [1, 2]})).findings
    assert "the first 2 agree" in finding.message
    (finding,) = compared(record(), record({"generated_tokens": [1, 9]})).findings
    assert "differ before that, at [1]" in finding.message


def test_leaves_are_counted_by_their_treatment() -> None:
    comparison = compared(record(performance={"seconds": [1.0, 2.0]}), record(performance={"seconds": [1.0, 2.0]}))
    assert comparison.compared == 3 + 1 + 3 + 1
    assert comparison.informed == 2
    assert comparison.ignored == 1


def test_a_golden_is_compared_without_its_provenance() -> None:
    golden = record() | {"schema": "golden.golden/1", "seal": "x", "provenance": {"reason": "y"}, "hashes": {}}
    golden["requests"]["0"].pop("finish_reason")
    assert found(golden, record()) == []
    assert found(golden, golden) == []


def test_a_part_that_belongs_to_no_record_must_be_declared() -> None:
    assert found(record(notes="x"), record(notes="x")) == [("RULES", "notes")]
    assert found(record(notes="x"), record(notes="x"), rules(inform=["performance", "notes"])) == []


def test_records_of_two_fixtures_are_not_compared_silently() -> None:
    assert found(record(), record(fixture="other")) == [("STRUCTURE", "fixture")]


@pytest.mark.parametrize("other", [None, [], "x", 3, 1.5, True])
def test_what_is_no_record_is_one_finding(other: Any) -> None:
    assert found(record(), other) == [("STRUCTURE", "record")]
    assert found(other, record()) == [("STRUCTURE", "record")]


def test_a_request_that_is_no_map_is_structure() -> None:
    broken = record(requests={"0": None})
    assert ("STRUCTURE", 'requests["0"]') in found(record(), broken)
    assert ("STRUCTURE", 'requests["0"]') in found(broken, record())


def test_findings_are_json_whatever_stands_in_the_record() -> None:
    golden = record(counters={"a": 10**5000, "b": math.nan, "c": "x" * 10_000, "d": {}, 'e"\n': 1})
    current = record(counters={"a": 1, "b": 2, "c": 3, "d": 4, 'e"\n': 2})
    findings = compared(golden, current).findings
    text = json.dumps([finding.as_json() for finding in findings], allow_nan=False)
    assert len(findings) == 5
    assert len(text) < 5_000


@pytest.mark.parametrize(
    ("request_changes", "expected"),
    [
        ({"generated_tokens": [9, 2, 3]}, "WRONG_FROM_START"),
        ({"generated_tokens": [1, 9, 3]}, None),
        ({"generated_tokens": [1, 9, 3], "generated_logprobs": [-0.1004, -0.2, -0.3]}, "NUMERIC_DRIFT"),
        ({"generated_tokens": [1, 2, 9]}, "TIE_FLIP"),
        ({"generated_tokens": [1, 2]}, "LENGTH"),
    ],
)
def test_a_token_finding_carries_its_cause(request_changes: dict[str, Any], expected: str | None) -> None:
    golden = record({"margins": [0.5, 1e-9, 0.0]})
    (finding,) = compared(golden, record(request_changes)).findings
    assert finding.cause == expected


def test_a_prompt_that_differs_has_no_cause() -> None:
    (finding,) = compared(record(), record({"prompt_tokens": [9, 6]})).findings
    assert finding.cause is None


def test_unknown_fields_are_compared_by_form_and_value() -> None:
    written = rules({"extra": "exact"})
    golden = record({"extra": {"a": [1, {"b": None}], "c": True}})
    assert found(golden, golden, written) == []
    for other, path in (
        ({"a": [1, {"b": 0}], "c": True}, ".a[1].b"),
        ({"a": [1, {"b": None}], "c": 1}, ".c"),
        ({"a": [1.0, {"b": None}], "c": True}, ".a[0]"),
        ({"a": [1, {}], "c": True}, ".a[1].b"),
        ({"a": [1, {"b": None}]}, ".c"),
    ):
        got = found(golden, record({"extra": other}), written)
        assert got == [("STRUCTURE", f'requests["0"].extra{path}')]


def test_nesting_without_end_is_a_finding() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    (finding,) = compared(record({"extra": deep}), record({"extra": deep}), rules({"extra": "exact"})).findings
    assert finding.kind == "STRUCTURE"
    assert "nested deeper" in finding.message
