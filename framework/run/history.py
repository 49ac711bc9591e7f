"""The last verdict on each fixture, kept under `.golden/` for `golden explain`; never an input to a verdict."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from framework.golden.store import write_atomically
from framework.redact import Redactor
from framework.regular_file import read_regular_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_FILE = "last_verdicts.json"
_MOST_BYTES = 256 * 1024 * 1024
_FINDING_KEYS = ("class", "path", "message")


def remember(state_folder: Path, latest: Iterable[Mapping[str, Any]]) -> None:
    """Keep these entries of a `golden.run/1` document as the latest verdicts.

    A folder that cannot be written is no reason to fail a run.
    """
    redactor = Redactor.of(os.environ)
    entries = _read(state_folder) | {entry["fixture"]: redactor.value(dict(entry)) for entry in latest}
    try:
        write_atomically(state_folder / _FILE, json.dumps(entries, indent=1, sort_keys=True).encode())
    except OSError:
        return


def last_verdict(state_folder: Path, fixture_name: str) -> dict[str, Any] | None:
    """Return the latest outcome of a fixture as its JSON entry, if there was one."""
    entry = _read(state_folder).get(fixture_name)
    return entry if _is_outcome(entry) else None


def _is_outcome(entry: Any) -> bool:
    """Say whether an entry is what `remember` writes: anything else in the file is as good as nothing."""
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("verdict"), str)
        and isinstance(entry.get("findings"), list)
        and all(map(_is_finding, entry["findings"]))
    )


def _is_finding(entry: Any) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in _FINDING_KEYS)


def _read(state_folder: Path) -> dict[str, Any]:
    try:
        entries = json.loads(read_regular_file(state_folder / _FILE, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}
