"""What the engines of one thread of a run hold: a lease of the devices that the task at hand needs.

The lease stays while fixtures follow each other on the same platform, so that an engine and its model stay loaded.
Where others wait for the device it is passed on between two fixtures, but not before it was held for a few times as
long as it took to get an engine going: else everybody would load models and nobody would run.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from framework.compare.finding import FindingClass
from framework.errors import UsageError
from framework.run.device_memory import wait_until_free
from framework.run.devices import VISIBLE, Device, devices_for, usable_devices
from framework.run.lease import Lease, LeaseStoppedError, LeaseTimeoutError, acquire, lease_folder
from framework.run.task import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

WAIT: Final = "GOLDEN_DEVICE_WAIT_S"
FREE_MIB: Final = "GOLDEN_DEVICE_FREE_MIB"
FREE_WAIT: Final = "GOLDEN_DEVICE_FREE_WAIT_S"
_DEFAULTS: Final = {WAIT: 3600, FREE_MIB: 1024, FREE_WAIT: 120}
_MOST: Final = 10_000_000
_KEPT_FOR_STARTS: Final = 3
_LONGEST_TURN_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait for a device, and for its memory, and how much of that may be in use when an engine starts."""

    wait_s: int
    free_mib: int
    free_wait_s: int

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Limits:
        """Return the limits that an environment sets.

        Raises:
            UsageError: one is no whole number.
        """
        return cls(*(_number(environment, name) for name in (WAIT, FREE_MIB, FREE_WAIT)))


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "") or str(_DEFAULTS[name])
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST)) and int(text) <= _MOST):
        raise UsageError(f"{name}={text!r} is no whole number from 0 to {_MOST}")
    return int(text)


@dataclass(slots=True)
class Claim:
    """The lease that a runner holds, or several that are run in turn; `hear` is told when it has to wait for long."""

    hear: Callable[[str], None] = lambda _: None
    lease: Lease | None = None
    _platform: str = ""
    _users: set[int] = field(default_factory=set)
    _taken: float = 0.0
    _start_s: float | None = None
    _devices: tuple[Device, ...] | None = None

    def fits(self, platform: str, count: int) -> bool:
        """Say whether what is held is what a task needs."""
        return self.lease is not None and (self._platform, len(self.lease.devices)) == (platform, count)

    def take(
        self,
        user: int,
        platform: str,
        count: int,
        fixture_name: str,
        is_stopped: Callable[[], bool],
    ) -> Failure | None:
        """Hold `count` devices of a platform for a fixture, the same as before where it can be; wait if need be.

        `user` is the runner that asks. Return why there is none.

        Raises:
            UsageError: the environment says something about devices that makes no sense.
        """
        if self.lease is None:
            failure = self._acquire(platform, count, is_stopped)
            if failure is not None:
                return failure
        assert self.lease is not None
        assert self.fits(platform, count), "runners that share a claim are on one platform at a time"
        self._users.add(user)
        self.lease.tell(fixture_name)
        return None

    def wait_for_memory(self, user: int, is_stopped: Callable[[], bool]) -> Failure | None:
        """Wait until the devices hold nothing, before an engine starts; return why they still do.

        Where another runner of this claim has an engine there, that one is what they hold.
        """
        if self.lease is None or self._users - {user}:
            return None
        limits = Limits.of(os.environ)
        why = wait_until_free(
            self.lease.devices, allowed_mib=limits.free_mib, limit_s=limits.free_wait_s, is_stopped=is_stopped
        )
        return Failure(FindingClass.OUT_OF_MEMORY, f"no engine was started: {why} ({FREE_MIB})") if why else None

    def has_run(self) -> None:
        """Know that an engine has given its first answer on the devices."""
        if self._start_s is None:
            self._start_s = time.monotonic() - self._taken

    def should_pass_on(self) -> bool:
        """Say whether somebody waits for the devices and they were held for long enough."""
        if self.lease is None:
            return False
        turn_s = min(_KEPT_FOR_STARTS * (self._start_s or 0.0), _LONGEST_TURN_S)
        return time.monotonic() - self._taken >= turn_s and self.lease.is_wanted()

    def leave(self, user: int) -> None:
        """Have a runner's engine off the devices; with the last one the lease ends."""
        self._users.discard(user)
        if self.lease is not None and not self._users:
            self.lease.release()
            self.lease = None

    def _acquire(self, platform: str, count: int, is_stopped: Callable[[], bool]) -> Failure | None:
        limits, folder = Limits.of(os.environ), lease_folder(os.environ)
        if self._devices is None:
            self._devices = usable_devices(os.environ)
        candidates = devices_for(platform, self._devices)
        try:
            self.lease = acquire(
                folder, candidates, count, limit_s=limits.wait_s, is_stopped=is_stopped, hear=self.hear
            )
        except LeaseTimeoutError as error:
            return Failure(FindingClass.TIME_LIMIT, f"no engine was started: {error} ({WAIT})")
        except LeaseStoppedError:
            return Failure(FindingClass.ENGINE_CRASH, "the run was stopped while it waited for a device")
        self._platform, self._taken, self._start_s = platform, time.monotonic(), None
        return None


def engine_variables(lease: Lease | None) -> dict[str, str]:
    """Return what an engine's environment says of the devices that it may use."""
    visible = [device.visible for device in lease.devices if device.visible is not None] if lease else []
    return {VISIBLE: ",".join(visible)} if visible else {}


def engine_locks(lease: Lease | None) -> list[Path]:
    """Return the files whose locks an engine on these devices holds."""
    return lease.engine_locks() if lease else []
