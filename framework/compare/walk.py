"""The typed walk through two values of one field: every place that fails, in order.

Length and form come before values, and two lists are never paired beyond a difference of their lengths. Lists that
are equal, which is nearly all of them, take a path without a Python step for each number: equality of the whole, then
the types of all leaves, because `[2] == [2.0]` and `True == 1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from framework.compare.fields import FieldType, Leaf
from framework.compare.finding import FindingClass
from framework.compare.leaves import Problem, judge_scalar, wrong_type
from framework.compare.paths import Step, extend
from framework.compare.rule import Rule, RuleKind

DEEPEST: Final = 64
_LEAF_TYPES: Final = {
    Leaf.INTEGER: frozenset({int}),
    Leaf.NUMBER: frozenset({int, float}),
    Leaf.TEXT: frozenset({str}),
}


@dataclass(frozen=True, slots=True)
class Place:
    """One place that fails: the steps to it from the field, both values there, and why."""

    steps: tuple[Step, ...]
    golden: Any
    current: Any
    problem: Problem


def failing_places(golden: Any, current: Any, field: FieldType, rule: Rule) -> Iterator[Place]:
    """Yield every place below two values of `field` at which `rule` fails."""
    return _Walk(field, rule).places(golden, current, (), field.depth)


def length_problem(golden: list[Any], current: list[Any], beginning: Iterator[Place]) -> Problem:
    """Return the problem of two lengths; `beginning` are the failing places of what both lists have in common."""
    lengths = f"golden holds {len(golden)} items, current {len(current)}"
    first = next(beginning, None)
    if first is None:
        return Problem(FindingClass.LENGTH, f"{lengths}; the first {min(len(golden), len(current))} agree")
    return Problem(FindingClass.LENGTH, f"{lengths}; they also differ before that, at {extend('', first.steps)}")


def missing(in_golden: bool) -> Problem:
    """Return the problem of a value that only one side has."""
    return Problem(FindingClass.STRUCTURE, "missing in current" if in_golden else "missing in golden")


def count_leaves(value: Any) -> int:
    """Return the number of scalars in a JSON value; a string is one, an empty list none."""
    count = 0
    level = [value]
    while level:
        types = set(map(type, level))
        inner: list[Any] = []
        if types == {list}:
            inner = list(chain.from_iterable(level))
        elif types.isdisjoint((list, dict)):
            count += len(level)
        else:
            for item in level:
                if type(item) in (list, dict):
                    inner.extend(item.values() if type(item) is dict else item)
                else:
                    count += 1
        level = inner
    return count


@dataclass(frozen=True, slots=True)
class _Walk:
    field: FieldType
    rule: Rule

    def places(self, golden: Any, current: Any, steps: tuple[Step, ...], depth: int | None) -> Iterator[Place]:
        """Walk on; `depth` is the number of lists that must still come, None where any form is allowed."""
        if depth is None:
            return self._free_form(golden, current, steps)
        if depth == 0:
            return self._scalar(golden, current, steps)
        if self._equal_beyond_doubt(golden, current, depth):
            return iter(())
        if type(golden) is not list or type(current) is not list:
            return iter((Place(steps, golden, current, wrong_type(golden, current, "a list")),))
        return self._lists(golden, current, steps, depth)

    def _free_form(self, golden: Any, current: Any, steps: tuple[Step, ...]) -> Iterator[Place]:
        if len(steps) > DEEPEST:
            problem = Problem(FindingClass.STRUCTURE, f"nested deeper than {DEEPEST} levels")
            return iter((Place(steps, golden, current, problem),))
        if type(golden) is dict and type(current) is dict:
            return self._maps(golden, current, steps)
        if type(golden) is list and type(current) is list:
            return self._lists(golden, current, steps, None)
        return self._scalar(golden, current, steps)

    def _scalar(self, golden: Any, current: Any, steps: tuple[Step, ...]) -> Iterator[Place]:
        problem = judge_scalar(golden, current, self.field, self.rule)
        if problem is not None:
            yield Place(steps, golden, current, problem)

    def _maps(self, golden: dict[str, Any], current: dict[str, Any], steps: tuple[Step, ...]) -> Iterator[Place]:
        for key in (*golden, *(key for key in current if key not in golden)):
            here = (*steps, key)
            if key in golden and key in current:
                yield from self._free_form(golden[key], current[key], here)
            else:
                yield Place(here, golden.get(key), current.get(key), missing(key in golden))

    def _lists(
        self, golden: list[Any], current: list[Any], steps: tuple[Step, ...], depth: int | None
    ) -> Iterator[Place]:
        if len(golden) != len(current):
            common = min(len(golden), len(current))
            beginning = self._lists(golden[:common], current[:common], steps, depth)
            yield Place(steps, golden, current, length_problem(golden, current, beginning))
        elif self.rule.kind is RuleKind.SET and _is_a_row(golden, current, depth):
            yield from self._rows_as_sets(golden, current, steps)
        elif depth == 1:
            yield from self._row(golden, current, steps)
        else:
            inner = None if depth is None else depth - 1
            for index, (reference, value) in enumerate(zip(golden, current, strict=True)):
                yield from self.places(reference, value, (*steps, index), inner)

    def _row(self, golden: list[Any], current: list[Any], steps: tuple[Step, ...]) -> Iterator[Place]:
        for index, (reference, value) in enumerate(zip(golden, current, strict=True)):
            problem = judge_scalar(reference, value, self.field, self.rule)
            if problem is not None:
                yield Place((*steps, index), reference, value, problem)

    def _rows_as_sets(self, golden: list[Any], current: list[Any], steps: tuple[Step, ...]) -> Iterator[Place]:
        """Compare one row without regard to order, each value as often as it occurs."""
        if _same_ids(golden, current):
            return
        left = list(current)
        unmatched: list[int] = []
        for index, reference in enumerate(golden):
            partner = next((i for i, value in enumerate(left) if self._agree(reference, value)), None)
            if partner is None:
                unmatched.append(index)
            else:
                del left[partner]
        for index, value in zip(unmatched, left, strict=True):
            yield from self._scalar(golden[index], value, (*steps, index))

    def _agree(self, golden: Any, current: Any) -> bool:
        return judge_scalar(golden, current, self.field, self.rule) is None

    def _equal_beyond_doubt(self, golden: Any, current: Any, depth: int) -> bool:
        """Return whether both are equal in value, form and type; False may also mean that it is not known."""
        types = _LEAF_TYPES[self.field.leaf]
        reference, value = _leaves_at(golden, depth), _leaves_at(current, depth)
        if reference is None or value is None or golden != current:
            return False
        if not set(map(type, reference)) <= types or not set(map(type, value)) <= types:
            return False
        if self.field.leaf is Leaf.NUMBER:
            return _all_finite(reference)
        return self.field.kind is not FindingClass.ROUTING or min(reference, default=0) >= 0


def _leaves_at(value: Any, depth: int) -> list[Any] | None:
    """Return the items below `depth` levels of lists, or None if there is anything but a list above them."""
    level = [value]
    for _ in range(depth):
        if set(map(type, level)) - {list}:
            return None
        level = list(chain.from_iterable(level))
    return level


def _same_ids(golden: list[Any], current: list[Any]) -> bool:
    """Return whether two rows hold the same ids in any order; False may also mean that it is not known."""
    if set(map(type, golden)) != {int} or set(map(type, current)) != {int}:
        return False
    return sorted(golden) == sorted(current) and min(golden) >= 0


def _all_finite(numbers: list[Any]) -> bool:
    try:
        return all(map(math.isfinite, numbers))
    except OverflowError:
        return False


def _is_a_row(golden: list[Any], current: list[Any], depth: int | None) -> bool:
    if depth is not None:
        return depth == 1
    return not any(type(item) in (list, dict) for item in chain(golden, current))
