"""Ways to run a fixture that may change how it is scheduled, and must not change what any request gets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.run.workload import all_arrive_at_start

if TYPE_CHECKING:
    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter, SettingDescription
    from framework.run.task import Task

THREADS_SETTING = "num_threads"
MODE_SETTING = "async_sched_mode"
THREAD_COUNTS = (1, 2)


@dataclass(frozen=True, slots=True)
class Variation:
    """One such way: settings laid over the pinned ones, an order of the requests, and when each arrives."""

    name: str
    overrides: Mapping[str, Any]
    order: tuple[int, ...] | None
    arrivals: tuple[int, ...] | None = None

    def of(self, task: Task) -> Task:
        """Return the task, varied."""
        return dataclasses.replace(task, overrides=self.overrides, order=self.order, arrivals=self.arrivals)


def variations(fixture: Fixture, adapter: Adapter) -> tuple[Variation, ...]:
    """Return every variation that makes sense for a fixture and that its engine has the settings for."""
    settings = adapter.describe()
    found = []
    if THREADS_SETTING in settings:
        found += [Variation(f"a run on {count} thread(s)", {THREADS_SETTING: count}, None) for count in THREAD_COUNTS]
    found += [
        Variation(f"a run with {MODE_SETTING} {mode}", {MODE_SETTING: mode}, None)
        for mode in other_modes(fixture, settings)
    ]
    count = len(fixture.workload.prompts)
    if count > 1 and all_arrive_at_start(fixture.workload):
        found.append(Variation("a run with the requests in reverse", {}, tuple(reversed(range(count)))))
    return tuple(each for each in found if can_run(adapter, {**fixture.engine, **each.overrides}))


def other_modes(fixture: Fixture, settings: Mapping[str, SettingDescription]) -> tuple[Any, ...]:
    """Return the scheduling modes that a fixture does not run in, none if it pins its own."""
    if MODE_SETTING not in settings or MODE_SETTING in fixture.engine:
        return ()
    description = settings[MODE_SETTING]
    return tuple(mode for mode in description.choices if mode != description.default)


def can_run(adapter: Adapter, pinned: Mapping[str, Any]) -> bool:
    """Say whether an engine takes these settings together."""
    try:
        adapter.check_settings(pinned)
    except ValueError:
        return False
    return True
