"""One rule: how the value of one name is judged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from framework.compare.show import shown
from framework.manifest.suggest import did_you_mean


class RuleKind(StrEnum):
    """The ways to judge a value."""

    EXACT = "exact"
    NUMERIC = "numeric"
    SET = "set"
    SEQUENCE = "sequence"
    RATIO = "ratio"


WORDS: Final = (RuleKind.EXACT, RuleKind.SET, RuleKind.SEQUENCE)
"""The kinds that are written as one bare word."""

WIDEST_BAND: Final = 25.0
"""The largest quotient of a ratio's bounds: from a fifth to five times is no judgement any more."""

_OPTIONS: Final = ("allow_empty", "allow_minus_infinity")


class MalformedRuleError(ValueError):
    """A rule that makes no sense; the message says why and what to write."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A parsed rule.

    NUMERIC permits `|current - golden| <= atol + rtol * |golden|`; RATIO permits `low <= current / golden <= high`.
    `allow_empty` permits a value without a single scalar on both sides, such as an empty list; `allow_minus_infinity`
    permits the log-probability of a masked token, minus infinity on both sides.
    """

    kind: RuleKind
    atol: float = 0.0
    rtol: float = 0.0
    low: float = 1.0
    high: float = 1.0
    allow_empty: bool = False
    allow_minus_infinity: bool = False

    def __str__(self) -> str:
        if self.kind is RuleKind.NUMERIC:
            return f"atol {self.atol!r}, rtol {self.rtol!r}"
        if self.kind is RuleKind.RATIO:
            return f"ratio {self.low!r} to {self.high!r}"
        return self.kind.value


def parse_rule(value: Any) -> Rule:
    """Read one rule as it stands in a manifest: a word, or a map.

    Raises:
        MalformedRuleError: it is none, or one that cannot fail.
    """
    if isinstance(value, str):
        return Rule(_word(value))
    if not isinstance(value, Mapping):
        raise MalformedRuleError(
            f"{_shown(value)} is no rule. Write exact, set, sequence, {{atol: A, rtol: R}} or {{ratio: [LOW, HIGH]}}."
        )
    options = {name: _flag(name, value[name]) for name in _OPTIONS if name in value}
    rest = {name: value[name] for name in value if name not in _OPTIONS}
    words = [word for word in WORDS if word.value in rest]
    if len(words) == 1 and len(rest) == 1:
        if rest[words[0].value] is not True:
            raise MalformedRuleError(f"{words[0].value} can only be true. Leave the name out to not judge it.")
        return Rule(words[0], **options)
    if "ratio" in rest and len(rest) == 1:
        if options:
            raise MalformedRuleError(f"a ratio takes no {next(iter(options))}. Remove it.")
        low, high = _ratio(rest["ratio"])
        return Rule(RuleKind.RATIO, low=low, high=high)
    atol, rtol = _tolerances(rest)
    return Rule(RuleKind.NUMERIC, atol=atol, rtol=rtol, **options)


def _word(value: str) -> RuleKind:
    for word in WORDS:
        if value == word.value:
            return word
    hint = did_you_mean(value, [word.value for word in WORDS])
    raise MalformedRuleError(f"{_shown(value)} is no rule. {hint}")


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise MalformedRuleError(f"{name} is {_shown(value)}. Write true or false.")
    return value


def _tolerances(rest: Mapping[Any, Any]) -> tuple[float, float]:
    unknown = [name for name in rest if name not in ("atol", "rtol")]
    if unknown:
        known = ["atol", "rtol", "ratio", *_OPTIONS, *(word.value for word in WORDS)]
        raise MalformedRuleError(
            f"the key {_shown(unknown[0])} does not belong here. {did_you_mean(str(unknown[0]), known)}".rstrip()
        )
    missing = [name for name in ("atol", "rtol") if name not in rest]
    if missing:
        raise MalformedRuleError(f"{missing[0]} is missing. Write both: {{atol: 1e-3, rtol: 0.0}}.")
    bounds = {name: _number(name, rest[name]) for name in ("atol", "rtol")}
    for name, bound in bounds.items():
        if bound < 0:
            raise MalformedRuleError(f"{name} is {bound!r}: a negative tolerance permits nothing. Write 0 or more.")
    return bounds["atol"], bounds["rtol"]


def _ratio(value: Any) -> tuple[float, float]:
    if not isinstance(value, (list, tuple)) or len(value) != len(("low", "high")):
        raise MalformedRuleError(f"ratio is {_shown(value)}. Write [LOW, HIGH], such as [0.9, 1.2].")
    low, high = (_number("a bound of ratio", bound) for bound in value)
    if not 0 < low <= 1 <= high:
        raise MalformedRuleError(
            f"ratio [{low!r}, {high!r}] must hold 0 < LOW <= 1 <= HIGH: an unchanged figure passes, and zero fails."
        )
    if low == high:
        raise MalformedRuleError("ratio [1, 1] permits no noise at all. Write LOW < HIGH.")
    if high / low > WIDEST_BAND:
        raise MalformedRuleError(
            f"ratio [{low!r}, {high!r}] spans a factor of {high / low:.3g}, so no plausible change could fail it."
            f" Write bounds at most a factor of {WIDEST_BAND:g} apart."
        )
    return low, high


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MalformedRuleError(f"{name} is {_shown(value)}, not a number. Write a number without quotes.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise MalformedRuleError(f"{name} is not finite, so the rule could not fail. Write a finite number.")
    return number


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value[:40]}"'
    if isinstance(value, (list, tuple)):
        return "a list"
    return "a map" if isinstance(value, Mapping) else shown(value)
