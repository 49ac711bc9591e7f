"""`golden run`: run fixtures, judge them, report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.golden.store import write_atomically
from framework.report.json_report import RUN_SCHEMA, report_document
from framework.report.junit import junit_xml
from framework.report.streams import log, print_json
from framework.report.terminal import print_report, progress_line
from framework.run.history import remember
from framework.run.session import Session
from framework.run.subprocess_runner import SubprocessRunner
from framework.verbs.lint_manifests import refuse_broken_manifests
from framework.verbs.opened import open_selection

if TYPE_CHECKING:
    import argparse

    from framework.errors import ExitCode
    from framework.judge import Outcome


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run what was selected and print its report."""
    opened = open_selection(arguments)
    refuse_broken_manifests(opened)
    runner = SubprocessRunner(opened.workspace)
    runner.start()
    session = Session(opened.workspace, opened.adapter, runner, opened.fixtures, arguments.platform)

    def announce(outcome: Outcome) -> None:
        if not arguments.json:
            log(progress_line(outcome))

    try:
        report = session.run(opened.selected, announce)
    finally:
        runner.close()
    remember(opened.workspace.state_folder, report.outcomes)
    if arguments.junit is not None:
        write_atomically(arguments.junit, junit_xml(report))
    if arguments.json:
        print_json(report_document(report, RUN_SCHEMA))
    else:
        print_report(report, opened.fixtures)
    return report.exit_code
