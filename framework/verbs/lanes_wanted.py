"""How many engine processes a run gets, and which."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from framework.report.streams import log
from framework.run.claim import Claim
from framework.run.devices import usable_devices
from framework.run.durations import read_durations
from framework.run.place import needs_device
from framework.run.subprocess_runner import SubprocessRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from framework.manifest.fixture import Fixture
    from framework.run.engine_time import EngineTime
    from framework.run.session import Session


def prepare_lanes(session: Session, selected: Sequence[Fixture], jobs: int | None, engine_time: EngineTime) -> None:
    """Give a session, which has one runner, as many as `jobs` asks for; None is for as many as are of use here.

    There are never more than fixtures to run.
    """
    platforms = [platform for fixture in selected if (platform := session.platform_of(fixture)) is not None]
    on_devices = any(map(needs_device, platforms))
    session.devices = len(usable_devices(os.environ)) if on_devices and jobs != 1 else 0
    wanted = usable_lanes(on_devices, session.devices) if jobs is None else jobs
    lanes = max(min(wanted, len(platforms)), 1)
    session.more_runners = tuple(
        SubprocessRunner(session.workspace, engine_time=engine_time, claim=Claim(log)) for _ in range(lanes - 1)
    )
    if session.more_runners:
        session.durations = read_durations(session.workspace.state_folder, log)


def usable_lanes(needs_devices: bool, devices: int) -> int:
    """Return how many engines can be of use beside each other: one for each device, or one for every two cores."""
    if needs_devices:
        return max(devices, 1)
    return max(len(os.sched_getaffinity(0)) // 2, 1)
