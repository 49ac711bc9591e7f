"""What each part of a record holds: the type of its values, the class of a difference, and the rules it can have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from framework.compare.finding import FindingClass
from framework.compare.rule import RuleKind


class Leaf(Enum):
    """The type of a scalar at the bottom of a field."""

    INTEGER = "an integer"
    NUMBER = "a number"
    TEXT = "a string"
    CANDIDATE = "a list of {token_id, logprob}"
    ANY = "any value"


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of one field.

    `kind` is the class of a value that differs. `depth` is the number of lists around a leaf: 0 for a scalar, None
    where the form is not known. A form or type that differs is always STRUCTURE, a length LENGTH.
    """

    kind: FindingClass
    leaf: Leaf
    depth: int | None
    rules: frozenset[RuleKind]


_EXACT: Final = frozenset({RuleKind.EXACT})
_NUMBERS: Final = frozenset({RuleKind.EXACT, RuleKind.NUMERIC})
_ORDERS: Final = frozenset({RuleKind.EXACT, RuleKind.SET, RuleKind.SEQUENCE})
_ALL_BUT_RATIO: Final = _NUMBERS | _ORDERS

_TOKENS: Final = FieldType(FindingClass.TOKEN, Leaf.INTEGER, 1, _EXACT)
_LOGPROBS: Final = FieldType(FindingClass.LOGPROB, Leaf.NUMBER, 1, _NUMBERS)

COUNTER: Final = FieldType(FindingClass.COUNTER, Leaf.INTEGER, None, _NUMBERS)
PERFORMANCE: Final = FieldType(
    FindingClass.PERFORMANCE, Leaf.NUMBER, None, frozenset({RuleKind.EXACT, RuleKind.NUMERIC, RuleKind.RATIO})
)
SETTING: Final = FieldType(FindingClass.SETTINGS_DRIFT, Leaf.ANY, None, _EXACT)
ENVIRONMENT: Final = FieldType(FindingClass.STRUCTURE, Leaf.ANY, None, _EXACT)

SECTION_TYPES: Final = {
    "counters": COUNTER,
    "performance": PERFORMANCE,
    "settings": SETTING,
    "environment": ENVIRONMENT,
}

REQUEST_FIELDS: Final = {
    "prompt_tokens": _TOKENS,
    "generated_tokens": _TOKENS,
    "generated_text": FieldType(FindingClass.TEXT, Leaf.TEXT, 0, _EXACT),
    # What a request ended with is form, not text: it is a word of the engine, or null.
    "finish_reason": FieldType(FindingClass.STRUCTURE, Leaf.ANY, None, _EXACT),
    "error": FieldType(FindingClass.STRUCTURE, Leaf.ANY, None, _EXACT),
    "generated_logprobs": _LOGPROBS,
    "prompt_logprobs": _LOGPROBS,
    "margins": _LOGPROBS,
    "top_n_logprobs": FieldType(FindingClass.LOGPROB, Leaf.CANDIDATE, 2, _NUMBERS),
    "routing_indices": FieldType(FindingClass.ROUTING, Leaf.INTEGER, 3, _ORDERS),
}
"""The per-request fields that an engine may record."""

_UNKNOWN: Final = FieldType(FindingClass.STRUCTURE, Leaf.ANY, None, _ALL_BUT_RATIO)


def request_field(name: str) -> FieldType:
    """Return the type of the per-request field `name`; an unknown field may hold any JSON value."""
    return REQUEST_FIELDS.get(name, _UNKNOWN)


def type_of_asserted(name: str) -> FieldType:
    """Return the type of what the assert rule `name` judges: a field, a section, or `section.name`."""
    section = name.partition(".")[0]
    return SECTION_TYPES.get(section) or request_field(name)
