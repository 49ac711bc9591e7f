from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.compare.fields import REQUEST_FIELDS, FieldType
from framework.compare.rule import Rule, RuleKind
from framework.compare.walk import count_leaves, failing_places

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


def test_every_failing_place_is_given_in_order() -> None:
    assert places(REQUEST_FIELDS["generated_tokens"], [1, 2, 3, 4], [1, 9, 3, 9]) == [(1,), (3,)]
