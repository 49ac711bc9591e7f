"""`golden prune`: remove goldens that nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import ExitCode, GoldenError, ManifestError, NothingSelectedError
from framework.golden.lock import writer_lock
from framework.manifest.load import load_all
from framework.regenerate.candidates import remove_files
from framework.regenerate.prune import Prunable, prunable
from framework.report.streams import log, out, print_json
from framework.verbs.consent import agreed, refuse_under_ci, refuse_without_an_answer
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from framework.workspace import Workspace


def run(arguments: argparse.Namespace) -> ExitCode:
    """Remove goldens whose fixture is gone, or does not name their platform; only if every manifest could be read."""
    refuse_under_ci("a person prunes goldens, and commits what goes")
    refuse_without_an_answer(arguments)
    workspace = open_workspace(arguments.root, arguments.adapter)
    found = _find(workspace)
    if not arguments.json:
        for golden in found.goldens:
            out(f"{golden.path}: {golden.reason}")
    for link in found.not_followed:
        log(f"golden: {link}: a link to a folder, not followed; nothing in it is removed")
    removed: list[Path] = []
    if found.goldens and agreed(arguments, f"remove {len(found.goldens)} golden(s)?"):
        removed = _remove(workspace, found)
    if arguments.json:
        document = {
            "schema": "golden.prune/1",
            "verdict": "PASS",
            "exit_code": int(ExitCode.GOOD),
            "goldens": [{"path": str(golden.path), "reason": golden.reason} for golden in found.goldens],
            "not_followed": [str(path) for path in found.not_followed],
            "removed": [str(path) for path in removed],
        }
        print_json(document)
    elif removed:
        out(f"removed {len(removed)} golden(s). Next: review the difference in version control, and commit it.")
    else:
        out("nothing was removed." if found.goldens else "every golden is read by a fixture; nothing to remove.")
    return ExitCode.GOOD


def _find(workspace: Workspace) -> Prunable:
    """Find what may go.

    Raises:
        ManifestError: a manifest could not be read, so its golden would look like one that nobody reads.
        NothingSelectedError: there is no manifest at all.
        GoldenError: a folder of goldens cannot be read.
    """
    loaded = load_all(workspace.fixtures_root)
    if loaded.errors:
        errors = "\n".join(str(error) for error in loaded.errors)
        raise ManifestError(f"{errors}\nnothing was removed: the golden of a manifest that cannot be read looks unread")
    if not loaded.fixtures:
        raise NothingSelectedError(
            f"there is no manifest below {workspace.fixtures_root}, so every golden would go; nothing was removed",
        )
    try:
        return prunable(workspace.goldens_root, loaded.fixtures)
    except OSError as error:
        raise GoldenError(f"{error.filename}: cannot be read: {error.strerror or error}; make it readable") from None


def _remove(workspace: Workspace, found: Prunable) -> list[Path]:
    """Remove, under the writer's lock, what was shown and is still unread."""
    with writer_lock(workspace.state_folder):
        still = {golden.path for golden in _find(workspace).goldens}
        paths = [golden.path for golden in found.goldens if golden.path in still]
        remove_files(paths, workspace.goldens_root)
    return paths
