"""`golden gate verdict`: what shards found, merged into the one verdict of a head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.errors import ExitCode, GoldenError
from framework.gate.merge import merged
from framework.gate.passes import read_passes, write_passes
from framework.gate.verdict import markdown_summary
from framework.golden.codec import read_json
from framework.report.streams import log
from framework.verbs.gate_run import VERDICT_FILE, append_summary, refuse_outputs, show, write_verdict
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from pathlib import Path


def run(arguments: argparse.Namespace) -> ExitCode:
    """Merge every `*.json` verdict below the folders, write the whole one, print its summary."""
    workspace = open_workspace(arguments.root, arguments.adapter)
    refuse_outputs(arguments, workspace, "verdict", "summary", "state")
    path = arguments.verdict or workspace.state_folder / VERDICT_FILE
    documents = {str(found): _read(found) for found in _found(arguments.folders)}
    document = merged(documents, arguments.head, arguments.lane)
    write_verdict(path, document)
    if arguments.summary is not None:
        append_summary(arguments.summary, markdown_summary(document))
    if arguments.state is not None and document["exit_code"] == 0:
        _keep(arguments.state, arguments.folders)
    show(document, as_json=arguments.json)
    return ExitCode(document["exit_code"])


def _keep(path: Path, folders: Iterable[Path]) -> None:
    """Keep what the shards of a green head passed; where that fails, later gates run more, and the verdict stands."""
    passes = read_passes(path)
    for found in sorted({each for folder in folders for each in folder.rglob("*passes*.json") if each.is_file()}):
        passes = passes.with_more(read_passes(found).known)
    try:
        write_passes(path, passes)
    except OSError as error:
        log(f"golden: --state {path}: the passes could not be kept: {error.strerror or error}")


def _found(folders: Iterable[Path]) -> list[Path]:
    """Return the verdicts below folders; passes that lie beside them are none."""
    paths: set[Path] = set()
    for folder in folders:
        paths |= {folder} if folder.is_file() else {path for path in folder.rglob("*verdict*.json") if path.is_file()}
    return sorted(paths)


def _read(path: Path) -> Any:
    """Return what a file says; one that cannot be read says nothing, and so is no verdict."""
    try:
        return read_json(path)
    except GoldenError:
        return None
