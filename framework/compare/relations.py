"""Relations: what two fixtures must have in common, checked between two records or two goldens.

Only per-request fields are compared, and exactly: in one environment the engine's results do not depend on the batch,
the schedule or the cache, so no tolerance is due. Two records of different environments (a golden of another machine)
are compared as the fixture's own rules say, and a log-prob that has no rule there is left out. Counters differ between
related fixtures by design. A field is compared where both records hold it and the rules do not ignore it; the generated
tokens must be there, whatever the rules say, and at least one request must have some on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from framework.compare.fields import request_field
from framework.compare.finding import Finding, FindingClass
from framework.compare.judge_value import judge_presence, judge_value
from framework.compare.paths import extend, request_path
from framework.compare.requests import field_order, request_order
from framework.compare.rule import Rule, RuleKind
from framework.compare.rules import Rules, Treatment
from framework.compare.show import as_finding_value
from framework.manifest.fixture import Relation


@dataclass(frozen=True, slots=True)
class RelationKind:
    """How requests are paired and what is compared.

    `compares_prompts`: prompt tokens and their log-probs too. `by_prompt`: pair requests with equal prompts instead of
    equal ids, and let one side hold more of them. `prefix_only`: only as far as both outputs reach.
    """

    meaning: str
    compares_prompts: bool = True
    by_prompt: bool = False
    prefix_only: bool = False


RELATION_KINDS: Final[Mapping[str, RelationKind]] = {
    "same_outputs_as": RelationKind(
        "Request for request, both generate the same; prompts and what is recorded of them may differ.",
        compares_prompts=False,
    ),
    "same_prefix_as": RelationKind(
        "Request for request, with the same prompts, the shorter output is the beginning of the longer one. Text and "
        "finish reason are left out: a text may be cut inside a character.",
        prefix_only=True,
    ),
    "alone_equals_batched": RelationKind(
        "Requests with equal prompts give equal results in both, whatever runs beside them. Where a prompt occurs "
        "more than once, its occurrences are paired in order, so their sampling must be in the same order too. The "
        "side with fewer requests must be paired completely.",
        by_prompt=True,
    ),
    "cold_equals_cached": RelationKind("Request for request, a prefix-cache hit changes nothing."),
    "chunked_equals_whole": RelationKind("Request for request, chunked prefill changes nothing."),
    "async_equals_legacy": RelationKind("Request for request, the scheduling mode changes nothing."),
}
"""The kinds of relations by name."""

_EXACTLY: Final = Rule(RuleKind.EXACT, allow_empty=True, allow_minus_infinity=True)
_PROMPT_FIELDS: Final = frozenset({"prompt_tokens", "prompt_logprobs"})
# Rows of the prompt come first in it.
_BEGINS_WITH_PROMPT: Final = frozenset({"routing_indices"})
_WHOLE_OUTPUT_FIELDS: Final = frozenset({"generated_text", "finish_reason"})
_NEEDED: Final = "generated_tokens"
# Margins are evidence, not results; they are recorded to explain a difference.
_NEVER_COMPARED: Final = frozenset({"margins"})

_Request = dict[str, Any]


def check_relation(relation: Relation, this_record: Any, other_record: Any, rules: Rules) -> tuple[Finding, ...]:
    """Return the findings of `relation` between this fixture's record and the other's, all of class RELATION.

    `rules` are this fixture's: a field that they ignore is not compared, and their tolerances hold where the two
    records are not of one environment. Paths point into this record; `golden` is the other record's value, `current`
    this one's.
    """
    kind = RELATION_KINDS[relation.kind]
    rule_name = f"{relation.kind} {relation.other}"
    this, other = _requests(this_record), _requests(other_record)
    if this is None or other is None:
        message = f"no requests to compare: {'this record' if this is None else relation.other} has none"
        return (Finding(FindingClass.RELATION, "requests", rule_name, message),)
    names = _fields(kind, this, other, rules)
    same_environment = this_record.get("environment") == other_record.get("environment")
    fields = dict.fromkeys(names, _EXACTLY) if same_environment else _own_rules(names, rules)
    findings = list(_unpaired(kind, this, other, relation.other))
    compared = False
    for this_id, other_id in _pairs(kind, this, other):
        both = this[this_id], other[other_id]
        findings.extend(_compare_pair(request_path(this_id), kind, fields, *both))
        compared = compared or all(request.get(_NEEDED) for request in both)
    if not compared and not findings:
        message = f"no request generated a token here and in {relation.other}, so nothing was compared"
        findings.append(Finding(FindingClass.RELATION, "requests", "", message))
    return tuple(_as_relation(finding, rule_name, relation.other) for finding in findings)


def _requests(record: Any) -> dict[str, _Request] | None:
    requests = record.get("requests") if type(record) is dict else None
    if type(requests) is not dict:
        return None
    return {name: requests[name] for name in request_order(requests) if type(requests[name]) is dict} or None


def _fields(
    kind: RelationKind, this: Mapping[str, _Request], other: Mapping[str, _Request], rules: Rules
) -> tuple[str, ...]:
    """Return the fields to compare: those that some request of either side holds, on both sides."""
    held = [{name for request in side.values() for name in request} for side in (this, other)]
    names = {name for name in held[0] & held[1] if rules.for_field(name).treatment is not Treatment.IGNORE}
    names = (names | {_NEEDED}) - _NEVER_COMPARED
    if not kind.compares_prompts:
        names -= _PROMPT_FIELDS | _BEGINS_WITH_PROMPT
    if kind.prefix_only:
        names -= _WHOLE_OUTPUT_FIELDS
    return tuple(field_order(names))


def _own_rules(names: Iterable[str], rules: Rules) -> dict[str, Rule]:
    """Return the rules by which two records of different environments are compared."""
    own: dict[str, Rule] = {}
    for name in names:
        rule = rules.for_field(name).rule
        if rule is not None and name != _NEEDED:
            own[name] = replace(rule, allow_empty=True, allow_minus_infinity=True)
        elif request_field(name).kind is not FindingClass.LOGPROB:
            own[name] = _EXACTLY
    return own


def _pairs(
    kind: RelationKind, this: Mapping[str, _Request], other: Mapping[str, _Request]
) -> Iterator[tuple[str, str]]:
    other_by_key = _keyed(kind, other)
    return ((this_id, other_by_key[key]) for key, this_id in _keyed(kind, this).items() if key in other_by_key)


def _keyed(kind: RelationKind, requests: Mapping[str, _Request]) -> dict[str, str]:
    """Return ids by what pairs them: the id itself, or the prompt and the number of its occurrence."""
    if not kind.by_prompt:
        return {request_id: request_id for request_id in requests}
    occurrences: dict[str, int] = {}
    keyed: dict[str, str] = {}
    for request_id, request in requests.items():
        prompt = repr(request.get("prompt_tokens"))
        occurrences[prompt] = occurrences.get(prompt, 0) + 1
        keyed[f"{prompt} {occurrences[prompt]}"] = request_id
    return keyed


def _unpaired(
    kind: RelationKind, this: Mapping[str, _Request], other: Mapping[str, _Request], other_name: str
) -> Iterable[Finding]:
    this_keys, other_keys = _keyed(kind, this), _keyed(kind, other)
    wanted = "the same prompt" if kind.by_prompt else "the same id"
    if not kind.by_prompt or len(this_keys) <= len(other_keys):
        for key in (key for key in this_keys if key not in other_keys):
            message = f"{other_name} has no request with {wanted}"
            yield Finding(FindingClass.RELATION, request_path(this_keys[key]), "", message)
    if not kind.by_prompt or len(this_keys) > len(other_keys):
        for key in (key for key in other_keys if key not in this_keys):
            message = f"{other_name} has this request, and here none has {wanted}"
            yield Finding(FindingClass.RELATION, request_path(other_keys[key]), "", message)


def _compare_pair(
    path: str, kind: RelationKind, fields: Mapping[str, Rule], this: _Request, other: _Request
) -> Iterator[Finding]:
    for name, rule in fields.items():
        here = extend(path, [name])
        if (name in this) != (name in other):
            yield judge_presence(here, name, (other.get(name), this.get(name)), in_golden=name in other)
        elif name in this:
            value, reference = this[name], other[name]
            if kind.prefix_only and name == _NEEDED and (value == []) != (reference == []):
                message = "nothing was generated on one side, so there is no beginning to compare"
                yield Finding(
                    FindingClass.RELATION, here, name, message, as_finding_value(reference), as_finding_value(value)
                )
                continue
            if kind.prefix_only and name not in _PROMPT_FIELDS:
                value, reference = _common_beginning(value, reference)
            found = judge_value(reference, value, path=here, name=name, field=request_field(name), rule=rule)
            yield from found if rule == _EXACTLY else map(partial(_of_two_environments, rule), found)
        elif name == _NEEDED:
            yield Finding(FindingClass.RELATION, here, name, "missing on both sides, so nothing was compared")


def _common_beginning(this: Any, other: Any) -> tuple[Any, Any]:
    if type(this) is not list or type(other) is not list:
        return this, other
    common = min(len(this), len(other))
    return this[:common], other[:common]


def _of_two_environments(rule: Rule, finding: Finding) -> Finding:
    reason = f"the two were recorded in different environments, so this fixture's own rule holds: {rule}"
    return replace(finding, message=f"{finding.message} ({reason})")


def _as_relation(finding: Finding, rule_name: str, other_name: str) -> Finding:
    message = finding.message if finding.kind is FindingClass.RELATION else f"golden is {other_name}: {finding.message}"
    return replace(finding, kind=FindingClass.RELATION, rule=rule_name, message=message, cause=None)
