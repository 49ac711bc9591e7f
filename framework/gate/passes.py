"""What passed before, kept between gates.

Only a gate whose verdict is green writes it, and nothing in it is believed unless all of it is whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from framework.gate.key import Groups, Reached, canonical
from framework.golden.store import write_atomically

PASSES_SCHEMA: Final = "golden.gate-passes/1"
MOST_KEPT: Final = 8
_MAXIMUM_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of a fixture on a platform: what it depended on, and the commit at which it was seen."""

    fixture: str
    platform: str
    groups: Groups
    reached: Reached
    head: str
    seconds: float
    compared: int


@dataclass(frozen=True, slots=True)
class Passes:
    """All passes that are known, the latest first; `problem` says why there are none where that is not plain.

    Several of one fixture are kept, since changes that a queue tries one after another do not build on each other.
    """

    known: tuple[Pass, ...] = ()
    problem: str = ""

    def by_fixture(self, platform: str) -> dict[str, list[Pass]]:
        """Return the passes on a platform by fixture, the latest first."""
        found: dict[str, list[Pass]] = {}
        for each in self.known:
            if each.platform == platform:
                found.setdefault(each.fixture, []).append(each)
        return found

    def with_more(self, passes: Iterable[Pass]) -> Passes:
        """Return these with newer ones before them, at most `MOST_KEPT` of a fixture on a platform."""
        kept: dict[tuple[str, str], list[Pass]] = {}
        for each in (*passes, *self.known):
            same = kept.setdefault((each.fixture, each.platform), [])
            if len(same) < MOST_KEPT and all(each.groups != other.groups for other in same):
                same.append(each)
        return Passes(tuple(each for same in kept.values() for each in same))


def read_passes(path: Path) -> Passes:
    """Read what passed before; whatever is wrong with the file, nothing in it counts, and `problem` says so."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAXIMUM_BYTES + 1)
    except FileNotFoundError:
        return Passes(problem="no earlier pass is recorded here")
    except OSError as error:
        return Passes(problem=f"{path} cannot be read ({error.strerror or error}), so no earlier pass counts")
    try:
        return _parse(data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = str(error) if isinstance(error, _DamagedError) else f"{type(error).__name__}"
        return Passes(problem=f"{path} is damaged ({why}), so no earlier pass counts")


def write_passes(path: Path, passes: Passes) -> None:
    """Write passes as one whole file.

    Raises:
        OSError: it cannot be written; what was there is as it was.
    """
    tables: dict[str, Mapping[str, str]] = {}
    entries = []
    for each in passes.known:
        groups = {}
        for name, group in each.groups.items():
            digest = hashlib.sha256(canonical(group)).hexdigest()
            tables[digest] = group
            groups[name] = digest
        entries.append(
            {
                "fixture": each.fixture,
                "platform": each.platform,
                "groups": groups,
                "reached": list(each.reached.paths),
                "idle": list(each.reached.idle),
                "is_whole": each.reached.is_whole,
                "head": each.head,
                "seconds": each.seconds,
                "compared": each.compared,
            }
        )
    body = {"groups": tables, "passes": entries}
    document = {"schema": PASSES_SCHEMA, "checksum": _checksum(body), **body}
    write_atomically(path, json.dumps(document, indent=1, sort_keys=True).encode() + b"\n")


class _DamagedError(ValueError):
    """A file that is not what `write_passes` writes."""


def _parse(data: bytes) -> Passes:
    if len(data) > _MAXIMUM_BYTES:
        raise _DamagedError("it is too large")
    document = json.loads(data)
    if not isinstance(document, dict) or document.get("schema") != PASSES_SCHEMA:
        raise _DamagedError(f"it is no {PASSES_SCHEMA}")
    tables, entries = document["groups"], document["passes"]
    if document["checksum"] != _checksum({"groups": tables, "passes": entries}):
        raise _DamagedError("its checksum does not fit")
    return Passes(tuple(_pass(entry, tables) for entry in entries))


def _pass(entry: Mapping[str, Any], tables: Mapping[str, Mapping[str, str]]) -> Pass:
    return Pass(
        fixture=entry["fixture"],
        platform=entry["platform"],
        groups={name: tables[digest] for name, digest in entry["groups"].items()},
        reached=Reached(tuple(entry["reached"]), entry["is_whole"] is True, tuple(entry["idle"])),
        head=entry["head"],
        seconds=float(entry["seconds"]),
        compared=int(entry["compared"]),
    )


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(body)).hexdigest()
