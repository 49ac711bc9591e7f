"""`golden compare`: two files under rules. Nothing is run, and torch is not imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.compare.rules import load_rules
from framework.errors import ExitCode
from framework.golden.store import read_record_or_golden
from framework.judge import judge_files
from framework.report.streams import log, out, print_json
from framework.report.text import outcome_lines, settings_lines

if TYPE_CHECKING:
    import argparse


def run(arguments: argparse.Namespace) -> ExitCode:
    """Compare the files and print one fixture entry, or its text."""
    rules = load_rules(arguments.rules)
    golden = read_record_or_golden(arguments.golden)
    current = read_record_or_golden(arguments.current)
    outcome = judge_files(golden, current, rules)
    for line in settings_lines(golden, current):
        log(line)
    if arguments.json:
        print_json(outcome.as_json())
    else:
        for line in outcome_lines(outcome):
            out(line)
    return outcome.exit_code
