"""What is wrong with a quarantine beyond its form: entries without an end, without a fixture, or twice.

Each of these fails, so that a quarantine cannot outlive the promise that it was made with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.manifest.linted import LintProblem
from framework.manifest.suggest import did_you_mean
from framework.quarantine.entry import LONGEST_DAYS
from framework.quarantine.load import QUARANTINE_FILE
from framework.visible import is_visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import date

    from framework.quarantine.entry import Entry, Quarantine


def quarantine_problems(
    quarantine: Quarantine,
    platforms: Mapping[str, Collection[str]],
    today: date,
    *,
    unreadable: Collection[str] = (),
) -> tuple[LintProblem, ...]:
    """Return every problem of a quarantine, in the order of the file.

    `platforms` holds those of every fixture by its name. Nothing is said of the fixtures in `unreadable`, whose
    manifests have errors of their own.
    """
    found: list[LintProblem] = []
    for index, entry in enumerate(quarantine.entries):
        found.extend(_days(index, entry, today))
        found.extend(_words(index, entry))
        if entry.fixture not in unreadable:
            found.extend(_fixture(index, entry, platforms))
        found.extend(_doubled(index, quarantine.entries))
    return tuple(found)


def _days(index: int, entry: Entry, today: date) -> Iterator[LintProblem]:
    since, expires = entry.since.isoformat(), entry.expires.isoformat()
    length = (entry.expires - entry.since).days
    if entry.since > today:
        message = f"is {since}, and today is {today.isoformat()} (UTC)"
        yield _problem(index, entry, "since", message, "Write the day on which the entry was added")
    if length < 0:
        yield _problem(index, entry, "expires", f"is {expires}, before since, {since}", "Write a later day")
    elif length > LONGEST_DAYS:
        message = f"is {expires}, {length} days after since; at most {LONGEST_DAYS} are allowed"
        yield _problem(index, entry, "expires", message, f"Repair it in {LONGEST_DAYS} days, or remove the fixture")
    elif entry.expires < today:
        message = f"the entry of {entry.fixture} expired on {expires}, and today is {today.isoformat()} (UTC)"
        way_out = (
            f"{entry.owner} has to repair it ({entry.issue}); remove the entry, or let a reviewer agree to a new one"
        )
        yield _problem(index, entry, "expires", message, way_out)


def _words(index: int, entry: Entry) -> Iterator[LintProblem]:
    for key, text, meaning in (
        ("owner", entry.owner, "who repairs it"),
        ("issue", entry.issue, "where its repair is followed"),
    ):
        if not is_visible(text):
            yield _problem(index, entry, key, "is empty", f"Say {meaning}")
        elif not text.isprintable():
            yield _problem(index, entry, key, "holds a control character", "Write one line of plain text")


def _fixture(index: int, entry: Entry, platforms: Mapping[str, Collection[str]]) -> Iterator[LintProblem]:
    its_own = platforms.get(entry.fixture)
    if its_own is None:
        hint = did_you_mean(entry.fixture, platforms) or "`golden list` has the names"
        yield _problem(index, entry, "fixture", f"there is no fixture {entry.fixture}", f"{hint} Or remove the entry")
        return
    for platform in entry.platforms:
        if platform not in its_own:
            message = f"the fixture {entry.fixture} does not run on {platform}"
            yield _problem(index, entry, "platforms", message, f"It runs on {', '.join(its_own)}")


def _doubled(index: int, entries: tuple[Entry, ...]) -> Iterator[LintProblem]:
    entry = entries[index]
    for earlier in entries[:index]:
        shared = [platform for platform in entry.platforms if platform in earlier.platforms]
        if earlier.fixture == entry.fixture and shared:
            message = f"{entry.fixture} on {', '.join(shared)} stands in line {earlier.line} already"
            yield _problem(index, entry, "fixture", message, "Keep one of the two")
            return


def _problem(index: int, entry: Entry, key: str, message: str, way_out: str) -> LintProblem:
    return LintProblem(QUARANTINE_FILE, entry.line, f"entries[{index}].{key}", message, way_out)
