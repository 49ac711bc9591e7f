"""Test items of the pytest plugin, imported once there is a manifest to collect."""

from __future__ import annotations

import fnmatch
import os
from typing import TYPE_CHECKING, Any

import pytest

from framework.errors import GoldenInferenceError, ManifestError, internal_error
from framework.judge import Outcome, Verdict
from framework.manifest.load import load_manifest
from framework.plugin import root_of_folder
from framework.pytest_proposal import may_be_proposed, proposal_text
from framework.pytest_sessions import Sessions
from framework.redact import redacted
from framework.report.junit import properties_of
from framework.report.neutral import neutral
from framework.report.pytest_summary import error_text, outcome_text
from framework.report.text import outcome_lines
from framework.verbs.lint_manifests import manifest_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from framework.manifest.fixture import Fixture

_WORDS_OF_EXPRESSIONS = frozenset({"and", "or", "not"})


class FixtureFailedError(Exception):
    """A fixture that did not pass; its outcome is what is shown."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.fixture)
        self.outcome = outcome


class _Place(pytest.Collector):
    """A place below the fixtures of a root; what is wrong with it is a collection error, in words."""

    root: Path
    golden_error: str | None = None

    @classmethod
    def make(cls, parent: pytest.Collector, path: Path, root: Path) -> _Place:
        """Return the collector for a place."""
        node: _Place = cls.from_parent(parent, path=path)
        node.root = root
        return node

    def refuse(self, error: Exception) -> pytest.Collector.CollectError:
        """Return the collection error that says what `error` says."""
        self.golden_error = error_text(error)
        known = isinstance(error, GoldenInferenceError)
        return self.CollectError(neutral(redacted(str(error) if known else internal_error(error))))


class ManifestFolder(_Place, pytest.Directory):
    """A folder of manifests.

    Everything that `golden run` would run is collected, also from a folder whose name (`build`, `dist`) keeps pytest
    from looking into others; what would never be run is an error, as it is for `golden run`.
    """

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Collect what lies in this folder; the first one opens the session, so that its faults are said once."""
        if self.path == self.root / "fixtures":
            self._open_session()
        never_run = {each.path: each.error for each in Sessions.of(self.config).found(self.root).never_run}
        if self.path in never_run:
            raise self.refuse(never_run[self.path])
        entries = sorted(self.path.iterdir(), key=lambda path: path.name)
        for path in entries:
            if path.is_dir():
                if self._is_wanted(path):
                    folder = self.ihook.pytest_collect_directory(path=path, parent=self)
                    yield from () if folder is None else (folder,)
            elif path.is_file():
                if self._is_wanted(path):
                    yield from self.ihook.pytest_collect_file(file_path=path, parent=self)
            elif path in never_run:
                yield NeverRunPlace.make(self, path, self.root)

    def _open_session(self) -> None:
        try:
            Sessions.of(self.config).session(self.root)
        except GoldenInferenceError as error:
            raise self.refuse(error) from None
        except Exception as error:
            raise self.refuse(error) from error

    def _is_wanted(self, path: Path) -> bool:
        if self.session.isinitpath(path, with_parents=True):
            return True
        ignored: bool | None = self.ihook.pytest_ignore_collect(collection_path=path, config=self.config)
        return not ignored or self._is_ignored_by_name_alone(path)

    def _is_ignored_by_name_alone(self, path: Path) -> bool:
        """Say whether pytest passes over a folder only since folders of its name seldom hold tests; here some do."""
        names = (pattern for pattern in self.config.getini("norecursedirs") if "/" not in pattern)
        if not path.is_dir() or not any(fnmatch.fnmatch(path.name, pattern) for pattern in names):
            return False
        given = [*(self.config.getoption("ignore") or ()), *(self.config.getoption("ignore_glob") or ())]
        here = self.config.invocation_params.dir
        asked = any(fnmatch.fnmatch(str(path), str(here / pattern)) for pattern in given)
        holds = root_of_folder(path) is not None and any(
            manifest.is_relative_to(path) for manifest in Sessions.of(self.config).found(self.root).paths
        )
        return holds and not asked


class NeverRunPlace(_Place, pytest.File):
    """A place that would never be run, and that pytest would pass over without a word."""

    def collect(self) -> Iterable[pytest.Item]:
        """Refuse."""
        found = Sessions.of(self.config).found(self.root).never_run
        raise self.refuse(next(each.error for each in found if each.path == self.path))


class ManifestFile(_Place, pytest.File):
    """A manifest; it holds one item, named like its fixture."""

    def collect(self) -> list[FixtureItem]:
        """Take the manifest from the session, which read them all; a broken one is read again, to say what is wrong."""
        fixtures_root = self.root / "fixtures"
        name = self.path.relative_to(fixtures_root).with_suffix("").as_posix()
        try:
            fixture = Sessions.of(self.config).session(self.root).fixtures.get(name)
            if fixture is None or fixture.path != self.path:
                fixture = load_manifest(self.path, fixtures_root=fixtures_root)
        except GoldenInferenceError as error:
            raise self.refuse(error) from None
        except Exception as error:
            raise self.refuse(error) from error
        return [FixtureItem.make(self, fixture, self.root)]


class FixtureItem(pytest.Item):
    """One fixture, run and judged.

    `golden_outcome`, `golden_proposal` and `golden_error` are what its report carries to the controller.
    """

    fixture: Fixture
    root: Path
    golden_outcome: str | None = None
    golden_proposal: str | None = None
    golden_error: str | None = None

    @classmethod
    def make(cls, parent: ManifestFile, fixture: Fixture, root: Path) -> FixtureItem:
        """Return the item for a fixture, with its markers."""
        item: FixtureItem = cls.from_parent(parent, name=fixture.name)
        item.fixture = fixture
        item.root = root
        item._mark()
        return item

    def _mark(self) -> None:
        """Make the fixture selectable, and keep those that share a model on one worker of `--dist loadgroup`.

        A tag is a marker of its own name, unless that is a word of pytest's: `skip` would skip.
        """
        fixture = self.fixture
        self.extra_keyword_matches.update(fixture.tags)
        for platform in fixture.platforms:
            self.add_marker(pytest.mark.golden(platform=platform, model=fixture.model))
        taken = {line.partition(":")[0].strip() for line in self.config.getini("markers")}
        acting = {name.partition("(")[0] for name in taken if "(" in name}
        for tag in fixture.tags:
            self.add_marker(pytest.mark.golden(tag=tag))
            if tag not in acting | _WORDS_OF_EXPRESSIONS:
                if tag not in taken:
                    self.config.addinivalue_line("markers", f"{tag}: fixtures with this tag")
                self.add_marker(tag)
        if self.config.pluginmanager.hasplugin("xdist"):
            self.add_marker(pytest.mark.xdist_group(Sessions.of(self.config).group(self.root, fixture)))

    @property
    def nodeid(self) -> str:
        """The item's id, with the group that pytest-xdist adds to it under `--dist loadgroup`.

        xdist 3.8 writes the group to `_nodeid`, which pytest reads no more from 9.2 on: nothing would be grouped. The
        reports get the same id (`framework.plugin`), since xdist holds the two against each other.
        """
        with_group = getattr(self, "_nodeid", None)
        return with_group if isinstance(with_group, str) else super().nodeid

    def runtest(self) -> None:
        """Run the fixture and judge it; with `--golden=candidates` prove what does not hold."""
        self.golden_outcome = self.golden_proposal = self.golden_error = None
        session = Sessions.of(self.config).session(self.root)
        if errors := manifest_errors([self.fixture], session.workspace, session.adapter):
            raise ManifestError("\n".join(map(str, errors)))
        outcome = session.run_one(self.fixture, self._selected() if self.fixture.relations else ())
        self.golden_outcome = outcome_text(outcome, session.fixtures, self.root)
        self._record_properties(outcome)
        if self.config.getoption("--golden") == "candidates" and may_be_proposed(outcome):
            self.golden_proposal = proposal_text(Sessions.of(self.config).proposer(self.root), outcome)
        if outcome.verdict is Verdict.SKIP:
            pytest.skip(outcome.reason)
        if outcome.verdict is Verdict.QUARANTINED and outcome.quarantine is not None:
            pytest.xfail(neutral(redacted(outcome.quarantine.in_words())))
        if outcome.verdict is not Verdict.PASS:
            raise FixtureFailedError(outcome)

    def _selected(self) -> set[str]:
        return {item.fixture.name for item in self.session.items if isinstance(item, FixtureItem)}

    def _record_properties(self, outcome: Outcome) -> None:
        """Leave what a JUnit report says beside the result; an item that is run again says it once."""
        new = {f"golden_{'path' if name == 'golden' else name}": value for name, value in properties_of(outcome)}
        self.user_properties[:] = [pair for pair in self.user_properties if not pair[0].startswith("golden_")]
        self.user_properties.extend(new.items())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show what `golden run` shows, and one line for a fault of the framework itself.

        `GOLDEN_DEBUG=1` adds its traceback.
        """
        if isinstance(excinfo.value, FixtureFailedError):
            return neutral(redacted("\n".join(outcome_lines(excinfo.value.outcome))))
        if isinstance(excinfo.value, Exception):
            self.golden_error = error_text(excinfo.value)
        if isinstance(excinfo.value, GoldenInferenceError):
            return neutral(redacted(str(excinfo.value)))
        if isinstance(excinfo.value, Exception) and os.environ.get("GOLDEN_DEBUG") != "1":
            return neutral(redacted(internal_error(excinfo.value)))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the item by its fixture."""
        return self.path, None, self.name
