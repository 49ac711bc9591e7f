"""Goldens on disk: where they lie, how they are read, and the only way one is written.

`goldens/<fixture>/<platform>.json`. A write goes to a temporary file in the same folder, is flushed to the disk, and
then takes the golden's name in one step, so a crash at any moment leaves the old golden or the new one, never a part.
Several are staged before the first is renamed, so what cannot be written stops all of them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.errors import GoldenError, MissingGoldenError, SealError
from framework.golden.codec import decode_canonical, decode_json, has_conflict_markers, read_bytes, unreadable
from framework.golden.document import GOLDEN_SCHEMA, require_golden, require_record
from framework.golden.seal import holds_several_seals, seal_holds, with_lf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LARGEST_GOLDEN = 16 * 1024 * 1024
"""Bytes that a golden may have: lint refuses a larger one, and none is written."""

PART_PREFIX = ".golden-writing-"
PART_SUFFIX = ".part"


@dataclass(frozen=True, slots=True)
class Golden:
    """A golden that was read and believed: its file, its bytes with LF, and what they say."""

    path: Path
    data: bytes
    document: dict[str, Any]


def golden_path(goldens_root: Path, fixture_name: str, platform: str) -> Path:
    """Return where the golden of a fixture on a platform lies."""
    return goldens_root.joinpath(*fixture_name.split("/"), f"{platform}.json")


def read_golden(path: Path) -> Golden:
    """Read a golden: readable, then sealed, then of the right shape.

    Raises:
        MissingGoldenError: there is none.
        SealError: it can be read, but is not what was sealed.
        GoldenError: it is unreadable or no golden.
    """
    try:
        return parse_golden(read_bytes(path), path)
    except MissingGoldenError:
        raise MissingGoldenError(
            f"{path}: there is no golden yet. Record one with `golden regen --reason …`, and review what it writes.",
        ) from None


def read_golden_of(goldens_root: Path, fixture_name: str, platform: str) -> Golden:
    """Read the golden of a fixture on a platform.

    Raises:
        MissingGoldenError: there is none.
        SealError: it can be read, but is not what was sealed.
        GoldenError: it is unreadable, no golden, or a link leads to it from elsewhere: who reviews it would not see it.
    """
    path = golden_path(goldens_root, fixture_name, platform)
    if leads_out(path, goldens_root):
        raise unreadable(path, f"a link leads out of {goldens_root.name}/; put the golden itself there")
    return read_golden(path)


def leads_out(path: Path, folder: Path) -> bool:
    """Say whether a path that is written as one below `folder` lies elsewhere, or nowhere, because of a link."""
    try:
        return not path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a link that leads to itself
        return True


def parse_golden(data: bytes, path: Path) -> Golden:
    """Read a golden from its bytes; `path` is what errors name.

    Raises:
        SealError: it can be read, but is not what was sealed.
        GoldenError: it is unreadable or no golden.
    """
    data, document = _parse_sealed(data, path)
    return Golden(path=path, data=data, document=require_golden(document, path))


def read_record_or_golden(path: Path) -> dict[str, Any]:
    """Read a file that holds a record or a golden; a golden's seal must hold."""
    _, document = _parse_sealed(read_bytes(path), path)
    return require_golden(document, path) if _is_golden(document) else require_record(document, path)


def _parse_sealed(data: bytes, path: Path) -> tuple[bytes, Any]:
    """Return bytes with LF and what they say; what calls itself a golden must be sealed."""
    data = with_lf(data)
    if seal_holds(data):
        return data, decode_canonical(data, path)
    try:
        document = decode_json(data, path)
    except GoldenError:
        if holds_several_seals(data) and not has_conflict_markers(data):
            raise _broken_seal(path, "it carries the seals of two goldens that were merged by lines") from None
        raise
    if _is_golden(document):
        raise _broken_seal(path, "the bytes are not those that were recorded")
    return data, document


def _broken_seal(path: Path, cause: str) -> SealError:
    return SealError(
        f"{path}: the seal is broken: {cause}. Goldens are never edited by hand or merged line by line. After a merge"
        " of two goldens, take either side, run `golden regen --reason …` on the merged tree, and commit what it"
        " writes.",
    )


def _is_golden(document: Any) -> bool:
    return isinstance(document, dict) and document.get("schema") == GOLDEN_SCHEMA


def write_atomically(path: Path, data: bytes) -> None:
    """Write a whole file so that no reader and no crash ever sees a part of it.

    Raises:
        OSError: it cannot be written; nothing has changed then.
    """
    write_all({path: data})


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write several files, all or none: each is complete on the disk before the first takes its name.

    Raises:
        OSError: one of them cannot be written; none has changed then, and the folders made for them are gone.
    """
    made: list[Path] = []
    staged: dict[Path, Path] = {}
    try:
        for path, data in files.items():
            _refuse_folder(path)
            _make_folder(path.parent, made)
            _stage(path, data, staged)
        for path, part in staged.items():
            part.replace(path)
    except BaseException:
        for part in staged.values():
            part.unlink(missing_ok=True)
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
    for folder in {path.parent for path in files} | {folder.parent for folder in made}:
        _sync_folder(folder)


def why_not_writable(path: Path, root: Path) -> str:
    """Return why a file could not, or may not, be written at `path`, or an empty string; nothing is tried.

    A path outside `root` is the choice of whoever gave it. One inside may not be carried out of it by a link, which
    is the choice of whoever wrote what lies in `root`.
    """
    if path.is_dir():
        return "it is a folder"
    written = Path(os.path.normpath(path.absolute()))
    if any(written.is_relative_to(top) for top in (root, root.resolve())) and leads_out(path.parent, root):
        return f"a link leads out of {root}"
    folder = path.absolute().parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        return f"{folder} is no folder"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"{folder} may not be written to"


def remove_parts(paths: Iterable[Path]) -> None:
    """Remove what killed writers of these very files left beside them; call it under the writer's lock only."""
    for path in paths:
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        for entry in list(beside):
            if entry.name.startswith(_part_prefix(path)) and entry.name.endswith(PART_SUFFIX) and entry.is_file():
                entry.unlink(missing_ok=True)


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))


def _part_prefix(path: Path) -> str:
    return f"{PART_PREFIX}{path.name}."


def _make_folder(folder: Path, made: list[Path]) -> None:
    """Make a folder and its parents; those that were not there are added to `made`, outermost first."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir()
        made.append(each)


def _stage(path: Path, data: bytes, staged: dict[Path, Path]) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=_part_prefix(path), suffix=PART_SUFFIX)
    staged[path] = Path(temporary)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    staged[path].chmod(0o644)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
