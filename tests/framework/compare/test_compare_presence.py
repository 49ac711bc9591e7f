"""What stands on one side only, or is no map: which side is named, and what is left unjudged."""

from __future__ import annotations

from typing import Any

import pytest

from framework.compare.finding import Finding
from tests.framework.compare.samples import REQUEST, compared, found, record, rules, without


def only(golden: Any, current: Any) -> Finding:
    (finding,) = compared(golden, current).findings
    return finding


@pytest.mark.parametrize(
    ("whole", "part", "value"),
    [
        (record(counters={"a": 1, "b": 7}), record(counters={"a": 1}), 7),
        (record(), record(requests={"0": without(REQUEST, "generated_text")}), "abc"),
        (record(requests={"0": REQUEST, "1": REQUEST}), record(), "a map of 5"),
    ],
)
def test_the_side_that_lacks_a_value_is_named(whole: Any, part: Any, value: Any) -> None:
    lacking = only(whole, part)
    assert (lacking.message, lacking.golden, lacking.current) == ("missing in current", value, None)
    new = only(part, whole)
    assert (new.message, new.golden, new.current) == ("missing in golden", None, value)


def test_a_prompt_missing_on_both_sides_says_so() -> None:
    neither = record(requests={"0": without(REQUEST, "prompt_tokens")})
    assert only(neither, neither).message == "missing in golden and in current"


@pytest.mark.parametrize("broken", [None, [], "x"])
def test_requests_that_are_no_map_are_one_finding_not_one_for_each(broken: Any) -> None:
    two = record(requests={"0": REQUEST, "1": REQUEST})
    assert found(two, record(requests=broken)) == [("STRUCTURE", "requests")]
    assert found(record(requests=broken), two) == [("STRUCTURE", "requests")]
    assert found(record(requests=broken), record(requests=broken))[0] == ("STRUCTURE", "requests")


@pytest.mark.parametrize("broken", [None, [], 3])
def test_a_request_that_is_no_map_is_one_finding(broken: Any) -> None:
    two = record(requests={"0": REQUEST, "1": REQUEST})
    half = record(requests={"0": REQUEST, "1": broken})
    assert found(two, half) == [("STRUCTURE", 'requests["1"]')]
    assert found(half, half) == [("STRUCTURE", 'requests["1"]')]


def test_a_section_that_is_no_map_and_not_judged_needs_only_be_declared() -> None:
    both = record(performance=None)
    assert found(both, both) == []
    assert found(both, both, rules(inform=[])) == [("RULES", "performance")]
    assert found(record(), both, rules(inform=[])) == [("RULES", "performance")]


def test_an_asserted_section_that_is_no_map_is_structure() -> None:
    written = rules({"environment": "exact"})
    assert found(record(environment={"a": 1}), record(environment=None), written) == [("STRUCTURE", "environment")]


def test_an_assert_rule_does_not_cover_a_part_that_belongs_to_no_record() -> None:
    both = record(notes="x")
    assert found(both, both, rules({"notes": "exact"})) == [("RULES", "notes"), ("RULES", "assert.notes")]


def test_margins_that_end_early_give_no_cause() -> None:
    golden = record({"margins": [0.0]})
    assert only(golden, record({"generated_tokens": [1, 9, 3]})).cause is None


def test_a_token_of_a_wrong_type_has_no_cause() -> None:
    finding = only(record(), record({"generated_tokens": ["1", 2, 3]}))
    assert (finding.kind, finding.cause) == ("STRUCTURE", None)


def test_one_failing_place_is_not_counted() -> None:
    assert "of 3 places" not in only(record(), record({"generated_logprobs": [-0.1, -0.2, -0.9]})).message
    (mixed,) = compared(record(), record({"generated_logprobs": [-0.9, "x", -0.3]})).findings
    assert "others are STRUCTURE" in mixed.message


def test_an_exact_number_shows_no_allowance() -> None:
    written = rules({"generated_logprobs": "exact"})
    (finding,) = compared(record(), record({"generated_logprobs": [-0.1, -0.2, -0.4]}), written).findings
    assert "is allowed" not in finding.message
    assert finding.error == abs(-0.4 - -0.3)
    assert finding.allowed == 0.0
