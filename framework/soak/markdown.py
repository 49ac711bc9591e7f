"""The report of a soak as Markdown, for the documentation: the same runs give the same bytes.

It says when and in which environment the runs were made, as their records say it, and names no folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from framework.errors import ExitCode
from framework.soak.soak_run import SoakRun
from framework.soak.summary import FixtureSoak, amount, soak_exit_code
from framework.soak.terminal import deviation_texts, finding_line

SHOWN_RUNS: Final = 20
_FOLDERS: Final = re.compile(r"(?<![\w.])/(?:[^\s/:]+/)+")
_LONGEST_LINE: Final = 300


def markdown_report(soaks: Sequence[FixtureSoak]) -> str:
    """Return the report, its newline last."""
    lines = ["# Soak report", "", _verdict(soaks), "", *_origin(soaks), ""]
    lines += ["## Fixtures", "", *_fixture_table(soaks), ""]
    lines += ["## What was varied", "", *_kind_table(soaks), ""]
    for soak in soaks:
        lines.extend(_troubles(soak))
    return "\n".join(lines).rstrip("\n") + "\n"


def _verdict(soaks: Sequence[FixtureSoak]) -> str:
    if soak_exit_code(soaks) is ExitCode.GOOD:
        return f"**No false alarm**: {amount(soaks)}."
    failed = sum(len(soak.failed_runs) for soak in soaks)
    return f"**Not clean**: {amount(soaks)}; runs that failed: {failed:,}. See below."


def _origin(soaks: Sequence[FixtureSoak]) -> Iterator[str]:
    dates = sorted(run.date for soak in soaks for run in soak.runs)
    if dates:
        yield f"- date: {dates[0]}" if dates[0] == dates[-1] else f"- dates: {dates[0]} to {dates[-1]}"
    engines = sorted({soak.engine for soak in soaks if soak.engine})
    if engines:
        yield f"- engine: {_plain(', '.join(engines))}"
    environments = [soak.environment for soak in soaks if soak.environment is not None]
    for name in sorted(set().union(*environments)) if environments else ():
        values = [environment.get(name) for environment in environments]
        if all(value == values[0] for value in values) and values[0] not in (None, {}, []):
            yield f"- {_plain(name)}: {_plain(_in_words(values[0]))}"


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_in_words(value[name])}" for name in sorted(value))
    return ", ".join(map(_in_words, value)) if isinstance(value, list) else str(value)


def _fixture_table(soaks: Sequence[FixtureSoak]) -> Iterator[str]:
    head = ("fixture", "platform", "verdict", "runs", "varied", "failed", "values compared", "median seconds a run")
    rows = (
        (
            soak.fixture,
            soak.platform,
            soak.verdict.value,
            str(len(soak.runs)),
            str(sum(run.is_varied for run in soak.runs)),
            str(len(soak.failed_runs)),
            f"{soak.compared:,}",
            "" if soak.median_seconds is None else f"{soak.median_seconds:.2f}",
            "; ".join(deviation_texts(soak)),
        )
        for soak in soaks
    )
    return _table((*head, "largest deviation (what is allowed)"), rows, first_number=3, last_number=7)


def _kind_table(soaks: Sequence[FixtureSoak]) -> Iterator[str]:
    kinds = list(dict.fromkeys(kind for soak in soaks for kind in soak.kinds))
    kinds = [*kinds[:1], *sorted(kinds[1:])]
    rows = ((soak.fixture, *(str(soak.kinds.get(kind, 0)) for kind in kinds)) for soak in soaks if soak.runs)
    return _table(("runs with", *kinds), rows, first_number=1, last_number=len(kinds))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, first_number: int, last_number: int) -> Iterator[str]:
    yield _row(head)
    yield _row(["--:" if first_number <= column <= last_number else "---" for column in range(len(head))])
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _troubles(soak: FixtureSoak) -> Iterator[str]:
    """Yield the section of a fixture that was not clean."""
    findings = soak.refused.findings if soak.refused else ()
    reason = soak.refused.reason if soak.refused else soak.why_vacuous
    if not (soak.failed_runs or findings or reason):
        return
    yield from (f"## {_plain(soak.fixture)}: {soak.verdict}", "")
    if reason:
        yield from (_plain(reason), "")
    for finding in findings:
        yield f"- {_plain(finding_line(finding.as_json()))}"
    for run in soak.failed_runs[:SHOWN_RUNS]:
        yield from _failed_run(soak, run)
    if len(soak.failed_runs) > SHOWN_RUNS:
        yield f"- and {len(soak.failed_runs) - SHOWN_RUNS} more failed runs"
    yield ""


def _failed_run(soak: FixtureSoak, run: SoakRun) -> Iterator[str]:
    yield f"- run {run.number} ({_plain(run.variation)}), again: `{soak.command_for(run)}`"
    yield from (f"  - {_plain(finding_line(finding))}" for finding in run.findings)
    if run.finding_count > len(run.findings):
        yield f"  - and {run.finding_count - len(run.findings)} more findings"


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line, without folders of the machine it comes from."""
    line = " ".join(_FOLDERS.sub("", text).split())
    if len(line) > _LONGEST_LINE:
        line = f"{line[:_LONGEST_LINE]}…"
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", line)
