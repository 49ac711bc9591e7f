"""The pytest plugin: every manifest under `fixtures/` is a test item.

It is loaded into every pytest run of an environment it is installed in, so it does nothing, and imports nothing, until
pytest looks at a YAML file under the `fixtures/` of a folder that also has `goldens/`. It never writes a golden.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_OUTCOME = "golden_outcome"
_PROPOSAL = "golden_proposal"
_COLLECTED = pytest.StashKey[list[str]]()
_PROPOSED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the `--golden*` options."""
    group = parser.getgroup("golden", "golden-value fixtures")
    group.addoption(
        "--golden",
        choices=("check", "candidates"),
        default="check",
        help="check fixtures against their goldens; candidates: also prove new goldens for those that differ, and keep"
        " them under .golden/ for `golden review` (a difference stays a failure)",
    )
    group.addoption("--golden-platform", metavar="NAME", help="run fixtures on this platform only")
    group.addoption("--golden-report", metavar="FILE", help="write a golden.run/1 JSON document there")
    parser.addini("golden_adapter", "the engine to judge, as module:Class (default: as for `golden run`)")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the list of outcomes; the controller of a distributed run is the only one that fills it."""
    config.addinivalue_line("markers", "golden: a golden-value fixture; each of its tags is a marker too")
    config.stash[_COLLECTED] = []
    config.stash[_PROPOSED] = []
    target = config.getoption("--golden-report")
    if target is not None:
        store = importlib.import_module("framework.golden.store")
        why = store.why_not_writable(Path(target), config.rootpath) if target else "it is empty"
        if why:
            raise pytest.UsageError(f"--golden-report {target}: it cannot be written: {why}; choose another file")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a manifest as a test file."""
    root = root_of_manifest(file_path)
    if root is None:
        return None
    items = importlib.import_module("framework.pytest_items")
    return items.ManifestFile.make(parent, file_path, root)  # type: ignore[no-any-return]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a folder of manifests that nobody looks into, as the error that it is."""
    root = root_of_manifest(path / "any.yaml")
    if root is None or not (path.is_symlink() or not os.access(path, os.R_OK | os.X_OK)):
        return None
    items = importlib.import_module("framework.pytest_items")
    return items.broken_folder(parent, path, root)  # type: ignore[no-any-return]


def root_of_manifest(path: Path) -> Path | None:
    """Return the root whose manifest this file is, or None if it is none: models and hidden files are not."""
    if path.suffix.lower() not in (".yaml", ".yml"):
        return None
    for folder in path.parents:
        if folder.name == "fixtures" and (folder.parent / "goldens").is_dir():
            inside = path.relative_to(folder).parts
            is_manifest = inside[0] != "models" and not any(part.startswith(".") for part in inside)
            return folder.parent if is_manifest else None
    return None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Attach a fixture's outcome to its report, which travels from a worker to the controller."""
    result = yield
    for name in (_OUTCOME, _PROPOSAL):
        if (entry := getattr(item, name, None)) is not None:
            setattr(result.get_result(), name, entry)


class _Controller:
    """Collects outcomes where reports arrive: in the controller, or in the only process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        if (outcome := getattr(report, _OUTCOME, None)) is not None:
            self._config.stash[_COLLECTED].append(outcome)
        if (proposed := getattr(report, _PROPOSAL, None)) is not None:
            self._config.stash[_PROPOSED].append(proposed)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Listen to reports, in the controller only."""
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Controller(session.config), "golden-controller")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a run that skipped every fixture and passed nothing end as one without tests, never as a good one."""
    outcomes = session.config.stash[_COLLECTED]
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    passed = terminal is not None and terminal.stats.get("passed")
    if session.exitstatus == pytest.ExitCode.OK and outcomes and not passed:
        summary = importlib.import_module("framework.report.pytest_summary")
        if summary.all_skipped(outcomes):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what drifted, what did not pass, and how many values were compared; write what was asked for."""
    outcomes, target = config.stash[_COLLECTED], config.getoption("--golden-report")
    if not outcomes and target is None:
        return
    summary = importlib.import_module("framework.report.pytest_summary")
    terminalreporter.section("golden")
    for line in summary.summary_lines(outcomes):
        terminalreporter.line(line)
    if proposed := config.stash[_PROPOSED]:
        candidates = importlib.import_module("framework.pytest_candidates")
        proposals = [candidates.Proposal.from_text(text) for text in proposed]
        for line in candidates.keep(proposals, config.getini("golden_adapter") or None):
            terminalreporter.line(summary.neutral(line))
    if target is not None:
        try:
            summary.write_report(Path(target), outcomes)
        except OSError as error:
            terminalreporter.line(f"--golden-report {target}: it could not be written: {error.strerror or error}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the engines that this process started."""
    plugin = config.pluginmanager.get_plugin("golden-sessions")
    if plugin is not None:
        plugin.close()
