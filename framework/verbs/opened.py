"""What most verbs need: the workspace, its adapter, and its fixtures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.errors import ManifestError
from framework.manifest.load import load_all
from framework.run.select import select
from framework.workspace import Workspace, load_adapter, open_workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter


@dataclass(frozen=True, slots=True)
class Opened:
    """A workspace with everything loaded; `selected` are the fixtures the command line names."""

    workspace: Workspace
    adapter: Adapter
    fixtures: Mapping[str, Fixture]
    selected: tuple[Fixture, ...]


def open_selection(arguments: argparse.Namespace) -> Opened:
    """Load what the command line asks for.

    Raises:
        GoldenInferenceError: no root, a broken manifest, an adapter that cannot be imported, or nothing selected.
    """
    workspace = open_workspace(arguments.root, arguments.adapter)
    loaded = load_all(workspace.fixtures_root)
    if loaded.errors:
        raise ManifestError("\n".join(str(error) for error in loaded.errors))
    selected = select(loaded.fixtures, arguments.fixtures, getattr(arguments, "tags", ()))
    by_name = {fixture.name: fixture for fixture in loaded.fixtures}
    return Opened(workspace, load_adapter(workspace), by_name, selected)
