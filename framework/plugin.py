"""The pytest plugin: every manifest under `fixtures/` is a test item.

It is loaded into every pytest run of an environment it is installed in, so it does nothing, and imports nothing, until
pytest comes to a `fixtures/` with YAML files in a folder that also has `goldens/`. It never writes a golden, and
what it does write (a report, candidates, the last verdicts) is written by one process, the controller of a distributed
run.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_HEARD = ("golden_outcome", "golden_proposal", "golden_error")
"""What an item leaves to be attached to its report, which travels from a worker to the controller; texts."""

_MARKERS = (
    "golden(tag, platform, model): a fixture of golden-inference; one such marker for each of its tags and platforms"
)
_SUFFIXES = (".yaml", ".yml")
_DURATIONS = "golden_durations"
_RECORDED = pytest.StashKey[dict[str, dict[str, float]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the `--golden*` options."""
    group = parser.getgroup("golden", "golden-value fixtures")
    group.addoption(
        "--golden",
        choices=("check", "candidates"),
        default="check",
        help="check fixtures against their goldens; `candidates` also proves what does not hold, and keeps it outside"
        " goldens/ for `golden review` and `golden accept`",
    )
    group.addoption(
        "--golden-out",
        metavar="DIR",
        help="with --golden=candidates, keep candidates there (default: .golden/candidates; needed where CI is set)",
    )
    group.addoption("--golden-platform", metavar="NAME", help="run fixtures on this platform only")
    group.addoption(
        "--golden-require-device",
        nargs="?",
        const="",
        metavar="NAME",
        help="fail unless fixtures ran on a device (of this platform) and none of its fixtures was skipped",
    )
    group.addoption("--golden-report", metavar="FILE", help="write a golden.run/1 JSON document there")
    parser.addini("golden_adapter", "the engine to judge, as module:Class (default: as for `golden run`)")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker that every fixture has, and refuse options that could not be fulfilled."""
    config.addinivalue_line("markers", _MARKERS)
    if any(config.getoption(name) is not None for name in ("--golden-report", "--golden-out")) or (
        config.getoption("--golden") != "check"
    ):
        importlib.import_module("framework.pytest_controller").refuse_options(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of a distributed run how long fixtures took; all must be told the same, to order them alike."""
    config = node.config
    if _RECORDED not in config.stash:
        paths = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
        roots = {
            root for path in paths for root in (root_of_folder(path), path) if root and (root / "goldens").is_dir()
        }
        order = importlib.import_module("framework.pytest_order") if roots else None
        config.stash[_RECORDED] = order.recorded(roots) if order else {}
    node.workerinput[_DURATIONS] = config.stash[_RECORDED]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a worker of a distributed run, put the fixtures first that take longest, those of a model together."""
    durations = getattr(config, "workerinput", {}).get(_DURATIONS)
    if durations:
        importlib.import_module("framework.pytest_order").put_longest_first(items, durations)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Listen to reports, in the only process or the controller."""
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Listener(session.config), "golden-listener")


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a folder of manifests, and say what in it would never be run."""
    root = root_of_folder(path)
    if root is None or (path / "__init__.py").is_file():
        return None
    if path != root / "fixtures":
        if getattr(parent, "root", None) != root:  # the folder above is none of ours
            return None
    elif not importlib.import_module("framework.manifest.find").find_manifests(path).paths:
        return None
    items = importlib.import_module("framework.pytest_items")
    return items.ManifestFolder.make(parent, path, root)  # type: ignore[no-any-return]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a manifest as a test file."""
    root = root_of_manifest(file_path)
    if root is None:
        return None
    items = importlib.import_module("framework.pytest_items")
    return items.ManifestFile.make(parent, file_path, root)  # type: ignore[no-any-return]


def root_of_manifest(path: Path) -> Path | None:
    """Return the root whose manifest this file is, or is meant to be; None for models, hidden and other files."""
    return root_of_folder(path.parent) if path.suffix.lower() in _SUFFIXES and path.name[0] != "." else None


def root_of_folder(path: Path) -> Path | None:
    """Return the root whose `fixtures/` this is, or holds this folder; None for models, hidden and other folders."""
    for folder in (path, *path.parents):
        if folder.name == "fixtures" and (folder.parent / "goldens").is_dir():
            inside = path.relative_to(folder).parts
            holds_manifests = inside[:1] != ("models",) and not any(part.startswith(".") for part in inside)
            return folder.parent if holds_manifests else None
    return None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Attach what an item has to say to its report."""
    result = yield
    report = result.get_result()
    _attach(item, report)
    if hasattr(item, _HEARD[0]) and report.nodeid != item.nodeid:
        report.nodeid = item.nodeid  # with the group that `--dist loadgroup` gave it, by which xdist knows it


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, None]:
    """Attach why a manifest could not be collected to its report."""
    result = yield
    _attach(collector, result.get_result())


def _attach(node: pytest.Item | pytest.Collector, report: pytest.TestReport | pytest.CollectReport) -> None:
    for name in _HEARD:
        if (text := getattr(node, name, None)) is not None:
            setattr(report, name, text)


class _Listener:
    """Hears reports where they arrive, and hands on those of fixtures, so that others cost nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._controller: Any = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self._hear(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._hear(report)

    def _hear(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        is_of_a_fixture = any(hasattr(report, name) for name in _HEARD)
        manifest = self._config.rootpath / report.nodeid.partition("::")[0]
        if is_of_a_fixture or (report.failed and root_of_manifest(manifest) is not None):
            self._of_fixtures().hear(report)

    def _of_fixtures(self) -> Any:
        if self._controller is None:
            self._controller = importlib.import_module("framework.pytest_controller").Controller(self._config)
        return self._controller

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write what was asked for.

        A run that skipped every fixture and passed nothing ends as one without tests, never as a good one.
        """
        asked = any(self._config.getoption(name) is not None for name in ("--golden-report", "--golden-require-device"))
        if asked or self._controller is not None:
            self._of_fixtures().finish()
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        passed = terminal is not None and terminal.stats.get("passed")
        nothing_ran = self._controller is not None and self._controller.all_skipped() and not passed
        if session.exitstatus == pytest.ExitCode.OK and nothing_ran:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        if session.exitstatus == pytest.ExitCode.OK and self._controller is not None and self._controller.unmet():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what drifted, what failed and the worst first, which candidates wait, and how much was compared."""
        if self._controller is not None:
            terminalreporter.section("golden")
            for line in self._controller.lines():
                terminalreporter.line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the engines that this process started."""
    plugin = config.pluginmanager.get_plugin("golden-sessions")
    if plugin is not None:
        plugin.close()
