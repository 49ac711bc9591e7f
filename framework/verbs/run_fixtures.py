"""`golden run`: run fixtures, judge them, report."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from framework.quarantine.passes import count_passes
from framework.report.github import workflow_commands
from framework.report.json_report import RUN_SCHEMA, report_document
from framework.report.streams import log, print_json, tell_pipeline
from framework.report.terminal import print_report, progress_line, retry_line
from framework.report.timing import Timing
from framework.run.history import remember
from framework.run.rerun import diagnosed
from framework.run.retry import Retries
from framework.run.session import Session
from framework.run.subprocess_runner import SubprocessRunner
from framework.verbs.lint_manifests import refuse_broken_manifests
from framework.verbs.opened import open_selection
from framework.verbs.quarantined import quarantine_in_force
from framework.verbs.report_files import refuse_unwritable, write_files

if TYPE_CHECKING:
    import argparse

    from framework.errors import ExitCode


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run what was selected and print its report."""
    began = time.monotonic()
    refuse_unwritable(arguments)
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
    timing = Timing(wall=time.monotonic() - began, engine=sum(outcome.seconds for outcome in report.outcomes))
    document = report_document(report, RUN_SCHEMA) | {"timing": timing.as_json()}
    remember(state_folder, document["fixtures"])
    write_files(arguments, report, document)
    if arguments.github:
        for command in workflow_commands(report, opened.fixtures, opened.workspace.root):
            tell_pipeline(command)
    if arguments.json:
        print_json(document)
    else:
        print_report(report, opened.fixtures, note=timing.in_words())
    return report.exit_code


def _say_nothing(_: str) -> None:
    """Leave stderr alone, since the document on stdout has it all."""
