"""The judgement of one value of a record under one assert rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework.compare.fields import FieldType, Leaf
from framework.compare.finding import Finding, FindingClass
from framework.compare.performance import failing_ratio
from framework.compare.rule import Rule, RuleKind
from framework.compare.show import as_finding_value
from framework.compare.summarise import summarise
from framework.compare.top_n import failing_top_n
from framework.compare.walk import count_leaves, failing_places, missing


def judge_value(golden: Any, current: Any, *, path: str, name: str, field: FieldType, rule: Rule) -> Iterator[Finding]:
    """Yield the findings on the two values at `path`; `name` is the name of the rule."""
    rule_name = f"{name}: {rule}"
    if golden == [] == current:
        if not rule.allow_empty:
            yield _nothing_judged(path, rule_name)
        return
    if rule.kind is RuleKind.RATIO:
        places = iter(failing_ratio(golden, current, rule))
    elif field.leaf is Leaf.CANDIDATE:
        places = failing_top_n(golden, current, field, rule)
    else:
        places = failing_places(golden, current, field, rule)
    findings = list(summarise(path, rule_name, golden, places))
    # Lists of empty lists and maps agree too, and hold as little as an empty list does.
    if not findings and not rule.allow_empty and type(golden) in (list, dict) and count_leaves(golden) == 0:
        findings = [_nothing_judged(path, rule_name)]
    yield from findings


def _nothing_judged(path: str, rule_name: str) -> Finding:
    message = "empty on both sides, so nothing was judged: expect a value, or write allow_empty: true"
    return Finding(FindingClass.RULES, path, rule_name, message)


def judge_presence(path: str, name: str, sides: tuple[Any, Any], *, in_golden: bool) -> Finding:
    """Return the finding on a value that stands on one side only; `sides` are golden and current, one of them None."""
    golden, current = sides
    return Finding(
        FindingClass.STRUCTURE,
        path,
        name,
        missing(in_golden).reason,
        golden=as_finding_value(golden) if in_golden else None,
        current=None if in_golden else as_finding_value(current),
    )
