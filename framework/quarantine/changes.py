"""What changed in a quarantine between two revisions: an entry that is renewed, or excuses more, is for a reviewer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from framework.quarantine.entry import Entry, Quarantine


class ChangeKind(StrEnum):
    """What became of one fixture on one platform; the names are part of the machine-readable interface."""

    ADDED = "ADDED"
    RENEWED = "RENEWED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"


@dataclass(frozen=True, slots=True)
class QuarantineChange:
    """A change of one fixture's entry on one platform, in words."""

    kind: ChangeKind
    fixture: str
    platform: str
    words: str

    def as_json(self) -> dict[str, Any]:
        """Return the change as it stands under `quarantine` in a `golden.diff/1` document."""
        return {"change": self.kind.value, "fixture": self.fixture, "platform": self.platform, "message": self.words}

    def in_words(self) -> str:
        """Return the change as a line."""
        return f"QUARANTINE {self.kind} {self.fixture} on {self.platform}: {self.words}"


def quarantine_changes(base: Quarantine, head: Quarantine) -> tuple[QuarantineChange, ...]:
    """Return what changed from one quarantine to another, by fixture and platform."""
    before, after = _by_place(base), _by_place(head)
    return tuple(
        QuarantineChange(kind, *place, words)
        for place in sorted(before.keys() | after.keys())
        for kind, words in _changes(before.get(place), after.get(place))
    )


def _by_place(quarantine: Quarantine) -> dict[tuple[str, str], Entry]:
    return {(entry.fixture, platform): entry for entry in quarantine.entries for platform in entry.platforms}


def _changes(before: Entry | None, after: Entry | None) -> Iterator[tuple[ChangeKind, str]]:
    if before is None:
        assert after is not None, "it stands in one of the two"
        yield ChangeKind.ADDED, f"{after.class_names()} until {after.expires}; owner {after.owner}, issue {after.issue}"
        return
    if after is None:
        yield ChangeKind.REMOVED, f"it excused {before.class_names()}; issue {before.issue}"
        return
    if (before.since, before.expires) != (after.since, after.expires):
        issue = (
            f"with the same issue {after.issue}" if after.issue == before.issue else f"{before.issue} → {after.issue}"
        )
        yield ChangeKind.RENEWED, f"{before.since} to {before.expires} → {after.since} to {after.expires}, {issue}"
    moved = [
        f"{name} {then} → {now}"
        for name, then, now in (
            ("class", before.class_names(), after.class_names()),
            ("owner", before.owner, after.owner),
            ("issue", before.issue, after.issue),
        )
        if then != now
    ]
    if moved:
        yield ChangeKind.CHANGED, ", ".join(moved)
