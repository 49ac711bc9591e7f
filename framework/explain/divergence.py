"""Where two token sequences part, and what the golden knows about that place.

A margin is the gap between the best and the second-best logit when the golden was recorded: zero means that two tokens
were equally good and either may win; a wide one means that nothing small can have turned it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from framework.compare.finding import Finding, FindingClass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NEIGHBOURS = 5
_EXACT_FLOATS = 2**53
_TOKEN_PATH = re.compile(r'^requests\[("(?:[^"\\]|\\.)*")\]\.generated_tokens(?:\[(\d+)\])?$')


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first position at which two sequences differ; `margin` and `logprob_error` are None where not recorded.

    `logprob_error` is the largest absolute difference of log-probabilities before the position.
    """

    position: int
    golden: tuple[int, ...]
    current: tuple[int, ...]
    margin: float | None
    logprob_error: float | None

    def in_words(self) -> str:
        """Return what is known of the place, a line each."""
        lines = [
            f"golden:  {_around(self.golden, self.position)}",
            f"current: {_around(self.current, self.position)}",
        ]
        if self.margin is not None:
            lines.append(f"margin in the golden there: {self.margin:.6g}")
        if self.logprob_error is not None:
            lines.append(f"largest log-prob error before: {self.logprob_error:.3g}")
        return "\n".join(lines)


def explain_tokens(
    findings: Sequence[Finding],
    golden: Mapping[str, Any],
    record: Mapping[str, Any],
) -> tuple[Finding, ...]:
    """Return the findings, those on generated tokens with the place in words.

    Where nothing closer names a cause and counters moved too, the schedule is it.
    """
    counters_moved = any(finding.kind is FindingClass.COUNTER for finding in findings)
    return tuple(_explain(finding, golden, record, counters_moved=counters_moved) for finding in findings)


def _explain(
    finding: Finding,
    golden: Mapping[str, Any],
    record: Mapping[str, Any],
    *,
    counters_moved: bool,
) -> Finding:
    match = _TOKEN_PATH.match(finding.path)
    if match is None or finding.kind not in (FindingClass.TOKEN, FindingClass.LENGTH):
        return finding
    request_id = json.loads(match[1])
    divergence = find_divergence(golden["requests"].get(request_id, {}), record["requests"].get(request_id, {}))
    if divergence is None:
        return finding
    cause = finding.cause or ("SCHEDULE" if counters_moved else None)
    return dataclasses.replace(finding, cause=cause, message=f"{finding.message}\n{divergence.in_words()}")


def find_divergence(golden: Mapping[str, Any], current: Mapping[str, Any]) -> Divergence | None:
    """Return where two requests' generated tokens part, or None if they do not or are no lists of tokens."""
    golden_tokens, current_tokens = golden.get("generated_tokens"), current.get("generated_tokens")
    if not _is_tokens(golden_tokens) or not _is_tokens(current_tokens):
        return None
    shorter = min(len(golden_tokens), len(current_tokens))
    different = (index for index in range(shorter) if golden_tokens[index] != current_tokens[index])
    position = next(different, shorter)
    if position == len(golden_tokens) == len(current_tokens):
        return None
    margins = golden.get("margins")
    return Divergence(
        position=position,
        golden=tuple(golden_tokens),
        current=tuple(current_tokens),
        margin=_number_at(margins, position),
        logprob_error=_largest_error(golden.get("generated_logprobs"), current.get("generated_logprobs"), position),
    )


def _around(tokens: tuple[int, ...], position: int) -> str:
    first = max(position - NEIGHBOURS, 0)
    words = [str(token) for token in tokens[first : position + NEIGHBOURS + 1]]
    if position < len(tokens):
        words[position - first] = f">{tokens[position]}<"
    else:
        words.append(">end<")
    before = "… " if first else ""
    after = " …" if position + NEIGHBOURS + 1 < len(tokens) else ""
    return f"{before}{' '.join(words)}{after}"


def _is_tokens(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(token) is int for token in value)


def _number_at(values: Any, position: int) -> float | None:
    if not isinstance(values, list) or position >= len(values):
        return None
    value = values[position]
    is_number = type(value) is float or (type(value) is int and abs(value) < _EXACT_FLOATS)
    return float(value) if is_number else None


def _largest_error(golden: Any, current: Any, end: int) -> float | None:
    if not isinstance(golden, list) or not isinstance(current, list) or end == 0:
        return None
    pairs = [(_number_at(golden, index), _number_at(current, index)) for index in range(end)]
    errors = [abs(theirs - ours) for ours, theirs in pairs if ours is not None and theirs is not None]
    return max(errors) if errors else None
