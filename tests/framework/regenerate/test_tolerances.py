from __future__ import annotations

from typing import Any

import pytest

from framework.compare.rules import Rules, parse_rules
from framework.regenerate.tolerances import (
    ROUNDING_SPREAD,
    tolerance_problems,
    tolerance_warnings,
    unrecorded_spreads,
)

LOGPROBS = {"requests": {"0": {"generated_logprobs": [-4.0, -0.5]}, "1": {"generated_logprobs": [[{"logprob": -8.0}]]}}}


def rules(atol: float, rtol: float = 0.0) -> Rules:
    assertion: dict[str, Any] = {
        "generated_logprobs": {"atol": atol, "rtol": rtol},
        "generated_tokens": "exact",
        "counters": {"x": {"atol": 1.0, "rtol": 0.0}},
    }
    return parse_rules({"assert": assertion}, where="test", lines={})


@pytest.mark.parametrize(
    ("seen", "warned"),
    [(0.0, True), (2e-4, False), (5e-5, True), (1e-9, True)],
)
def test_a_tolerance_far_above_what_was_seen_is_warned_about(seen: float, warned: bool) -> None:
    assert bool(tolerance_warnings(rules(1e-3), {"generated_logprobs": seen})) is warned


@pytest.mark.parametrize("seen", [0.0, 1e-9, ROUNDING_SPREAD])
def test_a_tolerance_ten_times_above_rounding_is_not_loose_however_small_the_spread(seen: float) -> None:
    assert tolerance_warnings(rules(10 * ROUNDING_SPREAD), {"generated_logprobs": seen}) == {}
    assert len(tolerance_warnings(rules(10.1 * ROUNDING_SPREAD), {"generated_logprobs": seen})) == 1


def test_without_a_spread_nothing_is_said_of_a_tolerance() -> None:
    assert tolerance_warnings(rules(1e-3), {}) == {}
    assert tolerance_problems(rules(0.0), {}, LOGPROBS) == {}


@pytest.mark.parametrize(
    ("atol", "rtol", "refused"),
    [(1e-6, 0.0, False), (0.9e-6, 0.0, True), (0.0, 1.3e-7, False), (0.0, 1.2e-7, True), (0.0, 0.0, True)],
)
def test_a_tolerance_below_the_spread_is_a_problem(atol: float, rtol: float, refused: bool) -> None:
    problems = tolerance_problems(rules(atol, rtol), {"generated_logprobs": 1e-6}, LOGPROBS)
    assert len(problems) == refused
    assert all("less than the spread 1e-06" in problem for problem in problems.values())


def test_a_field_with_values_needs_its_spread() -> None:
    assert unrecorded_spreads(rules(1e-3), {}, LOGPROBS) == ["generated_logprobs"]
    assert unrecorded_spreads(rules(1e-3), {"generated_logprobs": 0.0}, LOGPROBS) == []
    assert unrecorded_spreads(rules(1e-3), {}, {"requests": {"0": {"generated_logprobs": []}}}) == []
