"""Paths into a record: `requests["0"].generated_tokens[1]`, `counters.step_count`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

Step = str | int

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_STEP: Final = re.compile(
    r"""(?:^|\.)(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\[(?P<index>[0-9]{1,9})\]|\[(?P<key>"(?:[^"\\]|\\.)*")\]""", re.ASCII
)


def extend(path: str, steps: Iterable[Step]) -> str:
    """Return `path` with `steps` added: an index or an odd key in brackets, a plain name after a dot."""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif path and _NAME.fullmatch(step):
            path += f".{step}"
        else:
            path += step if not path else f"[{json.dumps(step)}]"
    return path


def request_path(request_id: str) -> str:
    """Return the path of a request; ids are always written in brackets and quotes."""
    return f"requests[{json.dumps(request_id)}]"


def parse_path(text: str) -> tuple[Step, ...]:
    """Split a path into its steps.

    Raises:
        ValueError: `text` is no path.
    """
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(f"no path from column {position + 1} on")
        steps.append(_step(match))
        position = match.end()
    if not steps:
        raise ValueError("an empty path")
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["name"] is not None:
        return match["name"]
    if match["index"] is not None:
        return int(match["index"])
    key = json.loads(match["key"])
    assert isinstance(key, str)
    return key


def look_up(record: Any, steps: Iterable[Step]) -> Any:
    """Return the value at `steps`.

    Raises:
        LookupError: there is none.
    """
    value = record
    for step in steps:
        is_there = type(value) is (dict if isinstance(step, str) else list)
        if not is_there:
            raise LookupError(f"nothing at {step}")
        value = value[step]
    return value
