"""`golden lint`, and the part of it that other verbs do before they start an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import ExitCode, ManifestError, NothingSelectedError
from framework.manifest import lint_engine
from framework.manifest.lint import lint_with
from framework.manifest.linted import Linted, LintProblem, Severity
from framework.manifest.load import load_all
from framework.quarantine.load import load_quarantine
from framework.report.streams import out, print_json
from framework.run.adapter import ChecksFixtures, ChecksSampling
from framework.verbs.quarantined import problems_of_quarantine
from framework.workspace import Workspace, load_adapter, open_workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter
    from framework.verbs.opened import Opened


def run(arguments: argparse.Namespace) -> ExitCode:
    """Check every manifest and print every problem."""
    workspace = open_workspace(arguments.root, arguments.adapter)
    loaded = load_all(workspace.fixtures_root)
    problems = lint_with(load_adapter(workspace), loaded.fixtures, workspace.root)
    errors = [str(error) for error in loaded.errors]
    try:
        problems += problems_of_quarantine(load_quarantine(workspace.root), workspace, loaded.fixtures)
    except ManifestError as broken:
        errors.append(str(broken))
    if not (loaded.fixtures or errors or problems):
        raise NothingSelectedError(f"there is no manifest below {workspace.fixtures_root}; write one, NAME.yaml")
    failed = bool(errors) or any(problem.severity is Severity.ERROR for problem in problems)
    code = ExitCode.MALFORMED if failed else ExitCode.GOOD
    if arguments.json:
        print_json(_document(errors, problems, code))
        return code
    for error in errors:
        out(error)
    for problem in problems:
        out(f"{problem.severity}: {problem}")
    found = len(errors) + len(problems)
    out(f"{len(loaded.fixtures) + len(loaded.errors)} manifests, {found} problem{'s' if found != 1 else ''}.")
    return code


def refuse_broken_manifests(opened: Opened) -> None:
    """Raise what lint says against the manifests that are about to be used.

    Raises:
        ManifestError: at least one of them has an error.
    """
    errors = manifest_errors(opened.selected, opened.workspace, opened.adapter)
    if errors:
        raise ManifestError("\n".join(str(error) for error in errors))


def manifest_errors(fixtures: Sequence[Fixture], workspace: Workspace, adapter: Adapter) -> list[ManifestError]:
    """Return why the engine could not be asked to run these fixtures.

    Only what concerns the engine: that a fixture proves little, or has no golden, must not keep it from being judged.
    """
    linted = Linted(
        fixtures,
        workspace.root,
        adapter.describe(),
        adapter.check_settings,
        adapter.check_sampling if isinstance(adapter, ChecksSampling) else None,
        adapter.check_fixture if isinstance(adapter, ChecksFixtures) else None,
    )
    problems = [problem for rule in lint_engine.RULES for problem in rule(linted)]
    return [ManifestError(str(problem)) for problem in problems if problem.severity is Severity.ERROR]


def _document(errors: list[str], problems: Sequence[LintProblem], code: ExitCode) -> dict[str, object]:
    entries: list[dict[str, object]] = [{"severity": "error", "message": error} for error in errors]
    entries += [
        {
            "severity": problem.severity.value,
            "file": problem.file,
            "line": problem.line,
            "path": problem.path,
            "message": problem.message,
            "way_out": problem.way_out,
        }
        for problem in problems
    ]
    return {
        "schema": "golden.lint/1",
        "verdict": "PASS" if code is ExitCode.GOOD else "FAIL",
        "exit_code": int(code),
        "problems": entries,
    }
