"""Goldens that nobody reads: of a fixture that is gone, or for a platform that its fixture does not name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framework.golden.store import golden_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from framework.manifest.fixture import Fixture


@dataclass(frozen=True, slots=True)
class Unread:
    """A golden that nobody reads, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Prunable:
    """The goldens that nobody reads, sorted, and the places that were not looked into, since links are not followed."""

    goldens: tuple[Unread, ...]
    not_followed: tuple[Path, ...]


def prunable(goldens_root: Path, fixtures: Sequence[Fixture]) -> Prunable:
    """Find what may go, given every fixture there is.

    A file that is the same as a golden that some fixture reads stays, whatever it is called: on a disk that ignores
    case, another spelling is no other file.

    Raises:
        OSError: a folder cannot be read.
    """
    platforms = {fixture.name: fixture.platforms for fixture in fixtures}
    read = {golden_path(goldens_root, fixture.name, name) for fixture in fixtures for name in fixture.platforms}
    same_as_read = {_identity(path) for path in read if path.exists()}
    links: list[Path] = []
    goldens = [
        Unread(path, _why(path, goldens_root, platforms))
        for path in _files(goldens_root, links)
        if path not in read and _identity(path) not in same_as_read
    ]
    return Prunable(tuple(sorted(goldens, key=lambda golden: golden.path)), tuple(sorted(links)))


def _why(path: Path, goldens_root: Path, platforms: dict[str, tuple[str, ...]]) -> str:
    name = path.parent.relative_to(goldens_root).as_posix()
    if name not in platforms:
        return f"there is no fixture {name}"
    return f"{name} is for {', '.join(platforms[name])}, not for {path.stem}"


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from all others; of a link, itself and not what it leads to."""
    status = path.lstat()
    return status.st_dev, status.st_ino


def _files(root: Path, links: list[Path]) -> Iterator[Path]:
    """Yield every golden below a folder; links to folders are added to `links` and not followed."""
    for folder, folders, files in os.walk(root, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        links += [Path(folder, name) for name in folders if Path(folder, name).is_symlink()]
        yield from (Path(folder, name) for name in files if name.endswith(".json") and not name.startswith("."))


def _raise(error: OSError) -> None:
    raise error
