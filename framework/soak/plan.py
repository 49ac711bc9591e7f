"""Which way the k-th run of a soak takes: a pure function of the fixture's name and k.

Nothing is drawn from a generator with a state, so a soak that goes on after a day does exactly the runs that are
missing, and one run can be repeated alone. Choices are dealt like cards, a shuffled pack after the other, so that a
short soak too has seen every thread count and every mode about equally often.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from framework.regenerate.variations import MODE_SETTING, THREADS_SETTING, Variation, can_run, other_modes
from framework.run.workload import arrival_step

if TYPE_CHECKING:
    from framework.manifest.fixture import Fixture, Workload
    from framework.run.adapter import Adapter

PLAN_VERSION: Final = 1
"""Raised whenever a number comes to mean another variation, so that kept runs of the old meaning do not count."""
THREAD_COUNTS: Final = (1, 2, 3, 4)
AS_WRITTEN_EVERY: Final = 4
"""Each run whose number this divides changes nothing, so that everything is judged, counters too."""
SHORTEST_SPAN: Final = 8
LONGEST_SPAN: Final = 64

_Card = TypeVar("_Card")


class Arrivals(StrEnum):
    """How the requests of a run arrive.

    SHUFFLED deals the manifest's own places and times to the requests anew; SCATTERED draws their times as well.
    """

    AS_WRITTEN = "as written"
    SHUFFLED = "shuffled"
    SCATTERED = "scattered"


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a soak; `kinds` name each thing it changes, such as `num_threads 3`."""

    number: int
    kinds: tuple[str, ...]
    variation: Variation

    @property
    def is_varied(self) -> bool:
        """Whether anything is changed, so that only per-request fields can be judged."""
        return bool(self.kinds)


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs of one fixture; `overrides` are the combinations of settings that its engine takes."""

    fixture: Fixture
    overrides: tuple[Mapping[str, Any], ...]

    def run(self, number: int) -> PlannedRun:
        """Return the run with this number, from 0 on."""
        if number % AS_WRITTEN_EVERY == 0:
            return _planned(number, {}, None, None, Arrivals.AS_WRITTEN)
        workload, name = self.fixture.workload, self.fixture.name
        turn = number - number // AS_WRITTEN_EVERY - 1
        overrides = dealt(self.overrides, f"{name}:settings", turn)
        style = dealt(_styles(workload), f"{name}:arrivals", turn)
        order, arrivals = _arranged(workload, style, f"{name}:{number}")
        return _planned(number, overrides, order, arrivals, style)


def plan_for(fixture: Fixture, adapter: Adapter) -> Plan:
    """Return the plan of a fixture on an engine: 1 to 4 threads, and every scheduling mode where it pins none."""
    settings = adapter.describe()
    by_threads: list[dict[str, Any]] = [{}]
    if THREADS_SETTING in settings:
        own = fixture.engine.get(THREADS_SETTING, settings[THREADS_SETTING].default)
        by_threads = [{} if count == own else {THREADS_SETTING: count} for count in THREAD_COUNTS]
    by_mode: list[dict[str, Any]] = [{}, *({MODE_SETTING: mode} for mode in other_modes(fixture, settings))]
    combinations = [{**threads, **mode} for threads in by_threads for mode in by_mode]
    taken = tuple(each for each in combinations if can_run(adapter, {**fixture.engine, **each}))
    return Plan(fixture, taken or ({},))


def dealt(cards: Sequence[_Card], key: str, turn: int) -> _Card:
    """Return the card of a turn: every `len(cards)` turns deal each card once, each time in another order."""
    pack, place = divmod(turn, len(cards))
    return cards[permutation(len(cards), f"{key}:{pack}")[place]]


def permutation(count: int, key: str) -> tuple[int, ...]:
    """Return 0 to `count - 1` in an order that the key alone decides."""
    return tuple(sorted(range(count), key=lambda index: (_number(f"{key}:{index}"), index)))


def _number(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")


def _styles(workload: Workload) -> tuple[Arrivals, ...]:
    """Return how requests can arrive: one alone has no order."""
    return tuple(Arrivals) if len(workload.prompts) > 1 else (Arrivals.AS_WRITTEN, Arrivals.SCATTERED)


def _arranged(workload: Workload, style: Arrivals, key: str) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return in which order requests are handed over, and the loop call at which each arrives, by its own index."""
    count = len(workload.prompts)
    if style is Arrivals.AS_WRITTEN:
        return None, None
    order = permutation(count, f"{key}:order")
    if style is Arrivals.SCATTERED:
        span = min(max(SHORTEST_SPAN, 2 * count), LONGEST_SPAN)
        return order, tuple(_number(f"{key}:arrival:{index}") % (span + 1) for index in range(count))
    times = {index: arrival_step(workload, place) for place, index in enumerate(order)}
    return order, tuple(times[index] for index in range(count))


def _planned(
    number: int,
    overrides: Mapping[str, Any],
    order: tuple[int, ...] | None,
    arrivals: tuple[int, ...] | None,
    style: Arrivals,
) -> PlannedRun:
    kinds = [f"{name} {value}" for name, value in sorted(overrides.items())]
    if style is not Arrivals.AS_WRITTEN:
        kinds.append(f"arrivals {style}")
    return PlannedRun(number, tuple(kinds), Variation(", ".join(kinds) or "as written", overrides, order, arrivals))
