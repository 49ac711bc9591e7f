"""Why a token differs, as far as the two records tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from framework.compare.finding import Finding, FindingClass
from framework.compare.paths import parse_path

DRIFT_REACH: Final = 100
"""How many times the log-prob error before it a margin may be, and that error still have turned the token.

Regeneration asks for the same distance between every margin and the error of another instruction set.
"""

SCHEDULING_SETTINGS: Final = frozenset(
    {
        "async_sched_mode",
        "block_size_tokens",
        "enable_chunked_prefill",
        "max_requests",
        "max_sequence_length",
        "max_tokens",
        "num_blocks",
    }
)
"""Settings that decide which step computes what, and must not decide any token."""

_EXACT_FLOATS: Final = 2**53


class Cause(StrEnum):
    """Causes that can be read off a golden and a record."""

    TIE_FLIP = "TIE_FLIP"
    NUMERIC_DRIFT = "NUMERIC_DRIFT"
    WRONG_FROM_START = "WRONG_FROM_START"
    LENGTH = "LENGTH"
    SCHEDULE = "SCHEDULE"


_MESSAGES = {
    Cause.TIE_FLIP: "an exact tie of the two best tokens in the golden",
    Cause.NUMERIC_DRIFT: "the log-probs before it differ already",
    Cause.WRONG_FROM_START: "wrong from the first token on",
}


def with_cause(finding: Finding, golden: Mapping[str, Any], current: Mapping[str, Any]) -> Finding:
    """Return a finding on generated tokens with its cause, where the two requests tell one.

    A tie is exact: a margin of zero units in the last place, never a small number of nats.
    """
    if finding.kind is FindingClass.LENGTH:
        return replace(finding, cause=Cause.LENGTH.value)
    index = parse_path(finding.path)[-1]
    if finding.kind is not FindingClass.TOKEN or not isinstance(index, int):
        return finding
    cause = _cause_at(index, golden, current)
    if cause is None:
        return finding
    return replace(finding, cause=cause.value, message=f"{finding.message}; {_MESSAGES[cause]}")


def _cause_at(index: int, golden: Mapping[str, Any], current: Mapping[str, Any]) -> Cause | None:
    margin = number_at(golden.get("margins"), index)
    if margin == 0:
        return Cause.TIE_FLIP
    if index == 0:
        return Cause.WRONG_FROM_START
    error = largest_error(golden.get("generated_logprobs"), current.get("generated_logprobs"), index)
    if error and (margin is None or margin <= DRIFT_REACH * error):
        return Cause.NUMERIC_DRIFT
    return None


def schedule_moved(golden: Mapping[str, Any], current: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths of what of the schedule is not the same in two records: settings, then counters.

    Counters follow from how long the outputs are, so where a length differs too they prove nothing.
    """
    old, new = (_map(side, "settings") for side in (golden, current))
    in_both = sorted(SCHEDULING_SETTINGS & old.keys() & new.keys())
    names = [f"settings.{name}" for name in in_both if _value(old[name]) != _value(new[name])]
    if _lengths(golden) == _lengths(current):
        then, now = (_map(side, "counters") for side in (golden, current))
        names += [f"counters.{name}" for name in sorted(then.keys() & now.keys()) if then[name] != now[name]]
    return tuple(names)


def number_at(values: Any, position: int) -> float | None:
    """Return the number at a position of what may be a list of numbers, if there is one."""
    if not isinstance(values, list) or position >= len(values):
        return None
    value = values[position]
    is_number = type(value) is float or (type(value) is int and abs(value) < _EXACT_FLOATS)
    return float(value) if is_number else None


def largest_error(golden: Any, current: Any, end: int) -> float | None:
    """Return the largest absolute difference of two lists of numbers before a position, infinite for a NaN.

    It is None where either is no list, or they have no two numbers to compare there.
    """
    pairs = ((number_at(golden, index), number_at(current, index)) for index in range(end))
    errors = [_error(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
    return max(errors, default=None)


def _error(golden: float, current: float) -> float:
    if golden == current:
        return 0.0
    error = abs(current - golden)
    return math.inf if math.isnan(error) else error


def _map(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = record.get(name)
    return found if isinstance(found, dict) else {}


def _value(setting: Any) -> Any:
    return setting.get("value") if isinstance(setting, dict) else setting


def _lengths(record: Mapping[str, Any]) -> dict[str, int | None]:
    tokens = {key: _map(_map(record, "requests"), key).get("generated_tokens") for key in _map(record, "requests")}
    return {key: len(each) if isinstance(each, list) else None for key, each in tokens.items()}
