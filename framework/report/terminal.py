"""The report a person reads: what drifted, a table of every fixture, failures with the worst first, what to do next."""

from __future__ import annotations

import io
import shutil
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from framework.errors import ExitCode
from framework.judge import Verdict
from framework.report.streams import out
from framework.report.text import attempt_words, detectable_lines, outcome_lines, quarantine_words, severity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from framework.judge import Outcome
    from framework.manifest.fixture import Fixture
    from framework.run.retry import Attempt
    from framework.run.session import Report

SHOWN_FAILURES = 20
_PLAIN_WIDTH = 140
_NARROWEST = 80
_COLOURS = {Verdict.PASS: "green", Verdict.SKIP: "yellow", Verdict.QUARANTINED: "yellow"}
_FAILED_COLOUR = "red"


def show(draw: Callable[[Console], None]) -> None:
    """Print what `draw` draws to stdout: coloured on a terminal, plain and wide elsewhere.

    It is drawn in memory first, so that `out` alone meets a reader that left.
    """
    drawn = io.StringIO()
    is_terminal = sys.stdout.isatty()
    width = max(shutil.get_terminal_size().columns, _NARROWEST) if is_terminal else _PLAIN_WIDTH
    draw(Console(file=drawn, force_terminal=is_terminal, no_color=not is_terminal, width=width, highlight=False))
    out(drawn.getvalue(), end="")


def progress_line(outcome: Outcome) -> str:
    """Return the line that says that one fixture is done."""
    return f"{outcome.verdict:<11} {outcome.fixture}  {outcome.compared} compared  {outcome.seconds:.1f} s"


def retry_line(fixture_name: str, attempt: Attempt, number: int) -> str:
    """Return the line that says that a fixture gave no record and is tried again."""
    return f"RETRY       {fixture_name}  attempt {number} gave no record: {attempt.in_words()}"


def print_report(report: Report, fixtures: Mapping[str, Fixture]) -> None:
    """Print a report to stdout."""
    show(lambda console: _draw(console, report, fixtures))


def _draw(to: Console, report: Report, fixtures: Mapping[str, Fixture]) -> None:
    for drift in report.drift:
        to.print(Text(f"DEFAULT CHANGED: {drift.in_words()}.", style="bold yellow"), soft_wrap=True)
    to.print(_table(report, fixtures))
    failed = [outcome for outcome in report.outcomes if outcome.verdict not in (Verdict.PASS, Verdict.SKIP)]
    for outcome in sorted(failed, key=severity)[:SHOWN_FAILURES]:
        to.print()
        to.print(Text("\n".join(outcome_lines(outcome))), soft_wrap=True)
    if len(failed) > SHOWN_FAILURES:
        to.print(f"\nand {len(failed) - SHOWN_FAILURES} more failing fixtures; `--json` has them all")
    to.print()
    to.print(Text(_summary(report)), soft_wrap=True)


def _table(report: Report, fixtures: Mapping[str, Fixture]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("fixture", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("compared", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("what it proves", ratio=1)
    for outcome in report.outcomes:
        proves = fixtures[outcome.fixture].summary.strip()
        table.add_row(
            Text(outcome.fixture),
            Text(outcome.verdict.value, style=_COLOURS.get(outcome.verdict, _FAILED_COLOUR)),
            str(outcome.compared),
            f"{outcome.seconds:.1f}",
            Text(f"{proves}{''.join(f' [{note}]' for note in _notes(outcome))}"),
        )
    return table


def _notes(outcome: Outcome) -> list[str]:
    quarantine = [quarantine_words(outcome.quarantine)] if outcome.quarantine else []
    return [*filter(None, [outcome.reason]), *detectable_lines(outcome), *quarantine, *attempt_words(outcome)]


def _summary(report: Report) -> str:
    counts = {verdict: sum(outcome.verdict is verdict for outcome in report.outcomes) for verdict in Verdict}
    parts = [f"{count} {verdict.value}" for verdict, count in counts.items() if count]
    compared = sum(outcome.compared for outcome in report.outcomes)
    seconds = sum(outcome.seconds for outcome in report.outcomes)
    text = f"{', '.join(parts)}; {compared} values compared in {seconds:.1f} s."
    return f"{text} {_next_step(report, counts)}"


def _next_step(report: Report, counts: Mapping[Verdict, int]) -> str:
    if report.exit_code is ExitCode.GOOD and counts[Verdict.QUARANTINED]:
        return "Every golden holds but those of the fixtures in quarantine, which fail as `golden quarantine` lists."
    if report.exit_code is ExitCode.GOOD and counts[Verdict.SKIP]:
        return "Every golden that was judged holds. The table says why the others were skipped, and what enables them."
    if report.exit_code is ExitCode.GOOD:
        return "Every golden holds. After a change to the engine, run this again."
    if report.exit_code is ExitCode.NOTHING_SELECTED:
        return "Nothing ran here; `--platform` and `golden which` say why."
    if counts[Verdict.MISSING] and counts[Verdict.MISSING] + counts[Verdict.PASS] == len(report.outcomes):
        return "Next: `golden regen FIXTURE --reason …` records what is missing."
    return "Next: `golden explain FIXTURE` shows what a fixture pins and inherits, `--json` shows every finding."
