from __future__ import annotations

import math
from typing import Any

import pytest

from tests.framework.compare.samples import compared, found, record, rules

WRITTEN = rules({"performance": {"*": {"ratio": [0.5, 2.0]}}}, inform=[])
PATH = "performance.speed"


def judged(golden: Any, current: Any) -> list[tuple[str, str]]:
    return found(record(performance={"speed": golden}), record(performance={"speed": current}), WRITTEN)


@pytest.mark.parametrize(
    ("golden", "current"),
    [
        (10.0, 10.0),
        (10.0, 5.0),
        (10.0, 20.0),
        (10, 20),
        ([1.0, 2.0, 3.0], [1.0, 4.0, 99.0]),
        ([1, 2, 3, 4], [5, 5, 5]),
        (1e-300, 2e-300),
    ],
)
def test_a_ratio_within_its_bounds_passes(golden: Any, current: Any) -> None:
    assert judged(golden, current) == []


@pytest.mark.parametrize(
    ("golden", "current", "expected"),
    [
        (10.0, 4.9, ("PERFORMANCE", PATH)),
        (10.0, 20.1, ("PERFORMANCE", PATH)),
        ([1.0, 2.0, 3.0], [1.0, 5.0, 5.0], ("PERFORMANCE", PATH)),
        (10.0, 0.0, ("PERFORMANCE", PATH)),
        (0.0, 10.0, ("PERFORMANCE", PATH)),
        (0.0, 0.0, ("PERFORMANCE", PATH)),
        (-10.0, -10.0, ("PERFORMANCE", PATH)),
        ([1.0, 2.0], [1.0, 2.0, 3.0], ("PERFORMANCE", PATH)),
        ([1.0, 2.0, 3.0], [1.0], ("PERFORMANCE", PATH)),
        ([1.0, 2.0, 3.0], [], ("PERFORMANCE", PATH)),
        ([1.0, 2.0, 3.0], [1.0, 0.0, 3.0], ("PERFORMANCE", f"{PATH}[1]")),
        ([1.0, -2.0, 3.0], [1.0, 2.0, 3.0], ("PERFORMANCE", f"{PATH}[1]")),
        (10.0, math.nan, ("NON_FINITE", PATH)),
        (math.nan, math.nan, ("NON_FINITE", PATH)),
        (10.0, math.inf, ("NON_FINITE", PATH)),
        (10.0, 10**400, ("NON_FINITE", PATH)),
        ([1.0, 2.0, 3.0], [1.0, 2.0, math.nan], ("NON_FINITE", f"{PATH}[2]")),
        (10.0, None, ("STRUCTURE", PATH)),
        (10.0, "10.0", ("STRUCTURE", PATH)),
        (10.0, True, ("STRUCTURE", PATH)),
        (None, None, ("STRUCTURE", PATH)),
        (10.0, [10.0, 10.0, 10.0], ("STRUCTURE", PATH)),
        ([1.0, 2.0, 3.0], [1.0, None, 3.0], ("STRUCTURE", f"{PATH}[1]")),
        ({}, {}, ("STRUCTURE", PATH)),
    ],
)
def test_a_broken_or_moved_figure_fails(golden: Any, current: Any, expected: tuple[str, str]) -> None:
    assert judged(golden, current) == [expected]


def test_a_missing_figure_fails() -> None:
    both = record(performance={"speed": 1.0, "memory": 1.0})
    assert found(both, record(performance={"speed": 1.0}), WRITTEN) == [("STRUCTURE", "performance.memory")]


def test_no_samples_on_either_side_prove_nothing() -> None:
    assert judged([], []) == [("RULES", PATH)]


def test_a_figure_too_small_to_divide_by_is_no_crash() -> None:
    assert judged(5e-324, 1e308) == [("PERFORMANCE", PATH)]


def test_figures_may_be_compared_by_tolerance() -> None:
    written = rules({"performance": {"speed": {"atol": 1.0, "rtol": 0.0}}}, inform=[])
    both = [record(performance={"speed": value}) for value in (10, 11.5)]
    assert found(both[0], both[1], written) == [("PERFORMANCE", PATH)]
    assert found(both[0], both[0], written) == []


def test_a_finding_shows_the_sample_that_is_broken_and_how_far_a_ratio_is_out() -> None:
    def finding(golden: Any, current: Any) -> Any:
        (only,) = compared(
            record(performance={"speed": golden}), record(performance={"speed": current}), WRITTEN
        ).findings
        return only

    assert (finding(0.0, 3.0).golden, finding(0.0, 3.0).current) == (0.0, None)
    assert (finding(3.0, 0.0).golden, finding(3.0, 0.0).current) == (None, 0.0)
    assert finding(4.0, 1.0).error == 0.25
    assert finding(4.0, 10.0).error == 0.5
    assert "0.25 times golden" in finding(4.0, 1.0).message


def test_figures_of_different_work_are_not_compared() -> None:
    informed = rules(
        {"performance": {"speed": {"ratio": [0.5, 2.0]}}}, inform=["generated_tokens", "generated_logprobs"]
    )
    del informed["assert"]["generated_tokens"], informed["assert"]["generated_logprobs"]
    golden = record(performance={"speed": 1.0})
    less = record({"generated_tokens": [1], "generated_logprobs": [-0.1]}, performance={"speed": 1.0})
    assert found(golden, golden, informed) == []
    (finding,) = compared(golden, less, informed).findings
    assert (finding.kind, finding.path) == ("PERFORMANCE", "performance")
    assert "request 0 generated 1 tokens, 3 in the golden" in finding.message


def test_a_difference_of_work_that_a_finding_shows_is_not_said_twice() -> None:
    golden = record(performance={"speed": 1.0})
    less = record({"generated_tokens": [1, 2]}, performance={"speed": 1.0})
    assert found(golden, less, WRITTEN) == [("LENGTH", 'requests["0"].generated_tokens')]
