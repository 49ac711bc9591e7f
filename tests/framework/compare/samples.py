"""Small records and rules that the comparison's tests share."""

from __future__ import annotations

import copy
from typing import Any

from framework.compare.compare import compare_records
from framework.compare.finding import Comparison
from framework.compare.rules import parse_rules

Json = dict[str, Any]

RULES: Json = {
    "assert": {
        "generated_tokens": "exact",
        "generated_text": "exact",
        "generated_logprobs": {"atol": 0.001, "rtol": 0.0},
        "counters": {"*": "exact"},
    },
    "inform": ["performance"],
    "ignore": {"finish_reason": "not under test"},
}

REQUEST: Json = {
    "prompt_tokens": [5, 6],
    "generated_tokens": [1, 2, 3],
    "generated_text": "abc",
    "finish_reason": "length",
    "generated_logprobs": [-0.1, -0.2, -0.3],
}


def record(request: Json | None = None, **parts: Any) -> Json:
    """Return a record of one request with the fields of `request` changed, and other parts replaced."""
    whole: Json = {
        "schema": "golden.record/1",
        "fixture": "case",
        "requests": {"0": REQUEST | (request or {})},
        "counters": {"step_count": 3},
        "performance": {},
    }
    return copy.deepcopy(whole | parts)


def without(mapping: Json, *keys: str) -> Json:
    """Return a map without some keys."""
    return {key: value for key, value in mapping.items() if key not in keys}


def rules(part: Json | None = None, **other: Any) -> Json:
    """Return the usual rules with some of `assert` added or replaced, and other parts replaced."""
    return {**RULES, "assert": RULES["assert"] | (part or {}), **other}


def compared(golden: Any, current: Any, written: Json | None = None) -> Comparison:
    """Compare under rules as they are written in a manifest."""
    return compare_records(golden, current, parse_rules(RULES if written is None else written))


def found(golden: Any, current: Any, written: Json | None = None) -> list[tuple[str, str]]:
    """Return class and path of every finding."""
    return [(finding.kind.value, finding.path) for finding in compared(golden, current, written).findings]
