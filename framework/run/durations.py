"""How long each fixture took the last time, kept under `.golden/`: for the order in which fixtures run, nothing else.

No compared value and no verdict depends on it, so a file that is damaged or not ours is worth a warning and no more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from framework.errors import GoldenError
from framework.golden.lock import writer_lock
from framework.golden.store import write_atomically
from framework.regular_file import read_regular_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FILE: Final = "durations.json"
SCHEMA: Final = "golden.durations/1"
_LOCK: Final = "durations.lock"
_MOST_BYTES: Final = 64 * 1024 * 1024
_LONGEST_S: Final = 1e7

Durations = dict[str, dict[str, float]]
"""Seconds by platform and name of fixture."""


def read_durations(state_folder: Path, warn: Callable[[str], None]) -> Durations:
    """Return the seconds that are recorded, none if there is no file or it is not one of ours."""
    path = state_folder / FILE
    try:
        document = json.loads(read_regular_file(path, _MOST_BYTES))
        return _checked(document)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        warn(f"warning: {path}: {why}; fixtures run without recorded times, in the order of their names")
        return {}


def record_durations(state_folder: Path, seconds: Mapping[tuple[str, str], float], warn: Callable[[str], None]) -> None:
    """Lay seconds, by platform and name of fixture, over those that are recorded.

    Runs that end at the same time lose nothing of each other. What cannot be written is worth a warning.
    """
    if not seconds:
        return
    try:
        with writer_lock(state_folder, _LOCK):
            merged = read_durations(state_folder, lambda _: None)
            for (platform, name), value in seconds.items():
                merged.setdefault(platform, {})[name] = round(value, 3)
            document = {"schema": SCHEMA, "seconds": merged}
            write_atomically(state_folder / FILE, json.dumps(document, indent=1, sort_keys=True).encode() + b"\n")
    except (GoldenError, OSError) as error:
        warn(f"warning: {state_folder / FILE}: times were not recorded: {error}")


def expected_seconds(durations: Mapping[str, float], name: str) -> float:
    """Return what a fixture will take: what it took, else the median of all others, else one second."""
    if name in durations:
        return durations[name]
    known = sorted(durations.values())
    return known[len(known) // 2] if known else 1.0


def _checked(document: Any) -> Durations:
    """Return the seconds of a document.

    Raises:
        ValueError: it is not one of ours.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f'it is no {SCHEMA} document (its "schema" says otherwise)')
    by_platform = document.get("seconds")
    if not isinstance(by_platform, dict) or not all(isinstance(entries, dict) for entries in by_platform.values()):
        raise ValueError('"seconds" does not hold an object for each platform')
    for platform, entries in by_platform.items():
        for name, value in entries.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= _LONGEST_S:
                raise ValueError(f"the seconds of {name} on {platform} are {json.dumps(value)[:40]}")
    return {platform: {n: float(v) for n, v in entries.items()} for platform, entries in by_platform.items()}
