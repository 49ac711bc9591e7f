from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from framework.errors import UsageError
from framework.run.devices import Device
from framework.run.lease import FOLDER, LeaseStoppedError, LeaseTimeoutError, acquire, lease_folder
from tests.framework.toy_root import REPOSITORY

DEVICES = tuple(Device(index, f"GPU-{index}", str(index), "toy") for index in range(3))


def test_a_device_has_one_holder_at_a_time(tmp_path: Path) -> None:
    first = acquire(tmp_path, DEVICES[:2], 1, limit_s=5.0)
    second = acquire(tmp_path, DEVICES[:2], 1, limit_s=5.0)
    assert [lease.devices[0].index for lease in (first, second)] == [0, 1]
    first.tell("a/fixture")
    with pytest.raises(LeaseTimeoutError) as told:
        acquire(tmp_path, DEVICES[:2], 1, limit_s=0.1)
    assert f"device 0 (toy) is held by process {os.getpid()} for a/fixture since 20" in str(told.value)
    assert "device 1 (toy) is held by a process that has not said who it is" in str(told.value)
    first.release()
    assert acquire(tmp_path, DEVICES[:2], 1, limit_s=5.0).devices == DEVICES[:1]


def test_several_are_taken_together_or_not_at_all(tmp_path: Path) -> None:
    held = acquire(tmp_path, DEVICES[1:2], 1, limit_s=5.0)
    with pytest.raises(LeaseTimeoutError):
        acquire(tmp_path, DEVICES, 3, limit_s=0.1)
    assert acquire(tmp_path, DEVICES[:1], 1, limit_s=0.1).devices == DEVICES[:1], "what was got is given back"
    held.release()
    with pytest.raises(LeaseTimeoutError, match="4 devices are needed at once, and there are 3"):
        acquire(tmp_path, DEVICES, 4, limit_s=5.0)


def test_waiters_for_several_and_for_one_all_get_their_turn(tmp_path: Path) -> None:
    inside: dict[int, int] = dict.fromkeys(range(3), 0)
    turns: list[int] = []

    def take_turns(count: int) -> None:
        for _ in range(4):
            lease = acquire(tmp_path, DEVICES, count, limit_s=60.0)
            for device in lease.devices:
                inside[device.index] += 1
                assert inside[device.index] == 1
            time.sleep(0.001)
            for device in lease.devices:
                inside[device.index] -= 1
            lease.release()
            turns.append(count)

    threads = [threading.Thread(target=take_turns, args=(count,)) for count in (1, 1, 2, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(turns) == sorted([1, 1, 2, 2, 3] * 4)


def test_a_holder_sees_that_somebody_waits_and_is_not_overtaken(tmp_path: Path) -> None:
    held = acquire(tmp_path, DEVICES[:1], 1, limit_s=5.0)
    assert not held.is_wanted()
    got: list[str] = []

    def wait() -> None:
        lease = acquire(tmp_path, DEVICES[:1], 1, limit_s=60.0)
        got.append("waiter")
        lease.release()

    waiter = threading.Thread(target=wait)
    waiter.start()
    while not held.is_wanted():
        time.sleep(0.01)
    held.release()
    acquire(tmp_path, DEVICES[:1], 1, limit_s=60.0)
    got.append("old holder")
    waiter.join()
    assert got == ["waiter", "old holder"]


def test_one_who_waits_can_be_stopped(tmp_path: Path) -> None:
    acquire_held = acquire(tmp_path, DEVICES[:1], 1, limit_s=5.0)
    with pytest.raises(LeaseStoppedError):
        acquire(tmp_path, DEVICES[:1], 1, limit_s=60.0, is_stopped=lambda: True)
    assert not acquire_held.is_wanted()


HOLDER = """
import sys, time
from pathlib import Path
import filelock
from framework.run.devices import Device
from framework.run.lease import acquire
lease = acquire(Path(sys.argv[1]), [Device(0, "GPU-0", "0", "toy")], 1, limit_s=5.0)
lock = filelock.FileLock(lease.engine_locks()[0])
if sys.argv[2] == "engine":
    lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


def start(folder: Path, what: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", HOLDER, str(folder), what]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_holder_that_is_killed_leaves_no_lease(tmp_path: Path) -> None:
    with start(tmp_path, "nothing") as process:
        with pytest.raises(LeaseTimeoutError):
            acquire(tmp_path, DEVICES[:1], 1, limit_s=0.1)
        process.send_signal(signal.SIGKILL)
    assert acquire(tmp_path, DEVICES[:1], 1, limit_s=5.0).devices == DEVICES[:1]


def test_an_engine_that_outlives_its_runner_still_counts(tmp_path: Path) -> None:
    with start(tmp_path, "engine") as process:
        own = next(tmp_path.glob("GPU-0.engine-*"))
        own.rename(tmp_path / "GPU-1.engine-1-0")
        with pytest.raises(LeaseTimeoutError):
            acquire(tmp_path, DEVICES[1:2], 1, limit_s=0.1)
        process.send_signal(signal.SIGKILL)
    assert acquire(tmp_path, DEVICES[1:2], 1, limit_s=5.0).devices == DEVICES[1:2]
    assert not list(tmp_path.glob("GPU-1.engine-*")), "what the dead left is swept"


def test_leases_lie_where_every_process_of_the_user_looks(tmp_path: Path) -> None:
    usual = Path("/tmp") / f"golden-devices-{os.getuid()}"  # noqa: S108 - that is what it is about
    assert lease_folder({"TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}) == usual
    made = lease_folder({FOLDER: str(tmp_path / "leases")})
    assert made.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_control_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").write_text("")
    for name in ("open", "link", "file", "no/such/parent", "nul\0"):
        with pytest.raises(UsageError, match=FOLDER):
            lease_folder({FOLDER: str(tmp_path / name)})
