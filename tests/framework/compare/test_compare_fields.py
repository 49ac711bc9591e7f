from __future__ import annotations

import math
from typing import Any

import pytest

from tests.framework.compare.samples import REQUEST, compared, found, record, rules, without

TOKENS = 'requests["0"].generated_tokens'
LOGPROBS = 'requests["0"].generated_logprobs'
TEXT = 'requests["0"].generated_text'


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        ([1, 9, 3], ("TOKEN", f"{TOKENS}[1]")),
        ([8, 2, 9], ("TOKEN", f"{TOKENS}[0]")),
        ([1, 2], ("LENGTH", TOKENS)),
        ([1, 2, 3, 4], ("LENGTH", TOKENS)),
        ([], ("LENGTH", TOKENS)),
        ([1, 2.0, 3], ("STRUCTURE", f"{TOKENS}[1]")),
        ([True, 2, 3], ("STRUCTURE", f"{TOKENS}[0]")),
        ([1, None, 3], ("STRUCTURE", f"{TOKENS}[1]")),
        ([1, [2], 3], ("STRUCTURE", f"{TOKENS}[1]")),
        ([1, math.nan, 3], ("NON_FINITE", f"{TOKENS}[1]")),
        (None, ("STRUCTURE", TOKENS)),
        ("123", ("STRUCTURE", TOKENS)),
        ({"0": 1}, ("STRUCTURE", TOKENS)),
    ],
)
def test_token_ids_are_exact_and_one_finding_a_list(current: Any, expected: tuple[str, str]) -> None:
    assert found(record(), record({"generated_tokens": current})) == [expected]


@pytest.mark.parametrize("same", [[1.0], [True], [[1]], None, "abc", [None], {}])
def test_tokens_of_a_wrong_type_fail_even_if_both_sides_have_it(same: Any) -> None:
    both = record({"generated_tokens": same})
    assert [kind for kind, _ in found(both, both)] == ["STRUCTURE"]


def test_prompt_tokens_are_compared_without_a_rule() -> None:
    changed = record({"prompt_tokens": [5, 7]})
    assert found(record(), changed) == [("TOKEN", 'requests["0"].prompt_tokens[1]')]


def test_a_request_without_prompt_tokens_is_no_request() -> None:
    neither = record(requests={"0": without(REQUEST, "prompt_tokens")})
    assert found(neither, neither) == [("STRUCTURE", 'requests["0"].prompt_tokens')]


def test_an_empty_prompt_on_both_sides_is_an_empty_prompt() -> None:
    empty = record({"prompt_tokens": []})
    assert found(empty, empty) == []


@pytest.mark.parametrize("current", ["a", "abcXYZ", "abd", "", "xabc"])
def test_texts_are_compared_to_their_ends(current: str) -> None:
    assert found(record(), record({"generated_text": current})) == [("TEXT", TEXT)]


@pytest.mark.parametrize("same", ["nan", "inf", "café 日本 🙂", "a\u2028b\x1ec\r\n", "\ud800", ""])
def test_any_text_equals_itself(same: str) -> None:
    assert found(record({"generated_text": same}), record({"generated_text": same})) == []


@pytest.mark.parametrize("other", [None, 3, ["abc"], math.nan])
def test_a_text_that_is_no_string_is_structure_or_not_finite(other: Any) -> None:
    kind = "NON_FINITE" if isinstance(other, float) else "STRUCTURE"
    assert found(record(), record({"generated_text": other})) == [(kind, TEXT)]
    assert found(record({"generated_text": other}), record({"generated_text": other})) == [(kind, TEXT)]


def test_texts_that_differ_in_normalisation_only_say_so() -> None:
    (finding,) = compared(record({"generated_text": "caf\u00e9"}), record({"generated_text": "cafe\u0301"})).findings
    assert finding.kind == "TEXT"
    assert "normalisation" in finding.message


def test_a_text_finding_shows_the_first_difference() -> None:
    golden, current = record({"generated_text": "a" * 500 + "x" + "b" * 500}), record({"generated_text": "a" * 1001})
    (finding,) = compared(golden, current).findings
    assert "character 500" in finding.message
    assert len(finding.message) < 300


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        ([-0.1, -0.2009, -0.3], []),
        ([-0.1, -0.2015, -0.3], [("LOGPROB", f"{LOGPROBS}[1]")]),
        ([-0.1, -0.2], [("LENGTH", LOGPROBS)]),
        (None, [("STRUCTURE", LOGPROBS)]),
        ([-0.1, "-0.2", -0.3], [("STRUCTURE", f"{LOGPROBS}[1]")]),
        ([-0.1, True, -0.3], [("STRUCTURE", f"{LOGPROBS}[1]")]),
        ([-0.1, math.nan, -0.3], [("NON_FINITE", f"{LOGPROBS}[1]")]),
        ([-0.1, -math.inf, -0.3], [("NON_FINITE", f"{LOGPROBS}[1]")]),
        ([-0.1, float("1e400"), -0.3], [("NON_FINITE", f"{LOGPROBS}[1]")]),
        ([-0.1, 10**400, -0.3], [("NON_FINITE", f"{LOGPROBS}[1]")]),
    ],
)
def test_logprobs_are_judged_by_tolerance(current: Any, expected: list[tuple[str, str]]) -> None:
    assert found(record(), record({"generated_logprobs": current})) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_on_both_sides_fails(value: float) -> None:
    both = record({"generated_logprobs": [-0.1, value, -0.3]})
    assert found(both, both) == [("NON_FINITE", f"{LOGPROBS}[1]")]


def test_minus_infinity_passes_only_where_the_rule_says_so() -> None:
    written = rules({"generated_logprobs": {"atol": 0.001, "rtol": 0.0, "allow_minus_infinity": True}})
    masked = record({"generated_logprobs": [-0.1, -math.inf, -0.3]})
    assert found(masked, masked, written) == []
    assert found(masked, record(), written) == [("LOGPROB", f"{LOGPROBS}[1]")]
    for other in (math.inf, math.nan):
        broken = record({"generated_logprobs": [-0.1, other, -0.3]})
        assert found(masked, broken, written) == [("NON_FINITE", f"{LOGPROBS}[1]")]


def test_an_integer_literal_stands_for_a_float_logprob() -> None:
    golden, current = record({"generated_logprobs": [0, -1, -2]}), record({"generated_logprobs": [0.0, -1.0, -2.0]})
    assert found(golden, current) == []


def test_the_golden_is_the_reference_of_a_relative_tolerance() -> None:
    written = rules({"generated_logprobs": {"atol": 0.0, "rtol": 0.5}})
    large, small = record({"generated_logprobs": [-3.0]}), record({"generated_logprobs": [-1.6]})
    assert found(large, small, written) == []
    assert found(small, large, written) == [("LOGPROB", f"{LOGPROBS}[0]")]


def test_a_tolerance_ends_exactly_at_its_bound() -> None:
    written = rules({"generated_logprobs": {"atol": 0.5, "rtol": 0.25}})
    golden = record({"generated_logprobs": [-2.0]})
    assert found(golden, record({"generated_logprobs": [-3.0]}), written) == []
    beyond = record({"generated_logprobs": [math.nextafter(-3.0, -4.0)]})
    assert found(golden, beyond, written) == [("LOGPROB", f"{LOGPROBS}[0]")]


ROUTING = [[[2, 1]], [[0, 3]], [[4, 5]], [[6, 7]]]
REVERSED = [[row[::-1] for row in layers] for layers in ROUTING]


@pytest.mark.parametrize(
    ("rule", "current", "expected"),
    [
        ("set", ROUTING, []),
        ("set", REVERSED, []),
        ("sequence", ROUTING, []),
        ("sequence", REVERSED, [("ROUTING", "[0][0][0]")]),
        ("exact", REVERSED, [("ROUTING", "[0][0][0]")]),
        ("set", ROUTING[:3], [("LENGTH", "")]),
        ("set", [*ROUTING[:3], [[6, 8]]], [("ROUTING", "[3][0][1]")]),
        ("set", [*ROUTING[:3], [[6, 6]]], [("ROUTING", "[3][0][1]")]),
        ("set", [*ROUTING[:3], [[6]]], [("LENGTH", "[3][0]")]),
        ("set", [*ROUTING[:3], [[6, 7.0]]], [("STRUCTURE", "[3][0][1]")]),
        ("set", [*ROUTING[:3], [6, 7]], [("LENGTH", "[3]")]),
        ("set", [*ROUTING[:3], [6]], [("STRUCTURE", "[3][0]")]),
        ("set", [*ROUTING[:3], [[6, -7]]], [("STRUCTURE", "[3][0][1]")]),
    ],
)
def test_routing_is_compared_as_set_or_sequence(rule: str, current: Any, expected: list[tuple[str, str]]) -> None:
    written = rules({"routing_indices": rule})
    golden = record({"routing_indices": ROUTING})
    got = found(golden, record({"routing_indices": current}), written)
    assert got == [(kind, f'requests["0"].routing_indices{path}') for kind, path in expected]


def test_a_negative_expert_fails_on_both_sides() -> None:
    both = record({"routing_indices": [[[0, -1]]]})
    assert found(both, both, rules({"routing_indices": "set"})) == [
        ("STRUCTURE", 'requests["0"].routing_indices[0][0][1]')
    ]


def test_ids_have_no_distance_and_counters_have() -> None:
    (token,) = compared(record(), record({"generated_tokens": [1, 9, 3]})).findings
    assert (token.golden, token.current, token.error, token.allowed) == (2, 9, None, None)
    (counter,) = compared(record(), record(counters={"step_count": 5})).findings
    assert (counter.golden, counter.current, counter.error, counter.allowed) == (3, 5, 2.0, 0.0)
    golden, current = record({"routing_indices": [[[1]]]}), record({"routing_indices": [[[3]]]})
    (routing,) = compared(golden, current, rules({"routing_indices": "exact"})).findings
    assert (routing.error, routing.allowed) == (None, None)


def test_a_wrong_type_says_on_which_side() -> None:
    (both,) = compared(record({"generated_tokens": None}), record({"generated_tokens": None})).findings
    assert "both are null, not a list" in both.message
    (one,) = compared(record({"generated_text": "x"}), record({"generated_text": 3})).findings
    assert "golden is a string, current an integer" in one.message
    assert found(record({"generated_text": 3}), record({"generated_text": "x"})) == [("STRUCTURE", TEXT)]


@pytest.mark.parametrize(
    ("golden", "current", "passes"),
    [
        (2.0, 2.4, True),
        (2.0, 2.6, False),
        (4, 4, True),
        (4, 5, False),
        (2**60, 2**60 + 1, False),
        ("x", "x", True),
        ("x", "y", False),
        (None, None, True),
        (True, True, True),
        (True, False, False),
        (4, 4.0, False),
    ],
)
def test_an_unknown_field_may_have_a_tolerance_for_its_numbers(golden: Any, current: Any, passes: bool) -> None:
    written = rules({"extra": {"atol": 0.5, "rtol": 0.0}})
    assert (found(record({"extra": [golden]}), record({"extra": [current]}), written) == []) is passes
