"""Where two token sequences part, and what is known of that place.

A margin is the gap between the best and the second-best logit when the golden was recorded: zero means that two tokens
were equally good and either may win; a wide one means that nothing small can have turned it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from framework.compare.cause import Cause, largest_error, number_at, schedule_moved
from framework.compare.finding import Finding, FindingClass
from framework.explain.precision import dtype_of, margin_in_ulps
from framework.explain.schedule import Schedule, where_computed
from framework.explain.words import on_one_line, some

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NEIGHBOURS = 5
_SHOWN_MOVED = 3
_TOKEN_PATH = re.compile(r'^requests\[("(?:[^"\\]|\\.)*")\]\.generated_tokens(?:\[(\d+)\])?$')


@dataclass(frozen=True, slots=True)
class Aids:
    """What helps to explain a run beside its record: the text of tokens, and which step computed what.

    `decode` may raise anything; where it does, tokens are shown by their ids alone.
    """

    decode: Callable[[Sequence[int]], str] | None = None
    schedule: Schedule = ()


NO_AIDS: Final = Aids()


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first position at which two sequences differ; what is not known of it is None, or empty.

    `texts` shows both sequences around it, decoded. `ulps` is the margin in units in the last place of `dtype`, with
    the magnitude they were taken at. `logprob_error` is the largest absolute difference of log-probabilities before the
    position. `computed_in` says which step of the current run computed the token.
    """

    position: int
    golden: tuple[int, ...]
    current: tuple[int, ...]
    margin: float | None
    logprob_error: float | None
    texts: tuple[str, str] | None = None
    dtype: str | None = None
    ulps: tuple[float, float] | None = None
    computed_in: str = ""

    def in_words(self) -> str:
        """Return what is known of the place, a line each."""
        lines = [f"they part at token {self.position}"]
        for side, name in enumerate(("golden", "current")):
            lines.append(f"{name + ':':<9}{_around((self.golden, self.current)[side], self.position)}")
            if self.texts is not None:
                lines.append(f"{'':<9}{self.texts[side]}")
        if self.margin is not None:
            lines.append(f"margin in the golden there: {self.margin:.6g}{self._in_ulps()}")
        if self.logprob_error is not None:
            lines.append(f"largest log-prob error before: {self.logprob_error:.3g}")
        if self.computed_in:
            what = "computed" if self.position < len(self.current) else "the last token of the current one was computed"
            lines.append(f"{what} in {self.computed_in}")
        return "\n".join(lines)

    def _in_ulps(self) -> str:
        if self.margin == 0:
            return ", an exact tie"
        if self.ulps is None:
            return ""
        number, magnitude = self.ulps
        return f", {number:.3g} ULPs of {self.dtype} at a log-prob of -{magnitude:.3g}"


def explain_tokens(
    findings: Sequence[Finding],
    golden: Mapping[str, Any],
    record: Mapping[str, Any],
    aids: Aids = NO_AIDS,
) -> tuple[Finding, ...]:
    """Return the findings, those on generated tokens with the place in words.

    Where neither a tie nor an earlier drift explains a token and the schedule moved, the schedule is its cause.
    """
    return tuple(
        _explained(finding, golden, record, aids) if _is_about_tokens(finding) else finding for finding in findings
    )


def _is_about_tokens(finding: Finding) -> bool:
    is_about = finding.kind in (FindingClass.TOKEN, FindingClass.LENGTH)
    return is_about and _TOKEN_PATH.match(finding.path) is not None


def _explained(finding: Finding, golden: Mapping[str, Any], record: Mapping[str, Any], aids: Aids) -> Finding:
    match = _TOKEN_PATH.match(finding.path)
    assert match is not None, "only findings on tokens are explained"
    request_id = json.loads(match[1])
    sides = golden["requests"].get(request_id, {}), record["requests"].get(request_id, {})
    divergence = find_divergence(*sides)
    if divergence is None:
        return finding
    divergence = _looked_at(divergence, request_id, golden, record, aids)
    cause, message = finding.cause, finding.message
    if cause is None and (moved := schedule_moved(golden, record)):
        cause, message = Cause.SCHEDULE.value, f"{message}; the schedule moved too: {some(moved, _SHOWN_MOVED)}"
    return dataclasses.replace(finding, cause=cause, message=f"{message}\n{divergence.in_words()}")


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
    return Divergence(
        position=position,
        golden=tuple(golden_tokens),
        current=tuple(current_tokens),
        margin=number_at(golden.get("margins"), position),
        logprob_error=largest_error(golden.get("generated_logprobs"), current.get("generated_logprobs"), position),
    )


def _looked_at(
    divergence: Divergence,
    request_id: str,
    golden: Mapping[str, Any],
    record: Mapping[str, Any],
    aids: Aids,
) -> Divergence:
    """Return a divergence with what the whole records, and the aids, tell of it."""
    position, dtype = divergence.position, dtype_of(golden)
    logprob = number_at(golden["requests"][request_id].get("generated_logprobs"), position)
    ulps = None if divergence.margin is None else margin_in_ulps(divergence.margin, logprob, dtype)
    prompts = {key: _prompt_length(request) for key, request in record["requests"].items()}
    # The token at `position` is sampled where the one before it is computed; an output that ended computed no more.
    sampled = min(position, max(len(divergence.current) - 1, 0))
    place = prompts[request_id] + sampled - 1
    return dataclasses.replace(
        divergence,
        texts=_texts(divergence, aids.decode),
        dtype=dtype,
        ulps=ulps,
        computed_in=where_computed(aids.schedule, request_id, place, prompts) if divergence.current else "",
    )


def _prompt_length(request: Any) -> int:
    prompt = request.get("prompt_tokens") if isinstance(request, dict) else None
    return len(prompt) if isinstance(prompt, list) else 0


def _texts(divergence: Divergence, decode: Callable[[Sequence[int]], str] | None) -> tuple[str, str] | None:
    if decode is None:
        return None
    try:
        return (
            _text_around(divergence.golden, divergence.position, decode),
            _text_around(divergence.current, divergence.position, decode),
        )
    except Exception:  # noqa: BLE001 - a decoder that fails must not change a verdict; the ids are shown all the same
        return None


def _text_around(tokens: tuple[int, ...], position: int, decode: Callable[[Sequence[int]], str]) -> str:
    """Return the text around a token, the token itself between marks, all on one line."""
    first, last = max(position - NEIGHBOURS, 0), position + NEIGHBOURS + 1
    before, until, whole = (decode(tokens[first:end]) for end in (position, position + 1, last))
    if whole.startswith(until) and until.startswith(before):
        parts = before, until[len(before) :], whole[len(until) :]
    else:  # a token that is part of a character, or joins its neighbour's
        parts = before, decode(tokens[position : position + 1]), decode(tokens[position + 1 : last])
    marked = parts[1] if position < len(tokens) else "end"
    return f'"{on_one_line(parts[0])}»{on_one_line(marked)}«{on_one_line(parts[2])}"'


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
