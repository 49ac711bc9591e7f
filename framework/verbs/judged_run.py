"""What `golden run` does once the engine's process is on its way: read, lint, run, judge, report."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import TYPE_CHECKING

from framework.quarantine.passes import count_passes
from framework.report.github import repository_root, workflow_commands
from framework.report.json_report import RUN_SCHEMA, report_document
from framework.report.streams import flush_out, log, out, print_json, tell_pipeline
from framework.report.terminal import print_report, progress_line, retry_line
from framework.report.timing import Timing
from framework.run.durations import record_durations
from framework.run.history import remember
from framework.run.required import refuse_without_device, unmet
from framework.run.rerun import diagnosed
from framework.run.retry import Retries
from framework.run.session import Session
from framework.verbs.lanes_wanted import prepare_lanes
from framework.verbs.lint_manifests import refuse_broken_manifests
from framework.verbs.opened import open_selection
from framework.verbs.quarantined import quarantine_in_force
from framework.verbs.report_files import refuse_unwritable, write_files

if TYPE_CHECKING:
    import argparse

    from framework.errors import ExitCode
    from framework.run.engine_time import EngineTime
    from framework.run.session import Report
    from framework.run.subprocess_runner import SubprocessRunner
    from framework.verbs.opened import Opened
    from framework.workspace import Workspace


def run(
    arguments: argparse.Namespace,
    workspace: Workspace,
    runner: SubprocessRunner,
    engine_time: EngineTime,
) -> ExitCode:
    """Run what was selected and print its report; the runner is let go before that."""
    refuse_unwritable(arguments)
    opened = open_selection(arguments, workspace)
    refuse_broken_manifests(opened)
    required = arguments.require_device
    refuse_without_device(required, opened.adapter.platforms(), opened.fixtures.values())
    quarantine = quarantine_in_force(opened.workspace, opened.fixtures.values())
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
    prepare_lanes(session, opened.selected, arguments.jobs, engine_time)
    report = session.run(opened.selected, lambda outcome: say(progress_line(outcome)))
    outcomes = diagnosed(session, report.outcomes, arguments.rerun_mismatches, say)
    runner.stop()  # without waiting until its engine is gone
    state_folder = opened.workspace.state_folder
    counted = count_passes(state_folder, outcomes)
    report = dataclasses.replace(report, outcomes=counted, unmet=unmet(required, map(session.seen, counted)))
    remember(state_folder, [outcome.as_json() for outcome in report.outcomes])
    record_durations(state_folder, session.durations_of(report.outcomes), log)
    _report(arguments, report, opened, engine_time)
    return report.exit_code


def _report(arguments: argparse.Namespace, report: Report, opened: Opened, engine_time: EngineTime) -> None:
    """Print and write what was asked for; what is printed for a person is part of the time that is told."""
    if not arguments.json:
        print_report(report, opened.fixtures)
    document = report_document(report, RUN_SCHEMA)
    now = time.monotonic()
    timing = Timing(wall=now - arguments.began, engine=engine_time.seconds(arguments.began, now))
    document["timing"] = timing.as_json()
    if arguments.json:
        print_json(document)
    else:
        out(timing.in_words())
    write_files(arguments, report, document)
    if arguments.github:
        flush_out()
        for command in workflow_commands(report, opened.fixtures, repository_root(opened.workspace.root, os.environ)):
            tell_pipeline(command)


def _say_nothing(_: str) -> None:
    """Leave stderr alone, since the document on stdout has it all."""
