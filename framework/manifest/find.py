"""Which files below `fixtures/` are manifests, and what lies there that would never be run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from framework.errors import ManifestError

MODELS_FOLDER: Final = "models"
"""The folder under the fixtures that holds models, not manifests."""

_SUFFIXES: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class NeverRun:
    """A place below the fixtures that is not looked into, and the error that says so."""

    path: Path
    error: ManifestError


@dataclass(frozen=True, slots=True)
class FoundManifests:
    """The files that are manifests, or were meant to be, sorted; and the places that are not looked into."""

    paths: tuple[Path, ...]
    never_run: tuple[NeverRun, ...]

    @property
    def errors(self) -> tuple[ManifestError, ...]:
        """An error for each place that is not looked into."""
        return tuple(each.error for each in self.never_run)


def find_manifests(fixtures_root: Path) -> FoundManifests:
    """Look for manifests below `fixtures_root`, `models/` and hidden names apart.

    Links to folders are not followed, so one is an error, like a folder that cannot be read or a link that leads
    nowhere: what it holds would never be run, and nobody would know.
    """
    paths: list[Path] = []
    never_run: list[NeverRun] = []
    unreadable: list[OSError] = []
    if not fixtures_root.is_dir():
        return FoundManifests((), ())
    for folder, folders, files in os.walk(fixtures_root, onerror=unreadable.append):
        at_top = Path(folder) == fixtures_root
        folders[:] = sorted(name for name in folders if name[0] != "." and not (at_top and name == MODELS_FOLDER))
        links = (Path(folder, name) for name in folders if Path(folder, name).is_symlink())
        never_run.extend(_never_run(link, fixtures_root, "a link to a folder") for link in links)
        for path in _not_hidden(Path(folder), files):
            if path.suffix.lower() in _SUFFIXES:
                paths.append(path)
            elif path.is_symlink() and not path.exists():
                never_run.append(_never_run(path, fixtures_root, "a link that leads nowhere"))
    never_run.extend(
        _never_run(Path(error.filename), fixtures_root, f"a folder that cannot be read ({error.strerror})")
        for error in unreadable
    )
    return FoundManifests(tuple(sorted(paths)), tuple(sorted(never_run, key=lambda each: each.path)))


def source_name(path: Path, fixtures_root: Path) -> str:
    """Return how errors name the file `path`: from the folder that holds the fixtures, where it lies there."""
    root = fixtures_root.parent
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _not_hidden(folder: Path, names: list[str]) -> Iterator[Path]:
    return (folder / name for name in names if name[0] != ".")


def _never_run(path: Path, fixtures_root: Path, what: str) -> NeverRun:
    source = source_name(path, fixtures_root)
    return NeverRun(
        path,
        ManifestError(
            f"{source}: {what}, so manifests in it would never be run. Put the files themselves there, or remove it."
        ),
    )
