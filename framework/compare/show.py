"""Values in messages and findings: short, printable, and valid JSON whatever they are."""

from __future__ import annotations

import json
import math
from typing import Any, Final

LONGEST_TEXT: Final = 200
_LONGEST_INTEGER_BITS: Final = 2048


def type_name(value: Any) -> str:
    """Return what a JSON value is, in words."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "a list", dict: "a map"}
    return names.get(type(value), type(value).__name__)


def as_finding_value(value: Any) -> Any:
    """Return `value` as it is stored in a finding.

    Scalars stay what they are. What is no valid JSON number is written out, a long text is cut, and a list or a map
    becomes its description: findings must stay small however large the record is.
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _LONGEST_INTEGER_BITS else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else _non_finite(value)
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}…"
    return f"{type_name(value)} of {len(value)}" if isinstance(value, (list, dict)) else type_name(value)


def shown(value: Any) -> str:
    """Return `value` for a message, in one line."""
    stored = as_finding_value(value)
    if isinstance(value, (list, dict)) or stored is not value:
        if isinstance(value, str):
            return json.dumps(stored)
        return str(stored)
    return json.dumps(stored)


def _non_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
