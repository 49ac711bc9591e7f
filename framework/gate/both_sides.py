"""STALE_REGEN: a golden that was recorded against another golden than the one it replaces.

Two changes that record the same golden each prove it on a tree without the other. Whichever comes second has to be
proven again on the merged tree; taking either side would undo one of them without anybody having looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from framework.gate.refusal import Refusal, RefusalClass

_WAY_OUT = "On the merged tree take the base's golden, record it again with `golden regen --reason …`, and commit that"


class History(Protocol):
    """What is asked of the repository."""

    def goldens_at(self, commit: str) -> Mapping[str, str]:
        """Return the goldens of a commit: path to the name of its content."""
        ...

    def ancestor(self, one: str, other: str) -> str | None:
        """Return where two commits parted."""
        ...

    def seals(self, content: str) -> tuple[str | None, str | None]:
        """Return the seal of a golden and that of the golden it was planned against, None where it says none."""
        ...

    def earlier(self, commit: str, path: str) -> Sequence[str]:
        """Return the names of the contents that a golden had in the history of a commit, the latest first."""
        ...


@dataclass(frozen=True, slots=True)
class Landed:
    """One commit put on top of another (`before`); `merged` are its other parents."""

    commit: str
    before: str
    merged: tuple[str, ...]


def stale_regenerations(
    history: History, base: str, head: str, since: str, landed: Sequence[Landed]
) -> Iterator[Refusal]:
    """Yield a refusal for every golden that was changed on both sides and not recorded again.

    A merge that keeps the golden of what it is put upon changes nothing, and the run judges it. `since` is where base
    and head parted, `landed` the commits from there to the head along first parents.
    """
    if since != base:
        for path in _changed_by_both(history, since, base, head):
            message = (
                f"{path} was changed by the base since {since[:12]}, where the head parted from it, and by the head"
            )
            yield _refusal(path, message, "")
    for step in landed:
        yield from _stale_in(history, step)


def _stale_in(history: History, step: Landed) -> Iterator[Refusal]:
    now, before = history.goldens_at(step.commit), history.goldens_at(step.before)
    taken = set()
    for side in step.merged:
        parted = history.ancestor(step.before, side)
        if parted is None:
            continue
        theirs = history.goldens_at(side)
        for path in _changed_by_both(history, parted, step.before, side):
            if now.get(path) == theirs.get(path):
                taken.add(path)
                message = f"both sides of the merge changed {path} since {parted[:12]}, and it takes the later one's"
                yield _refusal(path, message, step.commit)
    for path in sorted(now.keys() & before.keys() - taken):
        if now[path] != before[path] and _replaces_an_older(history, step, path, now, before):
            message = f"{path} was recorded against a golden that was replaced before {step.commit[:12]} came in"
            yield _refusal(path, message, step.commit)


def _replaces_an_older(
    history: History, step: Landed, path: str, now: Mapping[str, str], before: Mapping[str, str]
) -> bool:
    """Say whether a golden was planned against a committed one that is no longer in force.

    One that was never committed says nothing: who records twice before a commit plans against the first. A golden that
    was in force before, byte for byte, is an undoing, and the run judges it.
    """
    _, planned = history.seals(now[path])
    in_force, _ = history.seals(before[path])
    if planned is None or planned == in_force:
        return False
    earlier = history.earlier(step.before, path)
    return now[path] not in earlier and planned in [history.seals(content)[0] for content in earlier]


def _changed_by_both(history: History, since: str, one: str, other: str) -> list[str]:
    then, here, there = (history.goldens_at(commit) for commit in (since, one, other))
    paths = sorted({*then, *here, *there})
    return [
        path
        for path in paths
        if then.get(path) != here.get(path) != there.get(path) and then.get(path) != there.get(path)
    ]


def _refusal(path: str, message: str, commit: str) -> Refusal:
    return Refusal(RefusalClass.STALE_REGEN, path, f"{message}. {_WAY_OUT}", commit)
