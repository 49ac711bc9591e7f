"""How often in a row a fixture in quarantine has passed, kept under `.golden/`; never an input to a verdict."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

from framework.errors import GoldenError
from framework.golden.lock import writer_lock
from framework.golden.store import write_atomically
from framework.judge import Outcome, Verdict
from framework.regular_file import read_regular_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from framework.quarantine.entry import Entry

ENOUGH_PASSES: Final = 20
"""So many passes in a row say that an entry is needed no more."""

_FILE: Final = "quarantine_passes.json"
_MOST_BYTES: Final = 1_000_000


def count_passes(state_folder: Path, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Count one run, and return its outcomes with the passes in a row noted.

    A pass adds one, whatever else the fixture gave ends the row, and a fixture without an entry has none. A folder that
    cannot be written is no reason to fail a run: the count stays what it was.
    """
    outcomes = tuple(outcomes)
    if not any(outcome.quarantine for outcome in outcomes):
        return outcomes
    try:
        with writer_lock(state_folder, f"{_FILE}.lock"):
            counts = _read(state_folder)
            counted = tuple(_counted(outcome, counts) for outcome in outcomes)
            write_atomically(state_folder / _FILE, json.dumps(counts, indent=1, sort_keys=True).encode())
    except (GoldenError, OSError):
        return outcomes
    return counted


def passes_of(state_folder: Path, entry: Entry, platform: str) -> int:
    """Return the passes in a row that were counted for an entry on a platform."""
    return _passes(_read(state_folder), entry, platform)


def _counted(outcome: Outcome, counts: dict[str, Any]) -> Outcome:
    note = outcome.quarantine
    if note is None:
        return outcome
    passes = _passes(counts, note.entry, note.platform) + 1 if outcome.verdict is Verdict.PASS else 0
    counts[_key(note.entry, note.platform)] = {"since": note.entry.since.isoformat(), "passes": passes}
    return dataclasses.replace(outcome, quarantine=dataclasses.replace(note, consecutive_passes=passes))


def _passes(counts: dict[str, Any], entry: Entry, platform: str) -> int:
    """Return a count, 0 where it is of an earlier entry, or not what `count_passes` writes."""
    kept = counts.get(_key(entry, platform))
    if not isinstance(kept, dict) or kept.get("since") != entry.since.isoformat():
        return 0
    passes = kept.get("passes")
    return passes if type(passes) is int and passes >= 0 else 0


def _key(entry: Entry, platform: str) -> str:
    return f"{entry.fixture} on {platform}"


def _read(state_folder: Path) -> dict[str, Any]:
    try:
        counts = json.loads(read_regular_file(state_folder / _FILE, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return counts if isinstance(counts, dict) else {}
