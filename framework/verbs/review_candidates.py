"""`golden review`: the candidates that wait, with what they would change, on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import ExitCode
from framework.regenerate.review import one_screen, worst_first
from framework.report.streams import out, print_json
from framework.verbs.opened import open_selection
from framework.verbs.waiting import code_of, planned, waiting_candidates

if TYPE_CHECKING:
    import argparse


def run(arguments: argparse.Namespace) -> ExitCode:
    """Show candidates, the worst first; the exit code is the one that `golden accept` would end with."""
    opened = open_selection(arguments)
    candidates = waiting_candidates(opened.workspace, arguments.folder, arguments.names)
    changes = planned(opened, candidates)
    code = code_of(changes)
    if arguments.json:
        document = {
            "schema": "golden.review/1",
            "verdict": "PASS" if code is ExitCode.GOOD else "FAIL",
            "exit_code": int(code),
            "fixtures": [change.as_json() for change in worst_first(changes)],
        }
        print_json(document)
        return code
    for line in one_screen(changes):
        out(line)
    folder = f" {arguments.folder}" if arguments.folder else ""
    out(f"Next: `golden accept{folder} --reason …`" + ("" if folder else ", or `golden reject`."))
    return code
