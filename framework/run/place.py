"""Which fixture a lane runs next: a pure function, so that every order it can lead to is tested without an engine.

A lane is one engine process after another, beside other lanes. It stays with the model it has loaded while fixtures of
that model wait, the longest first. Then it joins the model with the most work for each lane that is already there, so
a model that dominates is split over lanes and a small one is not. Placement decides when a fixture runs, never what is
said of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LOADING_S: Final = 2.0
"""About what it costs to start an engine and load a model: no lane does that for less work, unless it is the first."""


@dataclass(frozen=True, order=True, slots=True)
class Affinity:
    """What stays loaded in an engine's process from one fixture to the next."""

    platform: str
    model: str


@dataclass(frozen=True, slots=True)
class Work:
    """One fixture that is to run.

    `seconds` are those it took the last time, or a guess. `is_timed` says that times are judged in it, so that nothing
    may run beside it.
    """

    name: str
    affinity: Affinity
    seconds: float = 0.0
    needs_device: bool = False
    is_timed: bool = False


def needs_device(platform: str) -> bool:
    """Say whether what runs on a platform needs a device that it shares with nothing else: all but `cpu` do."""
    return platform != "cpu"


def next_work(
    waiting: Collection[Work],
    loaded: Mapping[int, Affinity],
    lane: int,
    *,
    lanes: int,
    devices: int,
) -> Work | None:
    """Return what a lane runs next, or None if there is nothing for it, now or later.

    `loaded` holds, by lane, what is loaded in the lanes that are at work. No more lanes than there are `devices` are
    given work that needs one. Ties fall by name.
    """
    others = {other: affinity for other, affinity in loaded.items() if other != lane}
    places = _platforms_with_a_device(waiting)
    has_place = sum(affinity.platform in places for affinity in others.values()) < max(devices, 1)
    open_to_it = [work for work in waiting if has_place or not work.needs_device]
    if not open_to_it:
        return None
    mine = [work for work in open_to_it if work.affinity == loaded.get(lane)]
    longest = min(open_to_it, key=_longest_first)
    share = sum(work.seconds for work in waiting) / lanes
    if longest.seconds > max(share, LOADING_S):
        return longest
    if mine:
        return min(mine, key=_longest_first)
    affinity = _most_work(open_to_it, others)
    return min((work for work in open_to_it if work.affinity == affinity), key=_longest_first) if affinity else None


def in_order(timed: Collection[Work]) -> list[Work]:
    """Return work that runs alone in the order in which it does: by model, then by name."""
    return sorted(timed, key=lambda work: (work.affinity, work.name))


def _platforms_with_a_device(waiting: Collection[Work]) -> frozenset[str]:
    return frozenset(work.affinity.platform for work in waiting if work.needs_device)


def _longest_first(work: Work) -> tuple[float, Affinity, str]:
    return (-work.seconds, work.affinity, work.name)


def _most_work(waiting: Collection[Work], others: Mapping[int, Affinity]) -> Affinity | None:
    """Return the model that gains most from one more lane; None if every one is better left to those it has."""
    lanes_there = list(others.values())
    gains: dict[Affinity, float] = {}
    for affinity in {work.affinity for work in waiting}:
        seconds = sum(work.seconds for work in waiting if work.affinity == affinity)
        there = lanes_there.count(affinity)
        if there == 0 or seconds / there > LOADING_S:
            gains[affinity] = seconds / (there + 1)
    return min(gains, key=lambda affinity: (-gains[affinity], affinity), default=None)
