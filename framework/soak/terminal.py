"""A soak as a person reads it on a terminal: a table, then every failed run with the command that does it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from framework.errors import ExitCode
from framework.judge import Verdict
from framework.report.terminal import show, shown
from framework.report.text import outcome_lines
from framework.soak.summary import AS_WRITTEN, FixtureSoak, amount, counted, soak_exit_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

SHOWN_RUNS: Final = 5
SHOWN_FINDINGS: Final = 2


def print_soak(soaks: Sequence[FixtureSoak]) -> None:
    """Print what a soak showed to stdout."""
    show(lambda console: _draw(console, soaks))


def progress_line(soak: FixtureSoak) -> str:
    """Return the line that says how far the soak of a fixture is."""
    failed = f"  {len(soak.failed_runs)} FAILED" if soak.failed_runs else ""
    return f"{len(soak.runs):>4} of {soak.wanted} runs  {soak.fixture}{failed}"


def finding_line(finding: Mapping[str, Any]) -> str:
    """Return a finding as one line: class, path and what it says first."""
    return f"{finding.get('class')} {finding.get('path')}: {str(finding.get('message')).partition(chr(10))[0]}"


def deviation_texts(soak: FixtureSoak) -> Iterator[str]:
    """Yield, for each field judged within a tolerance, the largest difference seen and what is allowed."""
    for name, largest in soak.deviations.items():
        yield f"{name} {largest:.2g} ({soak.rules.get(name, 'no rule')})"


def _draw(to: Console, soaks: Sequence[FixtureSoak]) -> None:
    to.print(_table(soaks))
    for soak in soaks:
        lines = list(_lines(soak))
        if lines:
            to.print()
            to.print(shown("\n".join(lines)), soft_wrap=True)
    to.print()
    to.print(shown(_summary(soaks)), soft_wrap=True)


def _table(soaks: Sequence[FixtureSoak]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("fixture", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for name in ("runs", "varied", "failed", "compared", "s a run"):
        table.add_column(name, justify="right")
    table.add_column("largest deviation", ratio=1)
    for soak in soaks:
        colour = "green" if soak.verdict is Verdict.PASS else "yellow" if soak.verdict is Verdict.SKIP else "red"
        seconds = soak.median_seconds
        table.add_row(
            shown(soak.fixture),
            shown(soak.verdict.value, style=colour),
            str(len(soak.runs)),
            str(len(soak.runs) - soak.kinds.get(AS_WRITTEN, 0)),
            str(len(soak.failed_runs)),
            f"{soak.compared:,}",
            "" if seconds is None else f"{seconds:.2f}",
            shown("; ".join(deviation_texts(soak))),
        )
    return table


def _lines(soak: FixtureSoak) -> Iterator[str]:
    if soak.refused is not None:
        yield from outcome_lines(soak.refused)
        return
    if soak.failed_runs or soak.why_vacuous:
        yield f"{soak.verdict} {soak.fixture}: {len(soak.failed_runs)} of {len(soak.runs)} runs failed"
    if soak.why_vacuous:
        yield f"  {soak.why_vacuous}"
    shown = SHOWN_RUNS if not soak.is_one_run else len(soak.runs)
    for run in soak.failed_runs[:shown]:
        found = counted(run.finding_count, "finding")
        yield f"  run {run.number} ({run.variation}): {found}; again: {soak.command_for(run)}"
        for finding in run.findings[: None if soak.is_one_run else SHOWN_FINDINGS]:
            yield f"    {finding_line(finding)}"
            if soak.is_one_run:
                yield from (f"      {line}" for line in str(finding.get("message")).split("\n")[1:])
    if len(soak.failed_runs) > shown:
        yield f"  and {len(soak.failed_runs) - shown} more failed runs; `--json` has them all"


def _summary(soaks: Sequence[FixtureSoak]) -> str:
    text, code = f"{amount(soaks)}.", soak_exit_code(soaks)
    if code is ExitCode.GOOD:
        return f"{text} No false alarm."
    if code is ExitCode.NOTHING_SELECTED:
        return f"{text} Nothing ran here; `golden which` says why."
    return f"{text} Next: the first failed run above, again and alone; once it is mended, the same command starts anew."
