"""A run as Markdown, for the summary of a job or a comment on a change: at most 64 KB, the worst first.

What a comment or a summary may hold is bounded, so whole parts are left out from the least severe on, and how many is
said. Every text that comes from a manifest, a golden or an engine stands in code: nothing of it is markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from framework.judge import Verdict
from framework.redact import redacted
from framework.report.neutral import markdown_block, markdown_code, neutral
from framework.report.text import notes_of, outcome_lines, severity, summary_line

if TYPE_CHECKING:
    from framework.judge import Outcome
    from framework.run.session import Report

LARGEST: Final = 65_536
"""Bytes of UTF-8 that a comment and a summary may have."""

_SIGNS: Final = {Verdict.PASS: "✅", Verdict.SKIP: "⏭️", Verdict.QUARANTINED: "🟡"}
_FAILED_SIGN: Final = "❌"
_UNREMARKABLE: Final = (Verdict.PASS, Verdict.SKIP)
_LONGEST_TEXT: Final = 400
_LONGEST_DRIFT: Final = 4_000
_LONGEST_BLOCK: Final = 6_000
_LONGEST_END: Final = 1_000
_RESERVED: Final = 400
"""Bytes kept for the sentence that says what was left out."""

_HEAD: Final = "\n| | fixture | verdict | compared | seconds | |\n|---|---|---|--:|--:|---|\n"
_END: Final = "\n</details>\n"


def markdown_report(report: Report, *, title: str = "Golden values", largest: int = LARGEST) -> str:
    """Return a report as Markdown of at most `largest` bytes: verdict, changed defaults, table, findings.

    The table takes half of the room at most, so that findings have some too. `title` is the caller's own, and is
    written as it is. `largest` is 2,000 at least.
    """
    page = _Page(largest - _RESERVED)
    verdict = "PASS" if report.exit_code == 0 else f"FAIL (exit code {int(report.exit_code)})"
    page.must(f"## {title}: {verdict}\n\n{summary_line(report)}\n")
    page.all_that_fit(
        (f"\n**Default changed:** {_code(drift.in_words(), _LONGEST_DRIFT)}\n" for drift in report.drift),
        "changed defaults",
    )
    ordered = sorted(report.outcomes, key=lambda outcome: severity(outcome.verdict))
    bad = [outcome for outcome in ordered if outcome.verdict not in _UNREMARKABLE]
    others = [outcome for outcome in ordered if outcome.verdict in _UNREMARKABLE]
    if bad:
        page.must(_HEAD)
        page.all_that_fit(map(_row, bad), "fixtures that did not pass, in the table", share=0.5)
    page.all_that_fit(_details(bad), "fixtures with findings")
    opening = f"\n<details><summary>{_counted(others)}</summary>\n{_HEAD}"
    if others and page.keeps_room_for(opening + _END):
        page.must(opening)
        page.all_that_fit(map(_row, others), "fixtures that passed or were skipped", keep=_END)
        page.must(_END)
    elif others:
        page.leave_out(len(others), "fixtures that passed or were skipped")
    return page.text()


class _Page:
    """Text that never becomes larger than it may."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._parts: list[str] = []
        self._left_out: list[str] = []

    def keeps_room_for(self, part: str) -> bool:
        return _size(part) <= self._room

    def must(self, part: str) -> None:
        """Add a part that is bounded by what it is."""
        self._room -= _size(part)
        self._parts.append(part)

    def all_that_fit(self, parts: Iterable[str], what: str, *, share: float = 1.0, keep: str = "") -> None:
        """Add parts until one does not fit; those after it, however small, would not be the worst any more.

        They take no more than a `share` of the room, which is left for `keep` too.
        """
        room, missing = int(self._room * share) - _size(keep), 0
        for part in parts:
            if missing or _size(part) > room:
                missing += 1
            else:
                room -= _size(part)
                self.must(part)
        self.leave_out(missing, what)

    def leave_out(self, count: int, what: str) -> None:
        """Say at the end that so many of these are not there."""
        if count:
            self._left_out.append(f"{count} {what}")

    def text(self) -> str:
        if self._left_out:
            self._parts.append(f"\nLeft out for want of room: {'; '.join(self._left_out)}. `--json` has everything.\n")
        return "".join(self._parts)


def _size(text: str) -> int:
    return len(text.encode())


def _row(outcome: Outcome) -> str:
    notes = "; ".join([*_kinds(outcome), *notes_of(outcome)])
    cells = [
        _SIGNS.get(outcome.verdict, _FAILED_SIGN),
        _code(outcome.fixture),
        outcome.verdict.value,
        f"{outcome.compared:,}",
        f"{outcome.seconds:.1f}",
        _code(notes) if notes else "",
    ]
    return f"| {' | '.join(cells)} |\n"


def _details(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield what is to say of each: its findings with their values and causes, and what to do next."""
    for outcome in outcomes:
        if outcome.findings:
            lines = _bounded([neutral(_cut(redacted(line))) for line in outcome_lines(outcome)])
            yield f"\n### {outcome.verdict.value} {_code(outcome.fixture)}\n\n{markdown_block(lines)}"


def _bounded(lines: Sequence[str]) -> str:
    """Return lines of a bounded size in all: the first ones, and the two last with what is missing and what is next."""
    if _size("\n".join(lines)) <= _LONGEST_BLOCK:
        return "\n".join(lines)
    end = [line for line in lines[-2:] if _size(line) <= _LONGEST_END]
    room, shown = _LONGEST_BLOCK - 2 * _LONGEST_END, 0
    while (room := room - _size(lines[shown]) - 1) >= 0:
        shown += 1
    missing = len(lines) - shown - len(end)
    return "\n".join([*lines[:shown], f"  … {missing} lines are left out; `--json` has everything", *end])


def _counted(outcomes: Iterable[Outcome]) -> str:
    counts = Counter(outcome.verdict for outcome in outcomes)
    words = {Verdict.PASS: "passed", Verdict.SKIP: "skipped"}
    return ", ".join(f"{counts[verdict]} {word}" for verdict, word in words.items() if counts[verdict])


def _kinds(outcome: Outcome) -> list[str]:
    return [f"{count} {kind}" for kind, count in Counter(finding.kind.value for finding in outcome.findings).items()]


def _code(text: str, longest: int = _LONGEST_TEXT) -> str:
    return markdown_code(_cut(redacted(text), longest))


def _cut(text: str, longest: int = _LONGEST_TEXT) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
