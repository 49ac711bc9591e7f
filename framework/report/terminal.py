"""The report a person reads: what drifted, a table of every fixture, failures with the worst first, what to do next."""

from __future__ import annotations

import io
import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from framework.errors import ExitCode
from framework.judge import Verdict
from framework.redact import redacted
from framework.report.neutral import neutral
from framework.report.streams import out_drawn
from framework.report.text import notes_of, outcome_lines, severity, summary_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
    draw(_Console(file=drawn, force_terminal=is_terminal, no_color=not is_terminal, width=width, highlight=False))
    out_drawn(drawn.getvalue())


def shown(text: str, style: str = "") -> Text:
    """Return a text to draw, harmless and without secrets, which could not be found any more in wrapped lines."""
    return Text(neutral(redacted(text)), style)


class _Console(Console):
    """A console on which no text but its own can control the terminal."""

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """Draw, with every text made harmless; a renderable that holds others draws them here too."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(neutral(segment.text), segment.style)


def progress_line(outcome: Outcome) -> str:
    """Return the line that says that one fixture is done."""
    return f"{outcome.verdict:<11} {outcome.fixture}  {outcome.compared} compared  {outcome.seconds:.1f} s"


def retry_line(fixture_name: str, attempt: Attempt, number: int) -> str:
    """Return the line that says that a fixture gave no record and is tried again."""
    return f"RETRY       {fixture_name}  attempt {number} gave no record: {attempt.in_words()}"


def print_report(report: Report, fixtures: Mapping[str, Fixture], *, summary: str | None = None) -> None:
    """Print a report to stdout; `summary` stands for the usual one."""
    show(lambda console: _draw(console, report, fixtures, summary or summary_line(report)))


def _draw(to: Console, report: Report, fixtures: Mapping[str, Fixture], summary: str) -> None:
    for drift in report.drift:
        to.print(shown(f"DEFAULT CHANGED: {drift.in_words()}.", style="bold yellow"), soft_wrap=True)
    to.print(_table(report, fixtures))
    failed = [outcome for outcome in report.outcomes if outcome.verdict not in (Verdict.PASS, Verdict.SKIP)]
    for outcome in sorted(failed, key=lambda outcome: severity(outcome.verdict))[:SHOWN_FAILURES]:
        to.print()
        to.print(shown("\n".join(outcome_lines(outcome))), soft_wrap=True)
    if len(failed) > SHOWN_FAILURES:
        to.print(f"\nand {len(failed) - SHOWN_FAILURES} more failing fixtures; `--json` has them all")
    to.print()
    to.print(shown(f"{summary} {_next_step(report)}"), soft_wrap=True)


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
            shown(outcome.fixture),
            shown(outcome.verdict.value, style=_COLOURS.get(outcome.verdict, _FAILED_COLOUR)),
            str(outcome.compared),
            f"{outcome.seconds:.1f}",
            shown(f"{proves}{''.join(f' [{note}]' for note in notes_of(outcome))}"),
        )
    return table


def _next_step(report: Report) -> str:
    counts = Counter(outcome.verdict for outcome in report.outcomes)
    if report.exit_code is ExitCode.GOOD and counts[Verdict.QUARANTINED]:
        return "Every golden holds but those of the fixtures in quarantine, which fail as `golden quarantine` lists."
    if report.exit_code is ExitCode.GOOD and counts[Verdict.SKIP]:
        return "Every golden that was judged holds. The table says why the others were skipped, and what enables them."
    if report.exit_code is ExitCode.GOOD:
        return "Every golden holds. After a change to the engine, run this again."
    if report.exit_code is ExitCode.NOTHING_SELECTED:
        skipped = "The table says why fixtures were skipped, and what enables them."
        return skipped if report.unmet else "Nothing ran here; `--platform` and `golden which` say why."
    if counts[Verdict.MISSING] and counts[Verdict.MISSING] + counts[Verdict.PASS] == len(report.outcomes):
        return "Next: `golden regen FIXTURE --reason …` records what is missing."
    return "Next: `golden explain FIXTURE` shows what a fixture pins and inherits, `--json` shows every finding."
