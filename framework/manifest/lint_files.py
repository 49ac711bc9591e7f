"""Lint rules on files: names that collide, goldens without a manifest, manifests without a golden."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from framework.golden.store import LARGEST_GOLDEN, leads_out
from framework.manifest.linted import Linted, LintProblem, LintRule, Severity


def _colliding_names(linted: Linted) -> Iterator[LintProblem]:
    """Two names that differ in case only are one file on the disks of macOS and Windows."""
    first_of: dict[str, str] = {}
    for fixture in linted.fixtures:
        first = first_of.setdefault(fixture.name.casefold(), fixture.name)
        if first != fixture.name:
            message = f"{fixture.name} and {first} are one file on a disk that ignores case"
            yield linted.problem(fixture, "name", message, "Rename one of the two")


def _missing_platforms(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        if not fixture.platforms:
            yield linted.problem(fixture, "platforms", "is empty, so the fixture never runs", "Name one, such as cpu")


def _missing_goldens(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        for platform in fixture.platforms:
            if not (linted.goldens_root / fixture.name / f"{platform}.json").is_file():
                message = f"there is no golden for {platform}, so a run there has nothing to compare with"
                way_out = f"Record it: golden regen {fixture.name} --reason …"
                yield linted.problem(fixture, "platforms", message, way_out, Severity.WARNING)


def _goldens(linted: Linted) -> Iterator[LintProblem]:
    """Check every golden on the disk: its size, and that some fixture reads it."""
    platforms = {fixture.name: fixture.platforms for fixture in linted.fixtures}
    for path in _golden_files(linted.goldens_root):
        name = path.parent.relative_to(linted.goldens_root).as_posix()
        file = path.relative_to(linted.root).as_posix()
        if leads_out(path, linted.goldens_root):
            message = "a link that leads out of goldens/, or nowhere, so no reviewer sees what it holds"
            yield LintProblem(file, 1, "golden", message, "Put the golden itself there")
            continue
        try:
            size = path.stat().st_size
        except OSError as error:
            message = f"cannot be read: {error.strerror}"
            yield LintProblem(file, 1, "golden", message, "Put the golden itself there, or remove the link")
            continue
        if size > LARGEST_GOLDEN:
            message = f"has {size:,} bytes, more than {LARGEST_GOLDEN:,}"
            yield LintProblem(file, 1, "size", message, "Assert fewer fields, or shorten the workload")
        if name in platforms and path.stem not in platforms[name]:
            message = f"the fixture {name} does not run on {path.stem}, so nobody reads this golden"
            yield LintProblem(file, 1, "platform", message, f"Remove it, or add {path.stem} to the fixture's platforms")
        # A manifest that could not be loaded is not among the fixtures, but it is there.
        if name not in platforms and not (linted.fixtures_root / f"{name}.yaml").is_file():
            yield LintProblem(file, 1, "fixture", f"there is no fixture {name}", "Remove it, or restore its manifest")


def _unread_goldens(linted: Linted) -> Iterator[LintProblem]:
    """Links to folders are not followed, so goldens in them would never be checked."""
    unreadable: list[OSError] = []
    there = linted.goldens_root.is_dir()
    for folder, folders, _ in os.walk(linted.goldens_root, onerror=unreadable.append) if there else ():
        for link in (Path(folder, name) for name in sorted(folders) if Path(folder, name).is_symlink()):
            file = link.relative_to(linted.root).as_posix()
            yield LintProblem(file, 1, "golden", "a link to a folder", "Put the goldens themselves there")
    for error in unreadable:
        file = Path(error.filename).relative_to(linted.root).as_posix()
        yield LintProblem(file, 1, "golden", f"cannot be read: {error.strerror}", "Make the folder readable")


def _golden_files(goldens_root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(goldens_root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".json") and not name.startswith("."))


RULES: Final[tuple[LintRule, ...]] = (_colliding_names, _missing_platforms, _missing_goldens, _goldens, _unread_goldens)
