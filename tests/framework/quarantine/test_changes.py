from __future__ import annotations

from datetime import timedelta

from framework.compare.finding import FindingClass
from framework.quarantine.changes import quarantine_changes
from framework.quarantine.entry import Entry, Quarantine
from tests.framework.quarantine.entries import DAY, entry


def words(before: tuple[Entry, ...], after: tuple[Entry, ...]) -> list[str]:
    return [change.in_words() for change in quarantine_changes(Quarantine(before), Quarantine(after))]


def test_nothing_changed() -> None:
    assert words((entry(line=3),), (entry(line=9),)) == []


def test_each_platform_comes_and_goes_by_itself() -> None:
    both = entry(platforms=("cpu", "nvidia-h200"))
    assert words((entry(),), (both,)) == [
        "QUARANTINE ADDED first on nvidia-h200: TOKEN until 2026-06-20; owner @ada, issue #12"
    ]
    assert words((both,), ()) == [
        "QUARANTINE REMOVED first on cpu: it excused TOKEN; issue #12",
        "QUARANTINE REMOVED first on nvidia-h200: it excused TOKEN; issue #12",
    ]


def test_other_days_are_a_renewal_and_the_issue_is_named() -> None:
    later = {"since": DAY, "expires": DAY + timedelta(days=30)}
    days = "2026-06-05 to 2026-06-20 → 2026-06-15 to 2026-07-15"
    assert words((entry(),), (entry(**later),)) == [f"QUARANTINE RENEWED first on cpu: {days}, with the same issue #12"]
    assert words((entry(),), (entry(**later, issue="#13"),)) == [
        f"QUARANTINE RENEWED first on cpu: {days}, #12 → #13",
        "QUARANTINE CHANGED first on cpu: issue #12 → #13",
    ]


def test_more_classes_and_another_owner_are_a_change() -> None:
    wider = entry(classes=(FindingClass.TOKEN, FindingClass.COUNTER), owner="@bob")
    assert words((entry(),), (wider,)) == [
        "QUARANTINE CHANGED first on cpu: class TOKEN → TOKEN, COUNTER, owner @ada → @bob"
    ]
