"""A run as Markdown, for the summary of a job or a comment on a change: at most 64 KB, the worst first.

What a comment or a summary may hold is bounded, so whole parts are left out from the least severe on, and how many is
said. Every text that comes from a manifest, a golden or an engine stands in code, as entities: nothing of it is markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from framework.judge import Verdict
from framework.redact import redacted
from framework.report.neutral import markdown_block, markdown_code
from framework.report.text import notes_of, outcome_lines, severity, summary_line

if TYPE_CHECKING:
    from framework.judge import Outcome
    from framework.run.session import Report

LARGEST: Final = 65_536
"""Bytes of UTF-8 that a comment and a summary may have."""

_SIGNS: Final = {Verdict.PASS: "✅", Verdict.SKIP: "⏭️", Verdict.QUARANTINED: "🟡"}
_FAILED_SIGN: Final = "❌"
_LONGEST_ROW: Final = 2_000
_LONGEST_BLOCK: Final = 12_000
_RESERVED: Final = 400
"""Bytes kept for the sentence that says what was left out."""


def markdown_report(report: Report, *, title: str = "Golden values", largest: int = LARGEST) -> str:
    """Return a report as Markdown of at most `largest` bytes: verdict, changed defaults, table, findings.

    `largest` is 2,000 at least.
    """
    page = _Page(largest - _RESERVED)
    verdict = "PASS" if report.exit_code == 0 else f"FAIL (exit code {int(report.exit_code)})"
    page.must(f"## {title}: {verdict}\n\n{markdown_code(summary_line(report))}\n")
    page.all_that_fit(
        (f"\n**Default changed:** {markdown_code(redacted(drift.in_words()))}\n" for drift in report.drift),
        "changed defaults",
    )
    ordered = sorted(report.outcomes, key=lambda outcome: severity(outcome.verdict))
    bad = [outcome for outcome in ordered if outcome.verdict is not Verdict.PASS]
    good = [outcome for outcome in ordered if outcome.verdict is Verdict.PASS]
    if bad and page.fits(_HEAD):
        page.must(_HEAD)
        page.all_that_fit((_row(outcome) for outcome in bad), "fixtures that did not pass, in the table")
    page.all_that_fit(_details(bad), "fixtures with findings")
    if good and page.fits(opening := f"\n<details><summary>{len(good)} passed</summary>\n{_HEAD}{_END}"):
        page.reserve(_END)
        page.must(opening.removesuffix(_END))
        page.all_that_fit((_row(outcome) for outcome in good), "fixtures that passed")
        page.must(_END)
    return page.text()


_HEAD: Final = "\n| | fixture | verdict | compared | seconds | |\n|---|---|---|--:|--:|---|\n"
_END: Final = "\n</details>\n"


class _Page:
    """Text that never becomes larger than it may."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._parts: list[str] = []
        self._left_out: list[str] = []

    def fits(self, part: str) -> bool:
        return _size(part) <= self._room

    def reserve(self, part: str) -> None:
        """Keep room for a part that must come later."""
        self._room -= _size(part)
        self._parts.append("")

    def must(self, part: str) -> None:
        """Add a part that is bounded by what it is."""
        self._room -= _size(part)
        self._parts.append(part)

    def all_that_fit(self, parts: Iterable[str], what: str) -> None:
        """Add parts until one does not fit; those after it, however small, would not be the worst any more."""
        missing = 0
        for part in parts:
            if missing or not self.fits(part):
                missing += 1
            else:
                self.must(part)
        if missing:
            self._left_out.append(f"{missing} {what}")

    def text(self) -> str:
        if self._left_out:
            self._parts.append(f"\nLeft out for want of room: {'; '.join(self._left_out)}. `--json` has everything.\n")
        return "".join(self._parts)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _row(outcome: Outcome) -> str:
    notes = "; ".join([*_kinds(outcome), *notes_of(outcome)])
    sign = _SIGNS.get(outcome.verdict, _FAILED_SIGN)
    cells = [
        sign,
        markdown_code(outcome.fixture),
        outcome.verdict.value,
        f"{outcome.compared:,}",
        f"{outcome.seconds:.1f}",
        markdown_code(_cut(redacted(notes), _LONGEST_ROW // 6)) if notes else "",
    ]
    return f"| {' | '.join(cells)} |\n"


def _details(outcomes: Iterable[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        if outcome.findings:
            lines = _cut(redacted("\n".join(outcome_lines(outcome))), _LONGEST_BLOCK // 6)
            name = markdown_code(outcome.fixture)
            yield f"\n<details><summary>{name}</summary>\n\n{markdown_block(lines)}\n{_END}"


def _kinds(outcome: Outcome) -> list[str]:
    counts: dict[str, int] = {}
    for finding in outcome.findings:
        counts[finding.kind.value] = counts.get(finding.kind.value, 0) + 1
    return [f"{count} {kind}" for kind, count in counts.items()]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
