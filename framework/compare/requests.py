"""The comparison of the requests of two records, field by field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from framework.compare.cause import with_cause
from framework.compare.fields import REQUEST_FIELDS, request_field
from framework.compare.finding import Finding, FindingClass
from framework.compare.judge_value import judge_presence, judge_value
from framework.compare.paths import extend, request_path
from framework.compare.rules import ALWAYS_COMPARED, Decision
from framework.compare.show import type_name
from framework.compare.tally import Tally


def compare_requests(golden: Any, current: Any, tally: Tally) -> None:
    """Compare the `requests` maps of two records; either may be any JSON value."""
    if type(golden) is not dict or type(current) is not dict:
        message = f"golden is {type_name(golden)}, current {type_name(current)}: both must be maps by request id"
        tally.add(Finding(FindingClass.STRUCTURE, "requests", "structure", message))
    both = (golden if type(golden) is dict else {}, current if type(current) is dict else {})
    malformed = type(golden) is not dict or type(current) is not dict
    for request_id in request_order({**both[0], **both[1]}):
        path = request_path(request_id)
        reference, value = (side.get(request_id) for side in both)
        in_both = request_id in both[0] and request_id in both[1]
        if not in_both and not malformed:
            in_golden = request_id in both[0]
            tally.add(judge_presence(path, "request set", (reference, value), in_golden=in_golden))
        if in_both and type(reference) is dict and type(value) is dict:
            _compare_request(path, reference, value, tally)
            continue
        if in_both:
            message = f"golden is {type_name(reference)}, current {type_name(value)}: both must be maps of fields"
            tally.add(Finding(FindingClass.STRUCTURE, path, "structure", message))
        for side in (reference, value):
            _count_only(path, side, tally)


def request_order(ids: Iterable[str]) -> list[str]:
    """Return request ids in the order of their numbers, for ids that are numbers."""
    return sorted(ids, key=lambda request_id: (len(request_id), request_id))


def field_order(names: Iterable[str]) -> list[str]:
    """Return field names in the order of a record, unknown ones last."""
    known = list(REQUEST_FIELDS)
    return sorted(names, key=lambda name: (known.index(name) if name in REQUEST_FIELDS else len(known), name))


def _count_only(path: str, request: Any, tally: Tally) -> None:
    """Count the fields of a request that stands on one side only; the finding on it is there already."""
    if type(request) is dict:
        for name, value in request.items():
            tally.is_judged(tally.rules.for_field(name), name, extend(path, [name]), value)


def _compare_request(path: str, golden: dict[str, Any], current: dict[str, Any], tally: Tally) -> None:
    for name in field_order({**golden, **current, ALWAYS_COMPARED: None}):
        here = extend(path, [name])
        decision = tally.rules.for_field(name)
        if tally.is_judged(decision, name, here, golden.get(name, current.get(name))):
            for finding in _judge_field(here, name, golden, current, decision):
                tally.add(finding)


def _judge_field(
    path: str, name: str, golden: dict[str, Any], current: dict[str, Any], decision: Decision
) -> Iterable[Finding]:
    assert decision.rule is not None, "only a rule is judged"
    if name not in golden and name not in current:
        return [Finding(FindingClass.STRUCTURE, path, name, "missing in golden and in current")]
    if name not in golden or name not in current:
        sides = (golden.get(name), current.get(name))
        return [judge_presence(path, f"{name}: {decision.rule}", sides, in_golden=name in golden)]
    findings = judge_value(
        golden[name], current[name], path=path, name=name, field=request_field(name), rule=decision.rule
    )
    if name != "generated_tokens":
        return findings
    return [with_cause(finding, golden, current) for finding in findings]
