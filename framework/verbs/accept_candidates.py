"""`golden accept`: check candidates, show what they change, ask, and bring them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import ExitCode
from framework.regenerate.accept import value_class
from framework.regenerate.apply import acceptance, apply_changes
from framework.regenerate.plan import Change, Kind
from framework.report.streams import out, print_json
from framework.verbs.consent import agreed, readable_reason, refuse_under_ci, refuse_without_an_answer
from framework.verbs.opened import open_selection
from framework.verbs.waiting import code_of, forget_candidates, planned, waiting_candidates

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def run(arguments: argparse.Namespace) -> ExitCode:
    """Bring candidates in; all of those selected, or none."""
    reason = readable_reason(arguments.reason, "why these values are right")
    only = [value_class(word) for words in arguments.only for word in words.split(",")]
    refuse_under_ci("a person accepts candidates, and commits what changes")
    refuse_without_an_answer(arguments)
    opened = open_selection(arguments)
    candidates = waiting_candidates(opened.workspace, arguments.folder, arguments.names)
    changes = planned(opened, candidates, only)
    code = code_of(changes)
    if not arguments.json:
        for change in changes:
            out(change.in_words())
    written: list[Path] = []
    settled = False
    if code is ExitCode.GOOD:
        count = sum(change.kind is not Kind.UNCHANGED for change in changes)
        settled = count == 0 or agreed(arguments, f"write {count} golden(s)?")
    if settled:
        state_folder = opened.workspace.state_folder
        written = apply_changes(
            changes, state_folder=state_folder, origin=acceptance(reason, [kind.value for kind in only])
        )
        forget_candidates(opened.workspace, changes)
    _report(arguments, changes, written, code, settled=settled)
    return code


def _report(
    arguments: argparse.Namespace,
    changes: list[Change],
    written: list[Path],
    code: ExitCode,
    *,
    settled: bool,
) -> None:
    if arguments.json:
        document = {
            "schema": "golden.accept/1",
            "verdict": "PASS" if code is ExitCode.GOOD else "FAIL",
            "exit_code": int(code),
            "fixtures": [change.as_json() for change in changes],
            "written": [str(path) for path in written],
        }
        print_json(document)
        return
    for path in written:
        out(f"wrote {path}")
    refused = sum(change.kind is Kind.REFUSED for change in changes)
    if refused:
        out(f"{refused} of {len(changes)} refused, so nothing was written. Select others with `--fixture NAME`.")
    elif written:
        out("Next: review the difference in version control, and commit it with its reason.")
    elif settled:
        out("nothing was written: these values are in force.")
    else:
        out("nothing was written; the candidates wait on.")
