"""The pytest plugin: every manifest under `fixtures/` is a test item.

It is loaded into every pytest run of an environment it is installed in, so it does nothing, and imports nothing, until
pytest looks at a YAML file under the `fixtures/` of a folder that also has `goldens/`. It never writes a golden.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_OUTCOME = "golden_outcome"
_COLLECTED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the `--golden*` options."""
    group = parser.getgroup("golden", "golden-value fixtures")
    group.addoption(
        "--golden",
        choices=("check",),
        default="check",
        help="what to do with fixtures: check them against their goldens",
    )
    group.addoption("--golden-platform", metavar="NAME", help="run fixtures on this platform only")
    group.addoption("--golden-report", metavar="FILE", help="write a golden.run/1 JSON document there")
    parser.addini("golden_adapter", "the engine to judge, as module:Class (default: as for `golden run`)")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the list of outcomes; the controller of a distributed run is the only one that fills it."""
    config.stash[_COLLECTED] = []
    target = config.getoption("--golden-report")
    if target is not None:
        store = importlib.import_module("framework.golden.store")
        why = store.why_not_writable(Path(target)) if target else "it is empty"
        if why:
            raise pytest.UsageError(f"--golden-report {target}: it cannot be written: {why}; choose another file")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a manifest as a test file."""
    root = root_of_manifest(file_path)
    if root is None:
        return None
    items = importlib.import_module("framework.pytest_items")
    return items.ManifestFile.make(parent, file_path, root)  # type: ignore[no-any-return]


def root_of_manifest(path: Path) -> Path | None:
    """Return the root whose manifest this file is, or None if it is none: models and hidden files are not."""
    if path.suffix not in (".yaml", ".yml"):
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
    entry = getattr(item, _OUTCOME, None)
    if entry is not None:
        setattr(result.get_result(), _OUTCOME, entry)


class _Controller:
    """Collects outcomes where reports arrive: in the controller, or in the only process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        entry = getattr(report, _OUTCOME, None)
        if entry is not None and report.when == "call":
            self._config.stash[_COLLECTED].append(entry)


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
    """Say what drifted and how many values were compared; write the report that was asked for."""
    outcomes, target = config.stash[_COLLECTED], config.getoption("--golden-report")
    if not outcomes and target is None:
        return
    summary = importlib.import_module("framework.report.pytest_summary")
    terminalreporter.section("golden")
    for line in summary.summary_lines(outcomes):
        terminalreporter.line(line)
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
