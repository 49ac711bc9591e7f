"""Why a token differs, as far as the two records tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from framework.compare.finding import Finding, FindingClass
from framework.compare.paths import parse_path


class Cause(StrEnum):
    """Causes that can be read off a golden and a record."""

    TIE_FLIP = "TIE_FLIP"
    NUMERIC_DRIFT = "NUMERIC_DRIFT"
    WRONG_FROM_START = "WRONG_FROM_START"
    LENGTH = "LENGTH"


_MESSAGES = {
    Cause.TIE_FLIP: "an exact tie of the two best tokens in the golden",
    Cause.NUMERIC_DRIFT: "the log-probs before it differ already",
    Cause.WRONG_FROM_START: "wrong from the first token on",
}


def with_cause(finding: Finding, golden: Mapping[str, Any], current: Mapping[str, Any]) -> Finding:
    """Return a finding on generated tokens with its cause, where there is one to tell.

    `golden` and `current` are the two requests. A tie is exact here: a margin of zero, never a small one.
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
    margins = golden.get("margins")
    if type(margins) is list and index < len(margins) and type(margins[index]) in (int, float) and margins[index] == 0:
        return Cause.TIE_FLIP
    if index == 0:
        return Cause.WRONG_FROM_START
    reference, value = golden.get("generated_logprobs"), current.get("generated_logprobs")
    if type(reference) is list and type(value) is list and reference[:index] != value[:index]:
        return Cause.NUMERIC_DRIFT
    return None
