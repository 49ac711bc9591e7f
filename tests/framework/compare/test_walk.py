from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.compare import walk
from framework.compare.fields import REQUEST_FIELDS, FieldType, request_field
from framework.compare.rule import Rule, RuleKind
from framework.compare.walk import DEEPEST, count_leaves, failing_places

EXACT = Rule(RuleKind.EXACT)
SET = Rule(RuleKind.SET)


def places(field: FieldType, golden: Any, current: Any, rule: Rule = EXACT) -> list[tuple[Any, ...]]:
    return [place.steps for place in failing_places(golden, current, field, rule)]


@pytest.mark.parametrize(
    ("value", "count"),
    [(1, 1), (None, 1), ("abc", 1), ([], 0), ({}, 0), ([1, 2], 2), ([[1, 2], [], [[3]]], 3), ({"a": [1, {"b": 2}]}, 2)],
)
def test_scalars_are_counted(value: Any, count: int) -> None:
    assert count_leaves(value) == count


@pytest.mark.parametrize("disguised", [[[""]], [[{}]], [[[]]], [["ab"]], [[1.0]], [[True]], [[None]], {"a": 1}, [{}]])
def test_equality_does_not_hide_a_wrong_form(disguised: Any) -> None:
    assert places(REQUEST_FIELDS["generated_tokens"], disguised, disguised) != []


@pytest.mark.parametrize("empty", [[[""]], [{}], [[{}]], "", {}])
def test_empty_things_that_are_no_lists_are_no_routing(empty: Any) -> None:
    assert places(REQUEST_FIELDS["routing_indices"], empty, empty) != []


ids = st.lists(st.integers(0, 5), min_size=1, max_size=4)


@given(ids, ids)
def test_sets_are_compared_as_often_as_each_value_occurs(golden: list[int], current: list[int]) -> None:
    found = places(REQUEST_FIELDS["routing_indices"], [[golden]], [[current]], SET)
    assert (found == []) == (sorted(golden) == sorted(current))


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_any_form_is_walked_to_a_bounded_depth() -> None:
    unknown = request_field("unknown")
    assert places(unknown, nested(DEEPEST), nested(DEEPEST)) == []
    assert places(unknown, nested(DEEPEST + 1), nested(DEEPEST + 1)) != []


def test_an_unknown_field_is_compared_as_sets_row_by_row() -> None:
    unknown = request_field("unknown")
    assert places(unknown, [[1, 2], [3, "x"]], [[2, 1], ["x", 3]], SET) == []
    assert places(unknown, [[1, 2], [3, 4]], [[3, 4], [1, 2]], SET) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert places(unknown, [1, [2]], [1, [3]], SET) == [(1, 0)]


def test_a_list_against_a_map_is_one_place() -> None:
    assert places(request_field("unknown"), [[1]], [{"a": 1}]) == [(0,)]


def test_a_key_on_one_side_says_on_which() -> None:
    reasons = [place.problem.reason for place in failing_places({"a": 1}, {"b": 1}, request_field("unknown"), EXACT)]
    assert reasons == ["missing in current", "missing in golden"]


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("generated_tokens", [0, 1, 2], EXACT),
        ("generated_logprobs", [-0.1, 0, -0.3], EXACT),
        ("routing_indices", [[[0, 1]], [[2, 3]]], EXACT),
        ("routing_indices", [[[0, 1]], [[2, 3]]], SET),
    ],
)
def test_equal_lists_are_not_walked(monkeypatch: pytest.MonkeyPatch, name: str, value: Any, rule: Rule) -> None:
    monkeypatch.setattr(walk, "judge_scalar", None)
    assert places(REQUEST_FIELDS[name], value, copy.deepcopy(value), rule) == []


def test_reordered_rows_of_ids_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "judge_scalar", None)
    assert places(REQUEST_FIELDS["routing_indices"], [[[0, 1, 1]]], [[[1, 0, 1]]], SET) == []


def test_every_failing_place_is_given_in_order() -> None:
    assert places(REQUEST_FIELDS["generated_tokens"], [1, 2, 3, 4], [1, 9, 3, 9]) == [(1,), (3,)]
