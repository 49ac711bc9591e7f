"""Lint rules on witnesses: that there is one, and that it can fail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from framework.compare.paths import Step, parse_path
from framework.manifest.fixture import Witness
from framework.manifest.linted import Linted, LintProblem, LintRule, Severity

_LARGEST: Final = 10.0**15
"""No counter, id or figure of one run comes near to it."""


@dataclass(frozen=True, slots=True)
class _Values:
    """The values that a place in a record can hold, both bounds included; `name` is what they are called."""

    name: str
    low: float = -_LARGEST
    high: float = _LARGEST
    whole: bool = False


_COUNTERS: Final = _Values("a counter", low=0, whole=True)
_IDS: Final = _Values("an id", low=0, whole=True)
_LOGPROBS: Final = _Values("a log-probability", high=0)
_MARGINS: Final = _Values("a margin", low=0)
_NUMBERS: Final = _Values("a number")

_REQUEST_VALUES: Final = {
    "prompt_tokens": _IDS,
    "generated_tokens": _IDS,
    "routing_indices": _IDS,
    "generated_logprobs": _LOGPROBS,
    "prompt_logprobs": _LOGPROBS,
    "margins": _MARGINS,
}
_TOP_N_VALUES: Final = {"token_id": _IDS, "logprob": _LOGPROBS}


def _without_witness(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        if not fixture.witnesses:
            message = "nothing shows that the run does what the fixture is about"
            way_out = 'Write a condition such as "counters.step_count > 0"'
            yield linted.problem(fixture, "witness", message, way_out, Severity.WARNING)


def _witness_that_cannot_fail(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        for index, witness in enumerate(fixture.witnesses):
            values = _values_at(parse_path(witness.path))
            if _always_holds(witness, values):
                message = f"{witness} holds whatever happens: {_why(witness, values)}"
                way_out = "Write a condition that a run could fail, such as counters.step_count > 0"
                yield linted.problem(fixture, f"witness[{index}]", message, way_out)


def _values_at(steps: tuple[Step, ...]) -> _Values:
    if steps[0] == "counters":
        return _COUNTERS
    if steps[0] != "requests":
        return _NUMBERS
    if "top_n_logprobs" in steps:
        return _TOP_N_VALUES.get(str(steps[-1]), _NUMBERS)
    return next((_REQUEST_VALUES[step] for step in steps[2:] if step in _REQUEST_VALUES), _NUMBERS)


def _always_holds(witness: Witness, values: _Values) -> bool:
    number = witness.number
    if witness.operator == "!=":
        return not values.low <= number <= values.high or _is_between_whole_ones(number, values)
    holds = {
        ">=": values.low >= number,
        ">": values.low > number,
        "<=": values.high <= number,
        "<": values.high < number,
        "==": values.low == number == values.high,
    }
    return holds[witness.operator]


def _is_between_whole_ones(number: float, values: _Values) -> bool:
    return values.whole and number != math.floor(number)


def _why(witness: Witness, values: _Values) -> str:
    if witness.number > values.low and _is_between_whole_ones(witness.number, values):
        return f"{values.name} is a whole number"
    if witness.number <= values.low:
        return f"{values.name} is never below {values.low:g}"
    return f"{values.name} is never above {values.high:g}"


RULES: Final[tuple[LintRule, ...]] = (_without_witness, _witness_that_cannot_fail)
