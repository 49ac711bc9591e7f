"""Relations between the goldens that will be in force once several changes are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.compare.relations import check_relation
from framework.errors import ExitCode
from framework.golden.store import Golden
from framework.regenerate.plan import Change, Kind
from framework.regenerate.prove import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from framework.manifest.fixture import Fixture, Relation
    from framework.regenerate.today import Today

_MOST_SHOWN = 5
_MOVES = (Kind.NEW, Kind.CHANGED)


def with_relations(changes: Sequence[Change], today: Today) -> list[Change]:
    """Refuse every change after which a relation would not hold: one of its own fixture, or one that names it.

    All changes are taken as made. A fixture that none of them touches is looked at only if its own golden can be
    believed today; what is wrong with that one is not what they would do.
    """
    coming = {
        (change.fixture, change.platform): change.document
        for change in changes
        if change.kind in _MOVES and change.document is not None
    }
    return [
        change.refused_for(list(_broken_by(change, coming, today))) if change.kind in _MOVES else change
        for change in changes
    ]


def _broken_by(
    change: Change,
    coming: Mapping[tuple[str, str], Mapping[str, Any]],
    today: Today,
) -> Iterator[Problem]:
    own = today.fixtures[change.fixture]
    for relation in own.relations:
        yield from _check(own, relation, change.platform, coming, today)
    for other in today.fixtures.values():
        if (other.name, change.platform) in coming or change.platform not in other.platforms:
            continue
        naming = [relation for relation in other.relations if relation.other == own.name]
        if naming and isinstance(today.golden(other, change.platform), Golden):
            for relation in naming:
                yield from _check(other, relation, change.platform, coming, today)


def _check(
    fixture: Fixture,
    relation: Relation,
    platform: str,
    coming: Mapping[tuple[str, str], Mapping[str, Any]],
    today: Today,
) -> Iterator[Problem]:
    this, other = (_document(name, platform, coming, today) for name in (fixture.name, relation.other))
    title = f"RELATION {fixture.name} {relation.kind} {relation.other}"
    if this is None or other is None:
        message = f"{relation.other} has no golden on {platform} that can be relied on; bring in both at once"
        yield Problem(ExitCode.REGRESSION, f"{title}: {message}")
        return
    for finding in check_relation(relation, this, other, fixture.rules)[:_MOST_SHOWN]:
        yield Problem(ExitCode.REGRESSION, f"{title}: {finding.path}: {finding.message}")


def _document(
    name: str,
    platform: str,
    coming: Mapping[tuple[str, str], Mapping[str, Any]],
    today: Today,
) -> Mapping[str, Any] | None:
    """Return the golden of a fixture that will be in force, None if there will be none to rely on."""
    if (name, platform) in coming:
        return coming[name, platform]
    fixture = today.fixtures.get(name)
    if fixture is None or platform not in fixture.platforms:
        return None
    golden = today.golden(fixture, platform)
    return golden.document if isinstance(golden, Golden) else None
