"""Candidates: complete, sealed goldens that were proven and that nobody has brought in yet.

Those that wait lie under `.golden/candidates/`, laid out as goldens are; `golden regen --out DIR` writes the same
elsewhere. A candidate carries its proof and the seal of the golden it was planned against, so it can be judged on
another machine and on another day.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.errors import GoldenError, NothingSelectedError
from framework.golden.lock import writer_lock
from framework.golden.seal import sealed_bytes
from framework.golden.store import LARGEST_GOLDEN, golden_path, remove_parts, write_all
from framework.redact import Redactor
from framework.regenerate.plan import Change, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from framework.workspace import Workspace

_SUFFIX = ".json"
_LOCK = "candidates.lock"
"""Not that of the goldens: what was proven must not be lost because somebody writes those."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be a candidate, and whose golden it would become by where it lies."""

    path: Path
    fixture: str
    platform: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was proven of one golden: the sealed bytes that are to wait for it; None where the golden in force stands.

    It can travel to the one process that writes, unlike the change it was made of.
    """

    fixture: str
    platform: str
    data: bytes | None


def candidates_folder(workspace: Workspace) -> Path:
    """Return where candidates wait to be accepted or rejected; never under version control."""
    return workspace.state_folder / "candidates"


def candidate_bytes(change: Change, origin: Mapping[str, Any]) -> bytes:
    """Return the sealed bytes of the golden that a change would write.

    `origin` says where it comes from (`framework.regenerate.apply.provenance`); the proof and the seal of the golden
    it replaces are the change's own.

    Raises:
        GoldenError: a secret would be written, which cannot be redacted, since what is compared must stay as it is; or
            it would be larger than a golden may be.
    """
    assert change.document is not None, "only a fixture without problems has a candidate"
    document = {**change.document, "provenance": {**change.provenance, **origin}}
    if Redactor.of(os.environ).finds(document):
        raise GoldenError(
            f"{change.path}: it would hold the value of an environment variable that is named like a secret; nothing"
            " was written. Take it out of the prompts, the settings, the reason, or what the engine says of itself, or"
            " unset the variable"
        )
    data = sealed_bytes(document)
    if len(data) > LARGEST_GOLDEN:
        raise GoldenError(
            f"{change.path}: it would have {len(data):,} bytes, more than {LARGEST_GOLDEN:,}; nothing was written. Most"
            f" of it is {_largest_field(document)}: inform or ignore that, or shorten the workload"
        )
    return data


def _largest_field(document: Mapping[str, Any]) -> str:
    """Return the name of the per-request field that takes the most room."""
    sizes: dict[str, int] = {}
    for request in document["requests"].values():
        for name, value in request.items():
            sizes[name] = sizes.get(name, 0) + len(json.dumps(value))
    return max(sizes, key=lambda name: sizes[name], default="not in its requests")


def keep_candidates(workspace: Workspace, changes: Iterable[Change], origin: Mapping[str, Any]) -> list[Path]:
    """Let every new and changed golden of a plan wait as a candidate, and return where each lies.

    One that waited for the same golden is replaced; where the golden in force was found to stand, it is dropped.

    Raises:
        GoldenError: one cannot be written, or another process is writing; none has changed then.
    """
    return keep_proposals(workspace, proposals(changes, origin))


def proposals(changes: Iterable[Change], origin: Mapping[str, Any]) -> list[Proposal]:
    """Return what a plan proposes; nothing for what was refused.

    Raises:
        GoldenError: a secret would be written.
    """
    return [
        Proposal(
            change.fixture,
            change.platform,
            None if change.kind is Kind.UNCHANGED else candidate_bytes(change, origin),
        )
        for change in changes
        if change.kind is not Kind.REFUSED
    ]


def keep_proposals(workspace: Workspace, proposed: Iterable[Proposal], folder: Path | None = None) -> list[Path]:
    """Let proposals wait in `folder`, by default that of the candidates, and return where each lies.

    One that waited for the same golden is replaced; where the golden in force was found to stand, it is dropped from
    the folder of the candidates. What lies in a folder of the user's is the user's.

    Raises:
        GoldenError: one cannot be written, or another process is writing; none has changed then.
    """
    place, plan = folder or candidates_folder(workspace), list(proposed)
    files = {golden_path(place, each.fixture, each.platform): each.data for each in plan if each.data is not None}
    if folder is None:
        drop_candidates(workspace, (each for each in plan if each.data is None))
    write_candidates(workspace, files, place)
    return list(files)


def write_candidates(workspace: Workspace, files: Mapping[Path, bytes], folder: Path | None = None) -> None:
    """Write candidates below `folder`, by default `candidates_folder`, all of them or none.

    Raises:
        GoldenError: one cannot be written, or another process is writing; none has changed then.
    """
    folder, goldens = folder or candidates_folder(workspace), workspace.goldens_root.resolve()
    assert all(path.is_relative_to(folder) for path in files), "candidates lie in their own folder"
    if not files:
        return
    for path in files:
        if path.parent.resolve().is_relative_to(goldens):
            raise GoldenError(f"{path}: leads into {workspace.goldens_root}; remove the link, nothing was written")
    with writer_lock(workspace.state_folder, _LOCK):
        try:
            remove_parts(files)
            write_all(files)
        except OSError as error:
            raise GoldenError(
                f"{error.filename or folder}: cannot be written: {error.strerror or error}; no candidate was kept. Make"
                " room for it, then run it again",
            ) from None


def find_candidates(folder: Path, patterns: Sequence[str] = ()) -> tuple[Candidate, ...]:
    """Return every `FIXTURE/PLATFORM.json` below a folder, by name; with patterns, those whose fixture matches one.

    Hidden names are left out. Links to folders are never followed, so one is an error.

    Raises:
        GoldenError: the folder, or one in it, is a link or cannot be read.
        NothingSelectedError: a pattern matches nothing.
    """
    found = sorted(_below(folder), key=lambda candidate: (candidate.fixture, candidate.platform))
    for pattern in patterns:
        if not any(fnmatchcase(candidate.fixture, pattern) for candidate in found):
            names = ", ".join(sorted({candidate.fixture for candidate in found})) or "none at all"
            raise NothingSelectedError(f"{folder}: no candidate matches {pattern!r}; there is {names}")
    return tuple(
        candidate
        for candidate in found
        if not patterns or any(fnmatchcase(candidate.fixture, pattern) for pattern in patterns)
    )


def drop_candidates(workspace: Workspace, settled: Iterable[Candidate | Change | Proposal]) -> list[Path]:
    """Remove the waiting candidates for these goldens, with the folders that are empty then; return what was removed.

    Raises:
        GoldenError: one cannot be removed, or another process is writing.
    """
    folder = candidates_folder(workspace)
    paths = [golden_path(folder, each.fixture, each.platform) for each in settled]
    present = [path for path in paths if path.is_file() or path.is_symlink()]
    if not present:
        return []
    with writer_lock(workspace.state_folder, _LOCK):
        remove_files(present, folder)
    return present


def remove_files(paths: Sequence[Path], top: Path) -> None:
    """Remove files below `top`, and the folders up to it that are empty then; the writer's lock must be held.

    Raises:
        GoldenError: one cannot be removed; the message says how many were.
    """
    for done, path in enumerate(paths):
        try:
            remove_parts([path])
            path.unlink(missing_ok=True)
            _remove_empty(path.parent, top)
        except OSError as error:
            raise GoldenError(
                f"{error.filename or path}: cannot be removed: {error.strerror or error}; {done} of {len(paths)} were"
                " removed. Make it writable, then run it again",
            ) from None


def _remove_empty(folder: Path, top: Path) -> None:
    while folder != top and folder.is_relative_to(top) and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _below(top: Path) -> Iterator[Candidate]:
    if not top.is_dir():
        return
    unreadable: list[OSError] = []
    for folder, folders, files in os.walk(top, onerror=unreadable.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for link in (Path(folder, name) for name in folders if Path(folder, name).is_symlink()):
            raise GoldenError(f"{link}: a link to a folder, which is not followed; put the candidates themselves there")
        for name in files:
            if name.endswith(_SUFFIX) and not name.startswith("."):
                path = Path(folder, name)
                yield Candidate(path, path.parent.relative_to(top).as_posix(), name.removesuffix(_SUFFIX))
    for error in unreadable:
        raise GoldenError(f"{error.filename}: cannot be read: {error.strerror}; make the folder readable")
