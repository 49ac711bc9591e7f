"""Which fixtures a command is about."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from framework.errors import NothingSelectedError
from framework.manifest.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from framework.manifest.fixture import Fixture


def select(fixtures: Iterable[Fixture], patterns: Sequence[str], tags: Sequence[str] = ()) -> tuple[Fixture, ...]:
    """Return the fixtures that match any pattern (all, without patterns) and carry every tag, by name.

    Raises:
        NothingSelectedError: a pattern or a tag matches nothing, or nothing is left.
    """
    every = sorted(fixtures, key=lambda fixture: fixture.name)
    names = [fixture.name for fixture in every]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise NothingSelectedError(f"no fixture matches {pattern!r}. {_suggestion(pattern, names)}")
    known_tags = sorted({tag for fixture in every for tag in fixture.tags})
    for tag in tags:
        if tag not in known_tags:
            raise NothingSelectedError(f"no fixture has the tag {tag!r}. {_suggestion(tag, known_tags)}")
    chosen = tuple(
        fixture
        for fixture in every
        if (not patterns or any(fnmatchcase(fixture.name, pattern) for pattern in patterns))
        and set(tags) <= set(fixture.tags)
    )
    if not chosen:
        what = "no fixture matches both the names and the tags" if every else "there are no fixtures"
        raise NothingSelectedError(f"{what}; `golden list` shows what there is")
    return chosen


def _suggestion(wanted: str, known: Sequence[str]) -> str:
    by_last_part = [name for name in known if name.rpartition("/")[2] == wanted]
    hint = f'Did you mean "{by_last_part[0]}"?' if by_last_part else did_you_mean(wanted, known)
    return hint or "`golden list` shows what there is."
