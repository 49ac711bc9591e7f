"""What one pytest process needs to run fixtures: a session and so an engine for each root, opened once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from framework.errors import GoldenInferenceError
from framework.manifest.find import find_manifests
from framework.manifest.load import load_all
from framework.regenerate.candidates import candidates_folder
from framework.regenerate.propose import Proposer
from framework.run.session import Session
from framework.run.subprocess_runner import SubprocessRunner
from framework.verbs.opened import refuse_unknown_platform
from framework.verbs.quarantined import quarantine_in_force
from framework.workspace import load_adapter, open_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pytest

    from framework.manifest.find import FoundManifests
    from framework.manifest.fixture import Fixture

_PLUGIN = "golden-sessions"


@dataclass(slots=True)
class Sessions:
    """One session, and so one engine, for each root that this process runs fixtures of; it ends with pytest's run."""

    config: pytest.Config
    _by_root: dict[Path, Session | GoldenInferenceError] = field(default_factory=dict)
    _found: dict[Path, FoundManifests] = field(default_factory=dict)
    _proposers: dict[Path, Proposer] = field(default_factory=dict)
    _groups: dict[Path, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, config: pytest.Config) -> Sessions:
        """Return the sessions of this process."""
        found = config.pluginmanager.get_plugin(_PLUGIN)
        if found is None:
            found = cls(config)
            config.pluginmanager.register(found, _PLUGIN)
        assert isinstance(found, cls), "nobody else takes this name"
        return found

    def session(self, root: Path) -> Session:
        """Return the session for a root.

        Raises:
            GoldenInferenceError: its configuration, quarantine, adapter or platform is one that nothing can run with.
        """
        if root not in self._by_root:
            try:
                self._by_root[root] = self._open(root)
            except GoldenInferenceError as error:
                self._by_root[root] = error
        found = self._by_root[root]
        if isinstance(found, GoldenInferenceError):
            raise found
        return found

    def found(self, root: Path) -> FoundManifests:
        """Return what lies below the fixtures of a root, looked at once."""
        if root not in self._found:
            self._found[root] = find_manifests(root / "fixtures")
        return self._found[root]

    def proposer(self, root: Path) -> Proposer:
        """Return what proves the fixtures of a root, for candidates."""
        if root not in self._proposers:
            session = self.session(root)
            self._proposers[root] = Proposer(session, candidates_folder(session.workspace))
        return self._proposers[root]

    def group(self, root: Path, fixture: Fixture) -> str:
        """Return the name of those that one worker should run: they share models, or are related."""
        if root not in self._groups:
            self._groups[root] = groups(self.session(root).fixtures.values())
        return self._groups[root].get(fixture.name, fixture.model)

    def close(self) -> None:
        """End all engines."""
        for session in self._by_root.values():
            if isinstance(session, Session):
                session.runner.close()
        for proposer in self._proposers.values():
            proposer.close()
        self._by_root.clear()
        self._proposers.clear()

    def _open(self, root: Path) -> Session:
        workspace = open_workspace(root, self.config.getini("golden_adapter") or None)
        loaded = load_all(workspace.fixtures_root).fixtures
        platform = self.config.getoption("--golden-platform")
        refuse_unknown_platform(platform, loaded)
        fixtures = {fixture.name: fixture for fixture in loaded}
        quarantine = quarantine_in_force(workspace, loaded)
        return Session(workspace, load_adapter(workspace), SubprocessRunner(workspace), fixtures, platform, quarantine)


def groups(fixtures: Iterable[Fixture]) -> dict[str, str]:
    """Return, by fixture, the name of its group: fixtures are in one if they share a model or a relation.

    A group is named by the first of its models.
    """
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while (above := leader.setdefault(name, name)) != name:
            name = above
        return name

    def join(one: str, other: str) -> None:
        first, second = sorted((find(one), find(other)))
        leader[second] = first

    every = {fixture.name: fixture for fixture in fixtures}
    for fixture in every.values():
        for relation in fixture.relations:
            if relation.other in every:
                join(fixture.model, every[relation.other].model)
    return {fixture.name: find(fixture.model) for fixture in every.values()}
