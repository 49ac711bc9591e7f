"""`golden gate plan`: the shards of a lane, as a matrix that GitHub Actions takes as it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from framework.errors import ExitCode, GoldenError, NothingSelectedError, UsageError
from framework.gate.passes import read_passes
from framework.gate.plan import DEFAULT_SECONDS, Load, matrix, recorded_seconds, shards
from framework.gate.repository import resolve
from framework.gate.scene import always_run, open_scene
from framework.gate.select import decide
from framework.golden.codec import read_json
from framework.report.streams import out
from framework.verbs.gate_run import PASSES_FILE
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from pathlib import Path


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print the matrix on one line, so that it can be an output of a job."""
    workspace = open_workspace(arguments.root, arguments.adapter)
    scene = open_scene(workspace, resolve(workspace.root, "HEAD", "HEAD"), arguments.lane)
    passes = read_passes(arguments.state or workspace.state_folder / PASSES_FILE)
    times = {} if arguments.times is None else recorded_seconds(_document(arguments.times))
    earlier = passes.by_fixture(scene.lane.platform)
    loads = []
    for each in decide(scene.members(), scene.ground(), passes, always_run(scene)):
        before = earlier.get(each.fixture.name)
        known = times.get(each.fixture.name, before[0].seconds if before else DEFAULT_SECONDS)
        loads.append(Load(each.fixture.name, each.fixture.model, known if each.runs else 0.0))
    if not loads:
        raise NothingSelectedError(f"no fixture is for {scene.lane.platform}, so there is nothing to plan")
    out(json.dumps(matrix(shards(loads, arguments.shards)), separators=(",", ":")))
    return ExitCode.GOOD


def _document(path: Path) -> Mapping[str, object]:
    try:
        document = read_json(path)
    except GoldenError as error:
        raise UsageError(f"--times {path}: {error}") from None
    if not isinstance(document, dict):
        raise UsageError(f"--times {path}: it is no document of `golden run --json` or of `golden gate --json`")
    return document
