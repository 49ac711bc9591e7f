"""Test items of the pytest plugin, imported once there is a manifest to collect."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from framework.errors import GoldenInferenceError, internal_error
from framework.judge import Outcome, Verdict
from framework.manifest.load import load_all, load_manifest
from framework.redact import redacted
from framework.report.neutral import neutral
from framework.report.pytest_summary import outcome_text
from framework.report.text import outcome_lines
from framework.run.session import Session
from framework.run.subprocess_runner import SubprocessRunner
from framework.verbs.lint_manifests import manifest_errors
from framework.verbs.opened import refuse_unknown_platform
from framework.verbs.quarantined import quarantine_in_force
from framework.workspace import load_adapter, open_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from framework.manifest.fixture import Fixture

_SESSIONS = "golden-sessions"


class FixtureFailedError(Exception):
    """A fixture that did not pass; its outcome is what is shown."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.fixture)
        self.outcome = outcome


class Sessions:
    """One session, and so one engine, for each root that this process runs fixtures of."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._by_root: dict[Path, Session] = {}

    @classmethod
    def of(cls, config: pytest.Config) -> Sessions:
        """Return the sessions of this process, which end with pytest's run."""
        found = config.pluginmanager.get_plugin(_SESSIONS)
        if found is None:
            found = cls(config)
            config.pluginmanager.register(found, _SESSIONS)
        assert isinstance(found, cls), "nobody else takes this name"
        return found

    def session(self, root: Path) -> Session:
        """Return the session for a root."""
        if root not in self._by_root:
            workspace = open_workspace(root, self._config.getini("golden_adapter") or None)
            loaded = load_all(workspace.fixtures_root).fixtures
            platform = self._config.getoption("--golden-platform")
            refuse_unknown_platform(platform, loaded)
            fixtures = {fixture.name: fixture for fixture in loaded}
            adapter = load_adapter(workspace)
            runner = SubprocessRunner(workspace)
            quarantine = quarantine_in_force(workspace, loaded)
            self._by_root[root] = Session(workspace, adapter, runner, fixtures, platform, quarantine)
        return self._by_root[root]

    def close(self) -> None:
        """End all engines."""
        for session in self._by_root.values():
            session.runner.close()
        self._by_root.clear()


class ManifestFile(pytest.File):
    """A manifest; it holds one item, named like its fixture."""

    root: Path

    @classmethod
    def make(cls, parent: pytest.Collector, path: Path, root: Path) -> ManifestFile:
        """Return the collector for a manifest of a root."""
        node: ManifestFile = cls.from_parent(parent, path=path)
        node.root = root
        return node

    def collect(self) -> list[FixtureItem]:
        """Load the manifest and its engine's adapter.

        A manifest, an adapter or an option that is broken is a collection error with place and way out.
        """
        try:
            fixture = load_manifest(self.path, fixtures_root=self.root / "fixtures")
            Sessions.of(self.config).session(self.root)
        except GoldenInferenceError as error:
            raise self.CollectError(neutral(redacted(str(error)))) from None
        except Exception as error:
            raise self.CollectError(internal_error(error)) from error
        return [FixtureItem.make(self, fixture, self.root)]


class FixtureItem(pytest.Item):
    """One fixture, run and judged."""

    fixture: Fixture
    root: Path
    golden_outcome: str | None = None

    @classmethod
    def make(cls, parent: ManifestFile, fixture: Fixture, root: Path) -> FixtureItem:
        """Return the item for a fixture; its tags can be selected with `-k`."""
        item: FixtureItem = cls.from_parent(parent, name=fixture.name)
        item.fixture = fixture
        item.root = root
        item.extra_keyword_matches.update(fixture.tags)
        return item

    def runtest(self) -> None:
        """Run the fixture and judge it."""
        session = Sessions.of(self.config).session(self.root)
        errors = manifest_errors([self.fixture], session.workspace, session.adapter)
        if errors:
            raise errors[0]
        outcome = session.run_one(self.fixture)
        self.golden_outcome = outcome_text(outcome, session.fixtures)
        self.user_properties += [("golden_verdict", outcome.verdict.value), ("golden_compared", outcome.compared)]
        if outcome.verdict is Verdict.SKIP:
            pytest.skip(outcome.reason)
        if outcome.verdict is Verdict.QUARANTINED:
            assert outcome.quarantine is not None, "an entry has excused it"
            pytest.xfail(neutral(redacted(outcome.quarantine.in_words())))  # with --runxfail it goes on, and fails
        if outcome.verdict is not Verdict.PASS:
            raise FixtureFailedError(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show what `golden run` shows, and one line for a fault of the framework itself.

        `GOLDEN_DEBUG=1` adds its traceback.
        """
        if isinstance(excinfo.value, FixtureFailedError):
            return neutral(redacted("\n".join(outcome_lines(excinfo.value.outcome))))
        if isinstance(excinfo.value, GoldenInferenceError):
            return neutral(redacted(str(excinfo.value)))
        if isinstance(excinfo.value, Exception) and os.environ.get("GOLDEN_DEBUG") != "1":
            return internal_error(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the item by its fixture."""
        return self.path, None, self.name
