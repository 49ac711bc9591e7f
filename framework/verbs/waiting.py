"""What the verbs on candidates have in common: which ones, held against the working tree, and gone when settled."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from framework.errors import ExitCode, GoldenError, NothingSelectedError, UsageError, worst_exit_code
from framework.regenerate.accept import plan_acceptance
from framework.regenerate.candidates import candidates_folder, drop_candidates, find_candidates
from framework.regenerate.today import Today
from framework.report.streams import log
from framework.verbs.lint_manifests import refuse_broken_manifests

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from framework.compare.finding import FindingClass
    from framework.regenerate.candidates import Candidate
    from framework.regenerate.plan import Change
    from framework.verbs.opened import Opened
    from framework.workspace import Workspace

_FIXTURES = "Fixtures in it are selected with `--fixture NAME`"


def waiting_candidates(workspace: Workspace, folder: Path | None, patterns: Sequence[str]) -> tuple[Candidate, ...]:
    """Return the candidates in a folder, by default those that wait under `.golden/`.

    Raises:
        UsageError: there is no such folder, or it is where the goldens lie.
        NothingSelectedError: there are none, or a pattern matches none.
    """
    place = candidates_folder(workspace) if folder is None else folder.absolute()
    if folder is not None and not place.is_dir():
        raise UsageError(f"{folder}: no such folder; give the one that `golden regen --out DIR` wrote. {_FIXTURES}")
    if place.resolve().is_relative_to(workspace.goldens_root.resolve()):
        raise UsageError(f"{folder}: these are goldens, no candidates; give the folder that `golden regen` wrote")
    found = find_candidates(place, patterns)
    if not found:
        raise NothingSelectedError(
            f"{place}: no candidate waits there; `golden regen` answered with no keeps some, and `golden regen --out"
            " DIR` writes some into a folder of yours",
        )
    return found


def planned(opened: Opened, candidates: Sequence[Candidate], only: Iterable[FindingClass] = ()) -> list[Change]:
    """Return what bringing these candidates in would change.

    Raises:
        ManifestError: a manifest of theirs is one that its engine could not run.
    """
    names = {candidate.fixture for candidate in candidates}
    touched = tuple(fixture for name, fixture in opened.fixtures.items() if name in names)
    refuse_broken_manifests(dataclasses.replace(opened, selected=touched))
    today = Today(opened.workspace, opened.adapter, opened.fixtures)
    return plan_acceptance(candidates, today, only)


def forget_candidates(workspace: Workspace, changes: Iterable[Change]) -> None:
    """Drop the candidates that waited for goldens which are written now, or were found to stand.

    One that cannot be removed is said and no more: the goldens are right, and it is recognised when it comes again.
    """
    try:
        drop_candidates(workspace, changes)
    except GoldenError as error:
        log(f"golden: a candidate that is settled: {error}")


def code_of(changes: Iterable[Change]) -> ExitCode:
    """Return the exit code that the problems of a plan add up to."""
    return worst_exit_code([problem.exit_code for change in changes for problem in change.problems])
