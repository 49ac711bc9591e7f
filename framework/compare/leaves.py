"""The judgement of one scalar against another: type first, then value, in plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from framework.compare.fields import FieldType, Leaf
from framework.compare.finding import FindingClass
from framework.compare.rule import Rule, RuleKind
from framework.compare.show import type_name


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a scalar fails. `error` and `allowed` are absolute differences, where the rule is numeric."""

    kind: FindingClass
    reason: str = ""
    error: float | None = None
    allowed: float | None = None


_NOT_FINITE: Final = Problem(FindingClass.NON_FINITE, "not a finite number")


def judge_scalar(golden: Any, current: Any, field: FieldType, rule: Rule) -> Problem | None:
    """Judge one value at the bottom of a field; None is good.

    A list or a map in the place of a scalar is a problem of structure, like any other wrong type.
    """
    if _is_not_finite(golden) or _is_not_finite(current):
        return _judge_non_finite(golden, current, field, rule)
    if field.leaf is Leaf.INTEGER:
        return _judge_integers(golden, current, field, rule)
    if field.leaf in (Leaf.NUMBER, Leaf.CANDIDATE):
        return _judge_numbers(golden, current, field, rule)
    return _judge_others(golden, current, field, rule)


def _is_not_finite(value: Any) -> bool:
    return type(value) is float and not math.isfinite(value)


def _judge_non_finite(golden: Any, current: Any, field: FieldType, rule: Rule) -> Problem | None:
    if rule.allow_minus_infinity and -math.inf in (golden, current):
        if golden == current:
            return None
        other = current if golden == -math.inf else golden
        if type(other) in (int, float) and not _is_not_finite(other):
            return Problem(field.kind, "minus infinity on one side only")
    return _NOT_FINITE


def _judge_others(golden: Any, current: Any, field: FieldType, rule: Rule) -> Problem | None:
    is_text = type(golden) is str and type(current) is str
    if (
        type(golden) is not type(current)
        or isinstance(golden, (list, dict))
        or (field.leaf is Leaf.TEXT and not is_text)
    ):
        return wrong_type(golden, current, field.leaf.value)
    if rule.kind is RuleKind.NUMERIC and type(golden) in (int, float):
        judge = _judge_integers if type(golden) is int else _judge_numbers
        return judge(golden, current, field, rule)
    return None if golden == current else Problem(field.kind)


def _judge_integers(golden: Any, current: Any, field: FieldType, rule: Rule) -> Problem | None:
    if type(golden) is not int or type(current) is not int:
        return wrong_type(golden, current, Leaf.INTEGER.value)
    if field.kind is FindingClass.ROUTING and (golden < 0 or current < 0):
        return Problem(FindingClass.STRUCTURE, "an expert id below 0")
    if golden == current:
        return None
    # Exact fractions: a float would round integers above 2**53.
    is_numeric = rule.kind is RuleKind.NUMERIC
    allowed = Fraction(rule.atol) + Fraction(rule.rtol) * abs(golden) if is_numeric else Fraction(0)
    difference = abs(current - golden)
    if difference <= allowed:
        return None
    if field.kind in (FindingClass.TOKEN, FindingClass.ROUTING):
        # Ids are names: their difference means nothing.
        return Problem(field.kind)
    return Problem(field.kind, error=_as_float(difference), allowed=_as_float(allowed))


def _judge_numbers(golden: Any, current: Any, field: FieldType, rule: Rule) -> Problem | None:
    if type(golden) not in (int, float) or type(current) not in (int, float):
        return wrong_type(golden, current, Leaf.NUMBER.value)
    reference, value = _as_float(golden), _as_float(current)
    if reference is None or value is None:
        return _NOT_FINITE
    if reference == value:
        return None
    allowed = rule.atol + rule.rtol * abs(reference) if rule.kind is RuleKind.NUMERIC else 0.0
    error = abs(value - reference)
    return None if error <= allowed else Problem(field.kind, error=error, allowed=allowed)


def _as_float(value: float | Fraction) -> float | None:
    """Return `value` as a float, or None where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return None


def wrong_type(golden: Any, current: Any, wanted: str) -> Problem:
    """Return the problem of two values of which at least one is not what it must be, `wanted` in words."""
    if type(golden) is type(current):
        reason = f"both are {type_name(golden)}, not {wanted}"
    else:
        reason = f"golden is {type_name(golden)}, current {type_name(current)}"
    return Problem(FindingClass.STRUCTURE, reason)
