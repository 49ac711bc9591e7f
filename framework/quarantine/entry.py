"""What stands in `quarantine.yaml`, as plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datetime import date

    from framework.compare.finding import FindingClass

LONGEST_DAYS: Final = 30
"""The most days between the first and the last day of an entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One fixture in quarantine.

    Findings of `classes` on `platforms` are excused from `since` to `expires`, both days included, in UTC. `line` is
    where the entry begins in its file.
    """

    fixture: str
    platforms: tuple[str, ...]
    classes: tuple[FindingClass, ...]
    owner: str
    issue: str
    since: date
    expires: date
    line: int = 1

    def days_left(self, today: date) -> int:
        """Return the days until the last one it holds on: 0 on that day, negative when it has expired."""
        return (self.expires - today).days

    def holds_on(self, today: date) -> bool:
        """Say whether this is one of the days between `since` and `expires`."""
        return self.since <= today <= self.expires

    def class_names(self) -> str:
        """Return the classes it excuses, for a sentence."""
        return ", ".join(kind.value for kind in self.classes)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """All entries of a root, in the order of the file."""

    entries: tuple[Entry, ...] = ()

    def entry_for(self, fixture_name: str, platform: str | None) -> Entry | None:
        """Return the entry that speaks of a fixture on a platform, if there is one."""
        return next(
            (entry for entry in self.entries if entry.fixture == fixture_name and platform in entry.platforms),
            None,
        )


NO_QUARANTINE: Final = Quarantine()


@dataclass(frozen=True, slots=True)
class Note:
    """What an outcome says of its fixture's entry: whether it was excused by it on `platform`, or why not.

    `consecutive_passes` is counted where runs are counted; None elsewhere.
    """

    entry: Entry
    platform: str
    days_left: int
    excused: bool
    why_not: str = ""
    consecutive_passes: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the note as it stands under `quarantine` in the entry of a `golden.run/1` document."""
        return {
            "owner": self.entry.owner,
            "issue": self.entry.issue,
            "class": [kind.value for kind in self.entry.classes],
            "platform": self.platform,
            "since": self.entry.since.isoformat(),
            "expires": self.entry.expires.isoformat(),
            "days_left": self.days_left,
            "excused": self.excused,
            "why_not": self.why_not,
            "consecutive_passes": self.consecutive_passes,
        }

    def in_words(self) -> str:
        """Return owner, issue and end, and why it did not help where it did not."""
        entry = self.entry
        end = "its last day" if self.days_left == 0 else f"{self.days_left} day{'s' * (self.days_left != 1)} left"
        said = (
            f"in quarantine for {entry.class_names()} on {self.platform} until {entry.expires.isoformat()} ({end});"
            f" owner {entry.owner}, issue {entry.issue}"
        )
        return f"{said}; {self.why_not}" if self.why_not else said
