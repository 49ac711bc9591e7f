"""`golden run`: run fixtures, judge them, report."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from framework.errors import UsageError
from framework.golden.store import why_not_writable, write_atomically
from framework.quarantine.passes import count_passes
from framework.report.json_report import RUN_SCHEMA, report_document
from framework.report.junit import junit_xml
from framework.report.streams import log, print_json
from framework.report.terminal import print_report, progress_line, retry_line
from framework.run.history import remember
from framework.run.rerun import diagnosed
from framework.run.retry import Retries
from framework.run.session import Session
from framework.run.subprocess_runner import SubprocessRunner
from framework.verbs.lint_manifests import refuse_broken_manifests
from framework.verbs.opened import open_selection
from framework.verbs.quarantined import quarantine_in_force

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from framework.errors import ExitCode
    from framework.run.session import Report


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run what was selected and print its report."""
    if arguments.junit is not None and (why := why_not_writable(arguments.junit)):
        raise UsageError(f"--junit {arguments.junit}: it cannot be written: {why}; choose another file")
    opened = open_selection(arguments)
    refuse_broken_manifests(opened)
    quarantine = quarantine_in_force(opened.workspace, opened.fixtures.values())
    runner = SubprocessRunner(opened.workspace)
    runner.start()
    say = _say_nothing if arguments.json else log
    session = Session(
        opened.workspace,
        opened.adapter,
        runner,
        opened.fixtures,
        arguments.platform,
        quarantine,
        retries=Retries(arguments.retry_infrastructure, lambda *heard: say(retry_line(*heard))),
    )
    try:
        report = session.run(opened.selected, lambda outcome: say(progress_line(outcome)))
        outcomes = diagnosed(session, report.outcomes, arguments.rerun_mismatches, say)
    finally:
        runner.close()
    state_folder = opened.workspace.state_folder
    report = dataclasses.replace(report, outcomes=count_passes(state_folder, outcomes))
    remember(state_folder, report.outcomes)
    if arguments.junit is not None:
        _write_junit(arguments.junit, report)
    if arguments.json:
        print_json(report_document(report, RUN_SCHEMA))
    else:
        print_report(report, opened.fixtures)
    return report.exit_code


def _say_nothing(_: str) -> None:
    """Leave stderr alone, since the document on stdout has it all."""


def _write_junit(path: Path, report: Report) -> None:
    """Write the report; a disk that is full now does not change what the run has found."""
    try:
        write_atomically(path, junit_xml(report))
    except OSError as error:
        log(f"golden: --junit {path}: it could not be written: {error.strerror or error}")
