from __future__ import annotations

import math
from typing import Any

import pytest

from tests.framework.compare.samples import compared, found, record, rules

PATH = 'requests["0"].top_n_logprobs'
WRITTEN = rules({"top_n_logprobs": {"atol": 0.01, "rtol": 0.0}})


def candidates(*pairs: tuple[int, Any]) -> list[dict[str, Any]]:
    return [{"token_id": token_id, "logprob": logprob} for token_id, logprob in pairs]


GOLDEN = [candidates((5, -0.5), (7, -1.0)), candidates((1, -0.1), (2, -3.0))]


def judged(golden: Any, current: Any) -> list[tuple[str, str]]:
    got = found(record({"top_n_logprobs": golden}), record({"top_n_logprobs": current}), WRITTEN)
    return [(kind, path.removeprefix(PATH)) for kind, path in got]


@pytest.mark.parametrize(
    ("golden", "current"),
    [
        (((5, -0.5), (7, -0.5)), ((7, -0.5), (5, -0.5))),
        (((5, -0.5), (7, -0.505)), ((7, -0.5), (5, -0.505))),
        # Each value moved by less than the tolerance, and so they changed places.
        (((5, -0.5), (7, -0.515)), ((7, -0.507), (5, -0.509))),
        (((5, -0.5), (7, -0.5), (9, -0.5)), ((9, -0.5), (5, -0.5), (7, -0.5))),
    ],
)
def test_candidates_that_tie_may_stand_in_either_order(golden: Any, current: Any) -> None:
    assert judged([candidates(*golden)], [candidates(*current)]) == []
    assert judged([candidates(*current)], [candidates(*golden)]) == []


@pytest.mark.parametrize(
    ("golden", "current", "expected"),
    [
        (((5, -0.5), (7, -1.0)), ((7, -1.0), (5, -0.5)), "[0][0].token_id"),
        (((5, -0.5), (7, -0.52)), ((7, -0.52), (5, -0.5)), "[0][0].token_id"),
        (((1, -0.1), (5, -0.5), (7, -1.0)), ((1, -0.1), (7, -1.0), (5, -0.5)), "[0][1].token_id"),
        (((5, -0.5), (7, -0.5), (9, -2.0)), ((9, -2.0), (5, -0.5), (7, -0.5)), "[0][0].token_id"),
    ],
)
def test_candidates_in_another_order_without_a_tie_are_found(golden: Any, current: Any, expected: str) -> None:
    assert judged([candidates(*golden)], [candidates(*current)]) == [("LOGPROB", expected)]
    assert len(judged([candidates(*current)], [candidates(*golden)])) == 1


def test_an_order_that_both_sides_share_is_not_judged() -> None:
    unordered = [candidates((7, -1.0), (5, -0.5))]
    assert judged(unordered, unordered) == []


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (candidates((1, -0.1), (2, -3.1)), ("LOGPROB", "[1][1].logprob")),
        (candidates((2, -3.0), (1, -0.2)), ("LOGPROB", "[1][0].logprob")),
        (candidates((1, -0.1), (9, -3.0)), ("LOGPROB", "[1][1].token_id")),
        (candidates((1, -0.1), (2, math.nan)), ("NON_FINITE", "[1][1].logprob")),
        (candidates((1, -0.1), (2, None)), ("STRUCTURE", "[1][1].logprob")),
        (candidates((1, -0.1)), ("LENGTH", "[1]")),
        (candidates((1, -0.1), (1, -0.1)), ("LOGPROB", "[1][1].token_id")),
        ([{"token_id": 1, "logprob": -0.1}, {"token_id": 2.0, "logprob": -3.0}], ("STRUCTURE", "[1]")),
        ([{"token_id": 1, "logprob": -0.1}, {"token": "x", "logprob": -3.0}], ("STRUCTURE", "[1]")),
        ([[1, -0.1], [2, -3.0]], ("STRUCTURE", "[1]")),
        (None, ("STRUCTURE", "[1]")),
    ],
)
def test_a_position_that_differs_is_found(position: Any, expected: tuple[str, str]) -> None:
    assert judged(GOLDEN, [GOLDEN[0], position]) == [expected]


def test_a_position_missing_is_a_length() -> None:
    assert judged(GOLDEN, GOLDEN[:1]) == [("LENGTH", "")]


@pytest.mark.parametrize("broken", [None, "x", {"0": 1}])
def test_what_is_no_list_is_structure(broken: Any) -> None:
    assert judged(GOLDEN, broken) == [("STRUCTURE", "")]
    assert judged(broken, broken) == [("STRUCTURE", "")]


def test_a_token_id_twice_on_both_sides_is_structure() -> None:
    twice = [candidates((5, -0.5), (5, -0.5))]
    assert judged(twice, twice) == [("STRUCTURE", "[0]")]


def test_a_token_id_twice_on_one_side_is_found() -> None:
    twice = [candidates((5, -0.5), (5, -0.5))]
    assert judged(twice, [candidates((5, -0.5), (7, -0.5))]) == [("STRUCTURE", "[0]")]


def test_the_finding_names_the_token_that_came_instead() -> None:
    golden, current = (
        record({"top_n_logprobs": GOLDEN}),
        record({"top_n_logprobs": [GOLDEN[0], candidates((1, -0.1), (9, -3.0))]}),
    )
    (finding,) = compared(golden, current, WRITTEN).findings
    assert (finding.golden, finding.current) == (2, 9)
