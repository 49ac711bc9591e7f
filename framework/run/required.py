"""A lane that exists for a device is not green without it: what `--require-device` asks for, and whether it was met."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.errors import NothingSelectedError, UsageError
from framework.manifest.suggest import did_you_mean
from framework.run.devices import FAKE
from framework.run.place import needs_device

if TYPE_CHECKING:
    from collections.abc import Iterable

    from framework.manifest.fixture import Fixture

ANY = ""
"""Stands for whatever device there is."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a fixture after a run: the platform it ran on, empty if it was skipped, and those it is for."""

    fixture: str
    ran_on: str
    platforms: tuple[str, ...]


def refuse_without_device(required: str | None, here: Iterable[str], fixtures: Iterable[Fixture]) -> None:
    """Refuse to begin where a device is required and this machine has none; None requires nothing.

    Raises:
        UsageError: the name is no device that a fixture is for, or devices are only pretended.
        NothingSelectedError: it is not here.
    """
    if required is None:
        return
    known = sorted({name for fixture in fixtures for name in fixture.platforms if needs_device(name)})
    if required != ANY and required not in known:
        raise UsageError(
            f"--require-device: no fixture is for a device {required!r}. {did_you_mean(required, known)}"
            " (a fixture's name goes before the option)"
        )
    if os.environ.get(FAKE):
        raise UsageError(f"--require-device: the devices here are only pretended; unset {FAKE}")
    machine = tuple(here)
    if not any(_is_meant(required, name) for name in machine):
        raise NothingSelectedError(f"--require-device: this machine has no {_called(required)}: {', '.join(machine)}")


def unmet(required: str | None, seen: Iterable[Seen]) -> str:
    """Return why a run does not count on a lane that requires a device, or an empty string; None requires nothing."""
    if required is None:
        return ""
    concerned = [each for each in seen if any(_is_meant(required, name) for name in (*each.platforms, each.ran_on))]
    skipped = sorted(each.fixture for each in concerned if not each.ran_on)
    if skipped:
        names = ", ".join(skipped)
        return f"a {_called(required)} is required, and {len(skipped)} of its fixtures were skipped: {names}"
    if not any(_is_meant(required, each.ran_on) for each in concerned):
        return f"a {_called(required)} is required, and no fixture ran on one"
    return ""


def _is_meant(required: str, platform: str) -> bool:
    return platform != "" and needs_device(platform) and required in (ANY, platform)


def _called(required: str) -> str:
    return f"device {required}" if required != ANY else "device"
