"""`golden soak`: run fixtures many times, varied in every way that must not matter, and find any false alarm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from framework.errors import UsageError
from framework.golden.store import write_atomically
from framework.redact import redacted
from framework.report.streams import log, out, print_json
from framework.run.claim import Claim
from framework.run.session import Session
from framework.run.subprocess_runner import SubprocessRunner
from framework.soak.markdown import markdown_report
from framework.soak.soaking import Length, Soaker
from framework.soak.state import soak_lock
from framework.soak.summary import FixtureSoak, soak_document, soak_exit_code
from framework.soak.terminal import print_soak, progress_line
from framework.verbs.lint_manifests import refuse_broken_manifests
from framework.verbs.opened import Opened, open_selection
from framework.verbs.output_file import refuse_output
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse

    from framework.errors import ExitCode

_PROGRESS_EVERY = 20


def run(arguments: argparse.Namespace) -> ExitCode:
    """Do the runs that are missing and report on all."""
    _refuse_senseless(arguments)
    opened = open_selection(arguments)
    if arguments.only is not None and len(opened.selected) != 1:
        raise UsageError(f"--only {arguments.only}: {len(opened.selected)} fixtures are selected; name one")
    refuse_broken_manifests(opened)
    soaks = _soak(opened, arguments)
    if arguments.report is not None:
        _write_report(arguments.report, soaks, arguments)
    if arguments.json:
        print_json(soak_document(soaks))
    else:
        print_soak(soaks)
    return soak_exit_code(soaks)


def _refuse_senseless(arguments: argparse.Namespace) -> None:
    for flag, value, least in (("--runs", arguments.runs, 1), ("--slow-runs", arguments.slow_runs, 1)):
        if value < least:
            raise UsageError(f"{flag} {value}: nothing would be run; give {least} or more")
    if not arguments.slow_after_s >= 0:
        raise UsageError(f"--slow-after-s {arguments.slow_after_s}: give a number of seconds, 0 or more")
    if arguments.only is not None:
        if arguments.only < 0:
            raise UsageError(f"--only {arguments.only}: runs are numbered from 0 on")
        if arguments.fresh or arguments.resume or arguments.report is not None:
            raise UsageError("--only does one run again and keeps nothing; leave out --fresh, --resume and --report")
    if arguments.report is not None:
        refuse_output("--report", arguments.report, open_workspace(arguments.root, arguments.adapter))


def _soak(opened: Opened, arguments: argparse.Namespace) -> list[FixtureSoak]:
    """Soak what was selected, fixtures of one model after another, and return it in the order of their names."""

    def announce(soak: FixtureSoak) -> None:
        is_due = len(soak.runs) % _PROGRESS_EVERY == 0 or len(soak.runs) == soak.wanted or soak.runs[-1].has_failed
        if is_due and not arguments.json:
            log(progress_line(soak))

    runner = SubprocessRunner(opened.workspace, claim=Claim(log))
    session = Session(opened.workspace, opened.adapter, runner, opened.fixtures, arguments.platform)
    length = Length(arguments.runs, arguments.slow_runs, arguments.slow_after_s)
    soaker = Soaker(session, length, announce)
    by_model = sorted(opened.selected, key=lambda fixture: (fixture.model, fixture.name))
    try:
        if arguments.only is not None:
            return [soaker.repeat(opened.selected[0], arguments.only)]
        with soak_lock(opened.workspace.state_folder):
            soaks = [soaker.soak(fixture, fresh=arguments.fresh) for fixture in by_model]
    except KeyboardInterrupt:
        log("golden: stopped; the runs so far are kept, and the same command (without --fresh) goes on with the others")
        raise
    finally:
        runner.close()
    return sorted(soaks, key=lambda soak: soak.fixture)


def _write_report(path: Path, soaks: list[FixtureSoak], arguments: argparse.Namespace) -> None:
    """Write the report; a disk that is full now does not change what the soak has found."""
    try:
        write_atomically(path, redacted(markdown_report(soaks)).encode())
    except OSError as error:
        log(f"golden: --report {path}: it could not be written: {error.strerror or error}")
    else:
        if not arguments.json:
            out(f"wrote {path}")
