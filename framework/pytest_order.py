"""The order in which a distributed pytest run hands out fixtures: the longest first, those of a model together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.pytest_items import FixtureItem
from framework.report.streams import log
from framework.run.durations import expected_seconds, read_durations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pytest

Recorded = dict[str, dict[str, float]]
"""Seconds by root, then by name of fixture: the longest that is recorded on any platform."""


def recorded(roots: Iterable[Path]) -> Recorded:
    """Return the seconds that are recorded for the fixtures of some roots; a damaged record is a line on stderr."""
    found: Recorded = {}
    for root in sorted(roots):
        longest: dict[str, float] = {}
        for seconds in read_durations(root / ".golden", log).values():
            longest.update({name: max(value, longest.get(name, 0.0)) for name, value in seconds.items()})
        if longest:
            found[str(root)] = longest
    return found


def put_longest_first(items: list[pytest.Item], durations: Mapping[str, Mapping[str, float]]) -> None:
    """Order the fixtures among the items in place; all other items stay where they are.

    Models with the most work come first, so that one with `--dist loadgroup` begins early too.
    """
    places = [index for index, item in enumerate(items) if isinstance(item, FixtureItem)]
    fixtures = [item for item in items if isinstance(item, FixtureItem)]
    seconds = {item: expected_seconds(durations.get(str(item.root), {}), item.fixture.name) for item in fixtures}
    of_model: dict[tuple[Path, str], float] = {}
    for item in fixtures:
        model = (item.root, item.fixture.model)
        of_model[model] = of_model.get(model, 0.0) + seconds[item]

    def longest_first(item: FixtureItem) -> tuple[float, str, str, float, str]:
        model = item.fixture.model
        return (-of_model[item.root, model], str(item.root), model, -seconds[item], item.fixture.name)

    for index, item in zip(places, sorted(fixtures, key=longest_first), strict=True):
        items[index] = item
