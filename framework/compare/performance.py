"""Performance figures under a ratio rule: current over golden, within two bounds.

A list holds samples and stands for its median, from three samples on. What is missing, zero, negative or not finite
has failed: a broken measurement must never look like a fast one.
"""

from __future__ import annotations

import statistics
from typing import Any, Final

from framework.compare.fields import PERFORMANCE
from framework.compare.finding import FindingClass
from framework.compare.leaves import Problem, judge_scalar
from framework.compare.rule import Rule, RuleKind
from framework.compare.walk import Place

FEWEST_SAMPLES: Final = 3
_FINITE_NUMBERS: Final = Rule(RuleKind.EXACT)


def failing_ratio(golden: Any, current: Any, rule: Rule) -> tuple[Place, ...]:
    """Return the one failing place of a performance figure, or nothing."""
    if (type(golden) is list) != (type(current) is list):
        problem = judge_scalar(golden, current, PERFORMANCE, _FINITE_NUMBERS)
        assert problem is not None, "a list is no number"
        return (Place((), golden, current, problem),)
    for side, samples in (("golden", golden), ("current", current)):
        place = _unusable(side, samples)
        if place is not None:
            return (place,)
    ratio = _median(current) / _median(golden)
    if rule.low <= ratio <= rule.high:
        return ()
    reason = f"current is {ratio:.4g} times golden, outside {rule.low!r} to {rule.high!r}"
    excess = rule.low - ratio if ratio < rule.low else ratio - rule.high
    return (Place((), golden, current, Problem(FindingClass.PERFORMANCE, reason, error=excess, allowed=0.0)),)


def difference_of_work(golden: dict[str, Any], current: dict[str, Any]) -> str | None:
    """Return in words where two records did not do the same work, so that their figures cannot be compared, or None.

    Work is what was asked for and how much came of it: the prompt's tokens and the number of those generated, for each
    request. It is the fingerprint of a workload that every record carries.
    """
    sides = [_work(side.get("requests")) for side in (golden, current)]
    for request_id in (*sides[0], *(name for name in sides[1] if name not in sides[0])):
        then, now = (side.get(request_id) for side in sides)
        if then is None or now is None:
            return f"request {request_id} is on one side only"
        if then[0] != now[0]:
            return f"request {request_id} has another prompt"
        if None not in (then[1], now[1]) and then[1] != now[1]:
            return f"request {request_id} generated {now[1]} tokens, {then[1]} in the golden"
    return None


def _work(requests: Any) -> dict[str, tuple[Any, int | None]]:
    if type(requests) is not dict:
        return {}
    work = {}
    for request_id, request in requests.items():
        fields = request if type(request) is dict else {}
        work[request_id] = (fields.get("prompt_tokens"), _count_of_generated(fields))
    return work


def _count_of_generated(request: dict[str, Any]) -> int | None:
    """Return how many tokens a request generated; a golden that does not assert them still has a margin for each."""
    for name in ("generated_tokens", "margins"):
        if type(request.get(name)) is list:
            return len(request[name])
    return None


def _unusable(side: str, value: Any) -> Place | None:
    samples = value if type(value) is list else [value]
    for index, sample in enumerate(samples):
        steps = (index,) if type(value) is list else ()
        problem = judge_scalar(sample, sample, PERFORMANCE, _FINITE_NUMBERS)
        if problem is None and sample <= 0:
            problem = Problem(FindingClass.PERFORMANCE, f"{side} is zero or negative")
        if problem is not None:
            return Place(steps, sample if side == "golden" else None, sample if side == "current" else None, problem)
    if type(value) is list and len(value) < FEWEST_SAMPLES:
        reason = f"{side} has {len(value)} samples, a median needs {FEWEST_SAMPLES}"
        return Place((), None, None, Problem(FindingClass.PERFORMANCE, reason))
    return None


def _median(value: Any) -> float:
    return float(statistics.median(value)) if type(value) is list else float(value)
