"""What most verbs need: the workspace, its adapter, and its fixtures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.errors import ManifestError, UsageError
from framework.manifest.load import load_all
from framework.manifest.suggest import did_you_mean
from framework.run.select import select
from framework.workspace import Workspace, load_adapter, open_workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter


@dataclass(frozen=True, slots=True)
class Opened:
    """A workspace with everything loaded; `selected` are the fixtures the command line names."""

    workspace: Workspace
    adapter: Adapter
    fixtures: Mapping[str, Fixture]
    selected: tuple[Fixture, ...]


def open_selection(arguments: argparse.Namespace, workspace: Workspace | None = None) -> Opened:
    """Load what the command line asks for, from its workspace unless that is open already.

    Raises:
        GoldenInferenceError: no root, a broken manifest, an adapter that cannot be imported, or nothing selected.
    """
    workspace = workspace or open_workspace(arguments.root, arguments.adapter)
    loaded = load_all(workspace.fixtures_root)
    if loaded.errors:
        raise ManifestError("\n".join(str(error) for error in loaded.errors))
    refuse_unknown_platform(getattr(arguments, "platform", None), loaded.fixtures)
    selected = select(loaded.fixtures, arguments.fixtures, getattr(arguments, "tags", ()))
    by_name = {fixture.name: fixture for fixture in loaded.fixtures}
    return Opened(workspace, load_adapter(workspace), by_name, selected)


def refuse_unknown_platform(platform: str | None, fixtures: Iterable[Fixture]) -> None:
    """Refuse a platform that no fixture is for, since everything would be skipped and look well.

    Raises:
        UsageError: there is no such platform; the message names those there are.
    """
    known = sorted({name for fixture in fixtures for name in fixture.platforms})
    if platform is not None and known and platform not in known:
        raise UsageError(f"no fixture is for the platform {platform!r}. {did_you_mean(platform, known)}")
