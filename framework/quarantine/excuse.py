"""What a quarantine makes of an outcome: a pure function, and the only place where a failure is excused."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from framework.errors import ExitCode
from framework.judge import Outcome, Verdict
from framework.quarantine.entry import Note

if TYPE_CHECKING:
    from datetime import date

    from framework.quarantine.entry import Entry, Quarantine

_CAN_BE_EXCUSED: Final = (ExitCode.REGRESSION, ExitCode.ENGINE)
"""What an engine did. A golden that is missing, stale or broken is repaired, not waited for."""


def under_quarantine(outcome: Outcome, quarantine: Quarantine, platform: str | None, today: date) -> Outcome:
    """Return the outcome of a fixture on a platform as its entry leaves it, with a note of that entry.

    Without an entry, or where the fixture was skipped, it is what it was. A failure is `QUARANTINED` when every one of
    its findings is of a declared class; a pass stays a pass.
    """
    entry = quarantine.entry_for(outcome.fixture, platform)
    if entry is None or platform is None or outcome.verdict is Verdict.SKIP:
        return outcome
    if outcome.verdict is Verdict.PASS:
        note = Note(entry, platform, entry.days_left(today), excused=False)
        return dataclasses.replace(outcome, quarantine=note)
    why_not = _why_not(outcome, entry, today)
    note = Note(entry, platform, entry.days_left(today), excused=not why_not, why_not=why_not)
    if why_not:
        return dataclasses.replace(outcome, quarantine=note)
    return dataclasses.replace(outcome, verdict=Verdict.QUARANTINED, exit_code=ExitCode.GOOD, quarantine=note)


def _why_not(outcome: Outcome, entry: Entry, today: date) -> str:
    """Return why an entry does not excuse a failure, or an empty string."""
    if not entry.holds_on(today):
        return f"not excused: the entry does not hold on {today.isoformat()}"
    if outcome.exit_code not in _CAN_BE_EXCUSED or not outcome.findings:
        return "not excused: a golden that cannot be relied on is repaired, never waited for"
    others = sorted({finding.kind.value for finding in outcome.findings if finding.kind not in entry.classes})
    return f"not excused: {', '.join(others)} {'are' if len(others) > 1 else 'is'} not what it declares" * bool(others)
