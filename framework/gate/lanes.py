"""`gate.yaml`: the lanes that gate, how small each may become, and what a change declares that it judges less."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from framework.errors import ManifestError, UsageError
from framework.manifest.schema import Schema, violations
from framework.manifest.strict_yaml import load_bytes
from framework.manifest.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

LANES_FILE: Final = "gate.yaml"

KINDS: Final = ("async", "legacy", "replay")
"""Kinds of fixtures of which a lane needs at least one, by what the engine resolved for their goldens."""


@dataclass(frozen=True, slots=True)
class Lane:
    """What must gate on one platform: at least so many fixtures and values, and one fixture of each kind.

    `needs` is None where every kind that the engine has is needed. `is_written` says that it stands in `gate.yaml`.
    """

    name: str
    platform: str
    fixtures: int = 1
    values: int = 1
    needs: tuple[str, ...] | None = None
    models_left_out: tuple[str, ...] = ()
    is_written: bool = True


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes by name, and reasons by what they excuse: a fixture, `FIXTURE on PLATFORM`, or `lane NAME`."""

    lanes: Mapping[str, Lane] = field(default_factory=dict)
    declared: Mapping[str, str] = field(default_factory=dict)

    def choose(self, name: str | None) -> Lane:
        """Return the lane of a name, the first one without a name; where none is written, one for that platform.

        Raises:
            UsageError: there is no such lane.
        """
        if not self.lanes:
            platform = name or "cpu"
            return Lane(platform, platform, is_written=False)
        if name is None:
            return next(iter(self.lanes.values()))
        if name not in self.lanes:
            raise UsageError(f"--lane {name!r}: {LANES_FILE} has no such lane. {did_you_mean(name, self.lanes)}")
        return self.lanes[name]


def parse_lanes(data: bytes | None, source: str = LANES_FILE) -> Lanes:
    """Read `gate.yaml`; None stands for a repository that has none.

    Raises:
        ManifestError: it cannot be read; the message names line, what is wrong and the way out.
    """
    if data is None:
        return Lanes()
    document = load_bytes(data, source=source)
    found = violations(document.value, _schema())
    if not isinstance(document.value, dict) or found:
        messages = [f"{source}:{document.mark(each.place).line}: {each.sentence()}" for each in found]
        raise ManifestError("\n".join(messages) or f"{source}:1: expected a map that begins with gate: 1.")
    lanes = {name: _lane(name, value) for name, value in document.value["lanes"].items()}
    return Lanes(lanes, document.value.get("declared", {}))


def _lane(name: str, value: Mapping[str, Any]) -> Lane:
    return Lane(
        name,
        value["platform"],
        value["fixtures"],
        value["values"],
        tuple(value["needs"]) if "needs" in value else None,
        tuple(value.get("models_left_out", ())),
    )


def kinds_of(settings: Mapping[str, Any]) -> frozenset[str]:
    """Return the kinds of a fixture, from the settings that its golden was recorded with."""
    values = {name: entry.get("value") for name, entry in settings.items() if isinstance(entry, dict)}
    kinds = {mode for mode in ("async", "legacy") if values.get("async_sched_mode") == mode}
    return frozenset(kinds | ({"replay"} if values.get("routing_replay_path") is not None else set()))


def kinds_of_engine(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the kinds that an engine can have at all, from its settings (`Adapter.describe`)."""
    has = {"async": "async_sched_mode", "legacy": "async_sched_mode", "replay": "routing_replay_path"}
    return tuple(kind for kind in KINDS if has[kind] in settings)


@functools.cache
def _schema() -> Schema:
    text = resources.files("framework.gate").joinpath("gate.schema.json").read_text("utf-8")
    schema: Schema = json.loads(text)
    return schema
