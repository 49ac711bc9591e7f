"""Witnesses: conditions that show that a run did what its fixture is about.

A fixture for eviction that never evicts is green for the wrong reason; `counters.preemption_count > 0` says so.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from framework.compare.finding import Finding, FindingClass
from framework.compare.paths import look_up, parse_path
from framework.compare.show import as_finding_value, shown
from framework.errors import ManifestError
from framework.manifest.fixture import Witness

_Number = int | float
OPERATORS: Final[Mapping[str, Callable[[_Number, _Number], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}

_FORM: Final = re.compile(
    r"\s*(?P<path>\S(?:.*\S)?)\s+(?P<operator>>=|<=|==|!=|>|<)\s+(?P<number>[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*",
    re.ASCII,
)
_LONGEST: Final = 200


def parse_witness(text: Any) -> Witness:
    """Read a witness such as `counters.async_sched_step_count > 0`: path, operator, number, with spaces between.

    Raises:
        ManifestError: `text` is none.
    """
    if not isinstance(text, str):
        raise ManifestError(f'{shown(text)} is no witness. Write a string such as "counters.step_count > 0".')
    match = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ManifestError(
            f"{shown(text)} is no witness. Write path, operator ({' '.join(OPERATORS)}) and number, spaces between, "
            'such as "counters.step_count > 0".'
        )
    try:
        parse_path(match["path"])
    except ValueError as error:
        raise ManifestError(f"{shown(text)}: {match['path']} is no path into a record: {error}.") from error
    digits = match["number"]
    number: _Number = int(digits) if digits.lstrip("+-").isdigit() else float(digits)
    if isinstance(number, float) and not math.isfinite(number):
        raise ManifestError(f"{shown(text)}: {digits} is too large for a 64-bit float.")
    return Witness(match["path"], match["operator"], number)


def check_witnesses(witnesses: Iterable[Witness], record: Any) -> tuple[Finding, ...]:
    """Return a finding for every witness that does not hold in `record`, or whose path is not there."""
    findings = (_check(witness, record) for witness in witnesses)
    return tuple(finding for finding in findings if finding is not None)


def _check(witness: Witness, record: Any) -> Finding | None:
    try:
        value = look_up(record, parse_path(witness.path))
    except LookupError:
        return _finding(witness, f"{witness.path} is not in the record, so nothing shows that the run did it")
    if type(value) not in (int, float):
        return _finding(witness, f"{witness.path} is {shown(value)}, not a number", value)
    if not math.isnan(value) and OPERATORS[witness.operator](value, witness.number):
        return None
    message = f"{witness.path} is {shown(value)}: the run did not do what this fixture is about"
    return _finding(witness, message, value)


def _finding(witness: Witness, message: str, value: Any = None) -> Finding:
    text = str(witness)
    return Finding(FindingClass.WITNESS, text, f"witness {text}", message, current=as_finding_value(value))
