"""One engine on a device at a time, whoever starts it: leases that all processes of a user on a machine agree on.

A lease is a lock on a file, which the system gives back when its holder dies, however it dies. Beside it lie

- `ID.next`: whoever waits for a device holds this lock too, so a newcomer cannot overtake, and a holder can see that
  somebody waits;
- `ID.engine-…`: each engine's process holds one, so an engine that outlives its runner for a moment still counts;
- `ID.holder`: who holds the lease, for messages only.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import json
import os
import re
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import filelock

from framework.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from framework.run.devices import Device

FOLDER: Final = "GOLDEN_LEASE_FOLDER"
"""Where leases lie, if not in the usual place: every process that shares the devices must be told the same."""

POLL_S: Final = 0.05
_SAID_AFTER_S: Final = 5.0
_SEVERAL: Final = "several.next"
_OTHERS_MAY_WRITE: Final = 0o022


class LeaseTimeoutError(Exception):
    """No device became free in time; the message says who holds which."""


class LeaseStoppedError(Exception):
    """Whoever waited was told to stop."""


def lease_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of leases, made if need be.

    It depends on the user alone, not on `TMPDIR` or a login session: two processes that were started in different ways
    must not look in different places.

    Raises:
        UsageError: it cannot be made, or is not the user's own.
    """
    given = environment.get(FOLDER)
    folder = Path(given) if given else Path("/tmp") / f"golden-devices-{os.getuid()}"  # noqa: S108 - checked below
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{folder}: leases of devices cannot be kept there: {why}; name a folder in {FOLDER}"
        ) from None
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & _OTHERS_MAY_WRITE
    if not is_ours:
        raise UsageError(
            f"{folder}: leases of devices are not kept there, since it is a link, belongs to somebody else, or others"
            f" may write to it; remove it, or name a folder in {FOLDER}"
        )
    return folder


@dataclass(slots=True)
class Lease:
    """Devices that nobody else may use until `release`."""

    folder: Path
    devices: tuple[Device, ...]
    _locks: list[filelock.BaseFileLock]
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def tell(self, fixture_name: str) -> None:
        """Let others read who holds this, for which fixture, and since when; it may fail."""
        since = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        text = json.dumps({"pid": os.getpid(), "fixture": fixture_name, "since": since})
        for device in self.devices:
            with contextlib.suppress(OSError):
                _path(self.folder, device, "holder").write_text(text, encoding="utf-8")

    def engine_locks(self) -> list[Path]:
        """Return the files, new ones each time, whose locks an engine's process holds while it lives."""
        number = next(self._numbers)
        return [_path(self.folder, device, f"engine-{os.getpid()}-{number}") for device in self.devices]

    def is_wanted(self) -> bool:
        """Say whether somebody waits for one of these devices."""
        for device in self.devices:
            turnstile = _lock(self.folder, device, "next")
            if not _try(turnstile):
                return True
            turnstile.release()
        return False

    def release(self) -> None:
        """Let others have the devices; the engine's processes must have ended."""
        for device in self.devices:
            engines = self.folder.glob(_path(self.folder, device, f"engine-{os.getpid()}-*").name)
            for path in (_path(self.folder, device, "holder"), *engines):
                with contextlib.suppress(OSError):
                    path.unlink()
        for lock in self._locks:
            lock.release()
        self._locks.clear()


def acquire(
    folder: Path,
    candidates: Sequence[Device],
    count: int,
    *,
    limit_s: float,
    is_stopped: Callable[[], bool] = lambda: False,
    hear: Callable[[str], None] = lambda _: None,
) -> Lease:
    """Wait until `count` of the candidates are free, and hold them; `hear` is told once if it takes long.

    Several at once are taken by one waiter at a time, and nobody who holds a lease waits for another, so no two can
    wait for each other.

    Raises:
        LeaseTimeoutError: it takes longer than `limit_s`, or there are fewer candidates than `count`.
        LeaseStoppedError: `is_stopped` said so.
        UsageError: the locks cannot be made.
    """
    if count > len(candidates):
        raise LeaseTimeoutError(f"{count} devices are needed at once, and there are {len(candidates)}")
    began = time.monotonic()
    waiter = _Waiter(folder, candidates, count)
    has_said = False
    try:
        while not waiter.has_all():
            waited = time.monotonic() - began
            if is_stopped():
                raise LeaseStoppedError
            if waited > limit_s:
                raise LeaseTimeoutError(f"no device was free for {limit_s:g} s: {holders(folder, candidates)}")
            if waited > _SAID_AFTER_S and not has_said:
                has_said = True
                hear(f"waiting for a device: {holders(folder, candidates)}")
            time.sleep(POLL_S)
        return waiter.take()
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"{folder}: a lease cannot be taken: {why}; name another folder in {FOLDER}") from None
    finally:
        waiter.leave()


def holders(folder: Path, devices: Sequence[Device]) -> str:
    """Return who holds which device, in words, as far as they have said."""
    return "; ".join(f"{_called(device)} is held by {_holder(folder, device)}" for device in devices)


class _Waiter:
    """Somebody who waits: the turnstiles and the devices held so far."""

    def __init__(self, folder: Path, candidates: Sequence[Device], count: int) -> None:
        self._folder = folder
        self._candidates = sorted(candidates, key=lambda device: device.index)
        self._count = count
        self._several = filelock.FileLock(folder / _SEVERAL, thread_local=False)
        self._turnstiles: dict[str, filelock.BaseFileLock] = {}
        self._held: dict[str, filelock.BaseFileLock] = {}

    def has_all(self) -> bool:
        """Try once more; what is got is kept."""
        if self._count > 1 and not _try(self._several):
            return False
        for device in self._candidates:
            if len(self._held) == self._count:
                break
            self._try(device)
        return len(self._held) == self._count and not any(map(self._has_an_engine, self._candidates))

    def take(self) -> Lease:
        """Return the lease; what is held is its own now."""
        devices = tuple(device for device in self._candidates if device.identity in self._held)
        lease = Lease(self._folder, devices, list(self._held.values()))
        self._held = {}
        return lease

    def leave(self) -> None:
        """Let go of everything that was not taken."""
        for lock in (*self._held.values(), *self._turnstiles.values(), self._several):
            if lock.is_locked:
                lock.release()

    def _try(self, device: Device) -> None:
        identity = device.identity
        if identity in self._held:
            return
        turnstile = self._turnstiles.setdefault(identity, _lock(self._folder, device, "next"))
        lock = _lock(self._folder, device, "lock")
        if _try(turnstile) and _try(lock):
            self._held[identity] = lock
            turnstile.release()

    def _has_an_engine(self, device: Device) -> bool:
        """Say whether an engine of a runner that died is still there; what dead engines left is removed."""
        if device.identity not in self._held:
            return False
        for path in self._folder.glob(_path(self._folder, device, "engine-*").name):
            lock = filelock.FileLock(path, thread_local=False)
            if not _try(lock):
                return True
            path.unlink(missing_ok=True)
            lock.release()
        return False


def _try(lock: filelock.BaseFileLock) -> bool:
    if lock.is_locked:
        return True
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        return False
    return True


def _lock(folder: Path, device: Device, suffix: str) -> filelock.BaseFileLock:
    return filelock.FileLock(_path(folder, device, suffix), thread_local=False)


def _path(folder: Path, device: Device, suffix: str) -> Path:
    return folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', device.identity)}.{suffix}"


def _called(device: Device) -> str:
    return f"device {device.index} ({device.name or device.identity})"


def _holder(folder: Path, device: Device) -> str:
    try:
        told = json.loads(_path(folder, device, "holder").read_bytes()[:4096])
        return f"process {int(told['pid'])} for {str(told['fixture'])[:200]} since {str(told['since'])[:40]}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "a process that has not said who it is"
