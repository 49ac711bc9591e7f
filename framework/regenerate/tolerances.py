"""Tolerances against what was observed: one that good runs exceed is wrong, one far above them lets errors pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.compare.fields import SECTION_TYPES
from framework.compare.rule import RuleKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from framework.compare.rule import Rule
    from framework.compare.rules import Rules

LOOSE_TOLERANCE_FACTOR = 10.0
ROUNDING_SPREAD = 2.0**-15
"""Sixteen units in the last place of an fp32 logit between 16 and 32, 3.05e-5.

Logits are sums of some hundred products, and the rounding of such a sum wanders about as far when its terms are added
in another order. A smaller spread is luck of the machine that measured it, so it counts as this much when a tolerance
is called loose.
"""


def tolerance_problems(rules: Rules, spread: Mapping[str, float], document: Mapping[str, Any]) -> dict[str, str]:
    """Return, by field, why its tolerance cannot hold: good runs of the same engine differ by more.

    `document` has the values that `rtol` is relative to; the largest of a field counts.
    """
    problems = {}
    for name, rule in _tolerances(rules):
        allowed = rule.atol + rule.rtol * _largest(document, name)
        if (seen := spread.get(name, 0.0)) > allowed:
            problems[name] = f"{rule} allows {allowed:.3g}, less than the spread {seen:.3g} observed between good runs"
    return problems


def tolerance_warnings(rules: Rules, spread: Mapping[str, float]) -> dict[str, str]:
    """Return, by field, a warning of a tolerance far above the spread that was seen: real errors would pass."""
    return {
        name: f"atol {rule.atol!r} is more than ten times the spread {seen:.3g} observed between good runs"
        for name, rule in _tolerances(rules)
        if (seen := spread.get(name)) is not None and rule.atol > LOOSE_TOLERANCE_FACTOR * max(seen, ROUNDING_SPREAD)
    }


def in_words(by_field: Mapping[str, str]) -> list[str]:
    """Return the messages with the fields that they are about."""
    return [f"{name}: {message}" for name, message in by_field.items()]


def unrecorded_spreads(rules: Rules, spread: Mapping[str, float], document: Mapping[str, Any]) -> list[str]:
    """Return the fields that are judged within a tolerance and have values, yet whose spread nobody recorded."""
    return [
        name for name, _ in _tolerances(rules) if name not in spread and any(True for _ in _floats_of(document, name))
    ]


def _tolerances(rules: Rules) -> list[tuple[str, Rule]]:
    """Return the per-request fields that are judged within a tolerance; a spread is recorded for these only."""
    return [
        (name, rule)
        for name, rule in rules.asserted.items()
        if rule.kind is RuleKind.NUMERIC and name.partition(".")[0] not in SECTION_TYPES
    ]


def _largest(document: Mapping[str, Any], name: str) -> float:
    return max((abs(value) for value in _floats_of(document, name)), default=0.0)


def _floats_of(document: Mapping[str, Any], name: str) -> Iterator[float]:
    for request in document["requests"].values():
        yield from _floats(request.get(name))


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, list | dict):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _floats(child)
    elif isinstance(value, float):
        yield value
