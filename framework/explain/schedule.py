"""The schedule of a run: which step computed what, as an engine may hand it over beside its record.

It is a list of launched plans, `{"step": 17, "rows": [["0", 64, 1], ["5", 32, 32]]}`: a row is a request, the first
position it computes and how many. It is never compared and never stored in a golden; it only explains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from framework.explain.words import some

Schedule = Sequence[Mapping[str, Any]]

_SHOWN: Final = 8


class MalformedScheduleError(ValueError):
    """What an engine handed over is no schedule; the message says why."""


def checked_schedule(value: Any, requests: int) -> list[dict[str, Any]]:
    """Return a schedule as JSON has it, with known request ids (`"0"` to `requests - 1`) and sound numbers.

    Raises:
        MalformedScheduleError: it is none.
    """
    known = {str(index) for index in range(requests)}
    if not isinstance(value, list | tuple):
        raise MalformedScheduleError(f"it is {type(value).__name__}, not a list of plans")
    return [_checked_plan(plan, known) for plan in value]


def _checked_plan(plan: Any, known: set[str]) -> dict[str, Any]:
    is_plan = isinstance(plan, Mapping) and _is_count(plan.get("step")) and isinstance(plan.get("rows"), list | tuple)
    if not is_plan:
        raise MalformedScheduleError('a plan is not {"step": number, "rows": […]}')
    if not all(_is_row(row, known) for row in plan["rows"]):
        raise MalformedScheduleError(f"a row of step {plan['step']} is not [request, first position, count]")
    return {"step": plan["step"], "rows": [list(row) for row in plan["rows"]]}


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_row(row: Any, known: set[str]) -> bool:
    if not isinstance(row, list | tuple) or len(row) != len(("request", "first", "count")):
        return False
    return isinstance(row[0], str) and row[0] in known and all(map(_is_count, row[1:]))


def renamed(schedule: Schedule, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a schedule with other names for its requests."""
    return [{**plan, "rows": [[names[key], *rest] for key, *rest in plan["rows"]]} for plan in schedule]


def where_computed(schedule: Schedule, request_id: str, position: int, prompts: Mapping[str, int]) -> str:
    """Say which step computed a position of a request, and beside what; empty where the schedule does not hold it.

    `prompts` are the lengths of all prompts: a row of one position behind its prompt is a decode. What was computed
    again after an eviction is named too.
    """
    beginnings: list[int] = []
    for plan in schedule:
        for key, first, count in plan["rows"]:
            if key != request_id:
                continue
            if first == 0:
                beginnings.append(plan["step"])
            if first <= position < first + count:
                words = f"step {plan['step']}: {_rows_in_words(plan['rows'], prompts)}"
                if len(beginnings) > 1 and beginnings[-1] != plan["step"]:
                    words += f"; request {key} had been computed anew from position 0 in step {beginnings[-1]}"
                return words
    return ""


def _rows_in_words(rows: Sequence[Sequence[Any]], prompts: Mapping[str, int]) -> str:
    decodes = [str(key) for key, first, count in rows if count == 1 and first >= prompts.get(key, 0)]
    prefills = [f"request {key} [{first}, {first + count})" for key, first, count in rows if str(key) not in decodes]
    parts = []
    if decodes:
        parts.append(f"decode of request{'s' if len(decodes) > 1 else ''} {some(decodes, _SHOWN)}")
    if prefills:
        parts.append(f"{'a ' if decodes else ''}prefill of {some(prefills, _SHOWN)}")
    return " beside ".join(parts)
