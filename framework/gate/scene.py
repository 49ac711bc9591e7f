"""What a gate looks at: two commits, the lane, and the working tree at the head, each read once."""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framework.errors import ManifestError
from framework.gate.environment import environment
from framework.gate.history import GitHistory
from framework.gate.key import GONE, Ground
from framework.gate.lanes import LANES_FILE, Lane, Lanes, parse_lanes
from framework.gate.repository import Range, contents, files_at
from framework.gate.surface import surface
from framework.manifest.load import load_all
from framework.regenerate.today import Today
from framework.run.engine_environment import engine_environment
from framework.verbs.quarantined import quarantine_in_force
from framework.workspace import load_adapter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from framework.manifest.fixture import Fixture
    from framework.quarantine.entry import Quarantine
    from framework.run.adapter import Adapter
    from framework.workspace import Workspace


@dataclass(slots=True)
class Scene:
    """The working tree at the head: which commits, which lane, and everything that is read of it once."""

    workspace: Workspace
    adapter: Adapter
    span: Range
    lane: Lane
    lanes: tuple[Lanes, Lanes]
    files: tuple[Mapping[str, str], Mapping[str, str]]
    fixtures: Mapping[str, Fixture]
    today: Today
    history: GitHistory
    quarantine: Quarantine

    @property
    def root(self) -> Path:
        """Where fixtures and goldens lie."""
        return self.workspace.root

    def members(self) -> list[Fixture]:
        """Return the fixtures of the lane: those for its platform, without those of models that it leaves out."""
        return [
            fixture
            for _, fixture in sorted(self.fixtures.items())
            if self.lane.platform in fixture.platforms and fixture.model not in self.lane.models_left_out
        ]

    def quarantined(self, platform: str) -> dict[str, str]:
        """Return the fixtures that are in quarantine on a platform, each with what its entry says."""
        entries = (entry for entry in self.quarantine.entries if platform in entry.platforms)
        return {each.fixture: f"until {each.expires.isoformat()}, {each.owner}, {each.issue}" for each in entries}

    def _variables(self) -> dict[str, str]:
        """Return what an engine gets of the environment; where the root lies decides nothing."""
        given = engine_environment(os.environ, self.workspace.engine_environment)
        return {name: value.replace(str(self.root), "ROOT") for name, value in given.items()}

    def ground(self) -> Ground:
        """Return what the fixtures of the lane stand on."""
        hashes: dict[str, Mapping[str, str]] = {}
        by_model = {fixture.model: fixture for fixture in self.fixtures.values()}

        def model_hashes(model: str) -> Mapping[str, str]:
            if model not in hashes:
                hashes[model] = self.today.hashes(by_model[model]) or {"model": "not fetched"}
            return hashes[model]

        framework = Path(__file__).resolve().parents[1]
        below = framework.is_relative_to(self.root.resolve())
        return Ground(
            platform=self.lane.platform,
            adapter=self.workspace.adapter_spec,
            files=self.files[1],
            framework=_hashes_below(framework),
            framework_folder=framework.relative_to(self.root.resolve()).as_posix() if below else None,
            environment=environment(self._variables()),
            defaults={name: setting.default for name, setting in self.adapter.describe().items()},
            fixtures=self.fixtures,
            model_hashes=model_hashes,
            content_of=lambda path: _content_of(self.root / path),
            surface_of=functools.cache(lambda path: surface((self.root / path).read_bytes())),
        )


def always_run(scene: Scene) -> dict[str, str]:
    """Return the fixtures that are never left out, with why: what is in quarantine has to be watched."""
    quarantined = scene.quarantined(scene.lane.platform)
    return {name: f"it is in quarantine {words}" for name, words in quarantined.items()}


def open_scene(workspace: Workspace, span: Range, lane_name: str | None) -> Scene:
    """Read what a gate looks at; the working tree must be the head.

    Raises:
        ManifestError: a manifest or `gate.yaml` cannot be read, or a quarantine has expired.
        UsageError: there is no such lane, or the adapter cannot be imported.
    """
    files = files_at(workspace.root, span.since), files_at(workspace.root, span.head)
    lanes = _lanes_before(workspace.root, files[0]), _lanes(workspace.root, files[1], span.head)
    lane = lanes[1].choose(lane_name)
    loaded = load_all(workspace.fixtures_root)
    if loaded.errors:
        raise ManifestError("\n".join(str(error) for error in loaded.errors))
    adapter = load_adapter(workspace)
    fixtures = {fixture.name: fixture for fixture in loaded.fixtures}
    quarantine = quarantine_in_force(workspace, loaded.fixtures)
    today = Today(workspace, adapter, fixtures)
    return Scene(workspace, adapter, span, lane, lanes, files, fixtures, today, GitHistory(workspace.root), quarantine)


def _lanes_before(root: Path, files: Mapping[str, str]) -> Lanes:
    """Return the lanes of the base; what cannot be read there asks for nothing, so that a change can repair it."""
    try:
        return _lanes(root, files, "the base")
    except ManifestError:
        return Lanes()


def _lanes(root: Path, files: Mapping[str, str], commit: str) -> Lanes:
    data = contents(root, files, [LANES_FILE]).get(LANES_FILE)
    return parse_lanes(data, f"{LANES_FILE} at {commit[:12]}")


def _hashes_below(folder: Path) -> dict[str, str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {f"framework/{path.relative_to(folder).as_posix()}": _content_of(path) for path in paths}


def _content_of(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return GONE
