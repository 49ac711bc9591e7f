"""From failing places to findings: one for a list, with its first failing place, the number of them and the worst."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from framework.compare.finding import Finding, FindingClass
from framework.compare.paths import Step, extend
from framework.compare.show import as_finding_value, shown
from framework.compare.walk import Place, count_leaves


def summarise(path: str, rule_name: str, golden: Any, places: Iterable[Place]) -> Iterator[Finding]:
    """Yield one finding for each list, or scalar outside a list, that has failing places.

    `golden` is the value at `path`, from which the size of a list is taken.
    """
    for outer, group in groupby(places, key=lambda place: _outside_lists(place.steps)):
        yield _finding(path, rule_name, _value_at(golden, outer), list(group))


def _outside_lists(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps before the first index into a list."""
    for position, step in enumerate(steps):
        if isinstance(step, int):
            return steps[:position]
    return steps


def _value_at(value: Any, steps: tuple[Step, ...]) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _finding(path: str, rule_name: str, golden: Any, places: list[Place]) -> Finding:
    first = places[0]
    return Finding(
        kind=first.problem.kind,
        path=extend(path, first.steps),
        rule=rule_name,
        message=_message(golden, places),
        golden=as_finding_value(first.golden),
        current=as_finding_value(first.current),
        error=first.problem.error,
        allowed=first.problem.allowed,
    )


def _message(golden: Any, places: list[Place]) -> str:
    first = places[0]
    text = _describe(first)
    if len(places) == 1 or not isinstance(golden, list):
        return text
    text = f"{len(places)} of {count_leaves(golden)} places fail; the first: {text}"
    measured = [place for place in places if place.problem.error is not None]
    worst = max(measured, key=lambda place: place.problem.error or 0.0, default=first)
    if worst is not first:
        text += f"; the worst, at {extend('', worst.steps)}: {_describe(worst)}"
    other_kinds = sorted({place.problem.kind.value for place in places} - {first.problem.kind.value})
    return f"{text}; others are {', '.join(other_kinds)}" if other_kinds else text


def _describe(place: Place) -> str:
    problem = place.problem
    if problem.kind is FindingClass.LENGTH:
        return problem.reason
    if problem.kind is FindingClass.TEXT:
        return _describe_texts(place.golden, place.current)
    text = f"golden {shown(place.golden)}, current {shown(place.current)}"
    if problem.reason:
        text = f"{problem.reason}: {text}"
    if problem.error is not None and problem.allowed:
        text += f", off by {problem.error:.6g} where {problem.allowed:.6g} is allowed"
    return text


def _describe_texts(golden: str, current: str) -> str:
    position = next(
        (i for i, (reference, value) in enumerate(zip(golden, current, strict=False)) if reference != value),
        min(len(golden), len(current)),
    )
    around = slice(max(0, position - 20), position + 20)
    text = f"they differ from character {position} on: golden {shown(golden[around])}, current {shown(current[around])}"
    if unicodedata.normalize("NFC", golden) == unicodedata.normalize("NFC", current):
        text += "; they differ in Unicode normalisation only (NFC against NFD)"
    return text
