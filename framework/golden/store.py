"""Goldens on disk: where they lie, how they are read, and the only way one is written.

`goldens/<fixture>/<platform>.json`. A write goes to a temporary file in the same folder, is flushed to the disk, and
then takes the golden's name in one step, so a crash at any moment leaves the old golden or the new one, never a part.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.errors import MissingGoldenError, SealError
from framework.golden.codec import decode_canonical, decode_json, read_bytes
from framework.golden.document import GOLDEN_SCHEMA, require_golden, require_record
from framework.golden.seal import seal_holds, with_lf

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
        data, document = _read_sealed(path)
    except MissingGoldenError:
        raise MissingGoldenError(
            f"{path}: there is no golden yet. Record one with `golden regen --reason …`, and review what it writes.",
        ) from None
    return Golden(path=path, data=data, document=require_golden(document, path))


def read_record_or_golden(path: Path) -> dict[str, Any]:
    """Read a file that holds a record or a golden; a golden's seal must hold."""
    _, document = _read_sealed(path)
    return require_golden(document, path) if _is_golden(document) else require_record(document, path)


def _read_sealed(path: Path) -> tuple[bytes, Any]:
    """Return a file's bytes with LF and what they say; what calls itself a golden must be sealed."""
    data = with_lf(read_bytes(path))
    holds = seal_holds(data)
    document = decode_canonical(data, path) if holds else decode_json(data, path)
    if _is_golden(document) and not holds:
        raise SealError(
            f"{path}: the seal is broken: the bytes are not those that were recorded. Goldens are never edited by hand"
            " or merged line by line. After a merge of two goldens, take either side, run `golden regen --reason …` on"
            " the merged tree, and commit what it writes.",
        )
    return data, document


def _is_golden(document: Any) -> bool:
    return isinstance(document, dict) and document.get("schema") == GOLDEN_SCHEMA


def write_atomically(path: Path, data: bytes) -> None:
    """Write a whole file so that no reader and no crash ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART_SUFFIX)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def remove_parts(goldens_root: Path) -> None:
    """Remove what killed writers left behind; call it under the writer's lock only."""
    for part in goldens_root.rglob(f".*{PART_SUFFIX}"):
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
