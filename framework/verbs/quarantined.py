"""The quarantine that verbs judge under: the one in the file, without anything wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.clock import today
from framework.errors import ManifestError
from framework.quarantine.lint import quarantine_problems
from framework.quarantine.load import load_quarantine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from framework.manifest.fixture import Fixture
    from framework.manifest.linted import LintProblem
    from framework.quarantine.entry import Quarantine
    from framework.workspace import Workspace


def quarantine_in_force(workspace: Workspace, fixtures: Iterable[Fixture]) -> Quarantine:
    """Return the quarantine of a root; `fixtures` are all that it has, selected or not.

    Raises:
        ManifestError: the file is no quarantine, or an entry has expired, is unknown or doubled. Nothing is judged
            then, whatever was selected: an end that only some runs saw would be none.
    """
    quarantine = load_quarantine(workspace.root)
    problems = problems_of_quarantine(quarantine, workspace, fixtures)
    if problems:
        raise ManifestError("\n".join(map(str, problems)))
    return quarantine


def problems_of_quarantine(
    quarantine: Quarantine,
    workspace: Workspace,
    fixtures: Iterable[Fixture],
) -> tuple[LintProblem, ...]:
    """Return what is wrong with a quarantine today; manifests that could not be loaded have errors of their own."""
    platforms = {fixture.name: fixture.platforms for fixture in fixtures}
    names = {entry.fixture for entry in quarantine.entries} - platforms.keys()
    unreadable = {name for name in names if (workspace.fixtures_root / f"{name}.yaml").is_file()}
    return quarantine_problems(quarantine, platforms, today(), unreadable=unreadable)
