"""`golden reject`: drop candidates that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import ExitCode
from framework.regenerate.candidates import drop_candidates
from framework.report.streams import out, print_json
from framework.verbs.consent import agreed, refuse_without_an_answer
from framework.verbs.waiting import waiting_candidates
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def run(arguments: argparse.Namespace) -> ExitCode:
    """Drop what was selected; the goldens in force stay as they are, and a candidate need not be readable."""
    refuse_without_an_answer(arguments)
    workspace = open_workspace(arguments.root, arguments.adapter)
    candidates = waiting_candidates(workspace, None, arguments.names)
    if not arguments.json:
        for candidate in candidates:
            out(f"{candidate.fixture} [{candidate.platform}]: {candidate.path}")
    removed: list[Path] = []
    if agreed(arguments, f"drop {len(candidates)} candidate(s)?"):
        removed = drop_candidates(workspace, candidates)
    if arguments.json:
        document = {
            "schema": "golden.reject/1",
            "verdict": "PASS",
            "exit_code": int(ExitCode.GOOD),
            "candidates": [
                {"fixture": each.fixture, "platform": each.platform, "path": str(each.path)} for each in candidates
            ],
            "removed": [str(path) for path in removed],
        }
        print_json(document)
    else:
        out(f"dropped {len(removed)} candidate(s)." if removed else "nothing was dropped.")
    return ExitCode.GOOD
