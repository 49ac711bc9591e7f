from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from framework.run.devices import usable_devices
from framework.run.lease import acquire
from tests.framework.toy_adapter import toy_model
from tests.framework.toy_root import ToyRoot, make_toy_root

PLATFORM = "toy-gpu"
MANY = 200


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    """A root with many quick fixtures that need a device, of two models."""
    root = make_toy_root(tmp_path_factory.mktemp("devices"))
    toy_model(root.path / "fixtures" / "models" / "other")
    root.write("first")
    root.regen()
    for number in range(MANY):
        name = f"quick/{number:03}"
        path = root.write(name, more=f"platforms: [{PLATFORM}]")
        if number % 2:
            path.write_text(path.read_text().replace("model: toy", "model: other"))
        root.share_golden("first", name, PLATFORM)
    return root


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """Two pretended devices, leases of this test's own, and the file in which the toy says where it runs."""
    return {
        "TOY_PLATFORMS": f"{PLATFORM},cpu",
        "TOY_AUDIT": str(tmp_path / "audit.jsonl"),
        "GOLDEN_FAKE_DEVICES": "2",
        "GOLDEN_LEASE_FOLDER": str(tmp_path / "leases"),
    }


def audit(machine: dict[str, str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(machine["TOY_AUDIT"]).read_text().splitlines()]


def assert_never_shared(machine: dict[str, str]) -> None:
    """At no moment two runs on one device; a run that was killed counts until its process is seen no more."""
    events = sorted(audit(machine), key=lambda event: event["at"])
    at_work: dict[str, int] = {}
    latest = {event["pid"]: event["at"] for event in events}
    for event in events:
        device, pid = event["device"], event["pid"]
        if event["event"] == "end":
            del at_work[device]
        else:
            before = at_work.get(device)
            assert before is None or latest[before] < event["at"], f"{before} and {pid} at once on {device}"
            at_work[device] = pid


def assert_nothing_is_left(machine: dict[str, str]) -> None:
    devices = usable_devices(machine)
    acquire(Path(machine["GOLDEN_LEASE_FOLDER"]), devices, len(devices), limit_s=5.0).release()
    for pid in {event["pid"] for event in audit(machine)}:
        assert not is_alive(pid), f"the engine's process {pid} outlived the run"


def is_alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.is_file() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_two_hundred_quick_fixtures_never_share_a_device(many: ToyRoot, machine: dict[str, str]) -> None:
    code, document = many.json("run", "quick/*", "-j", "4", **machine)
    assert code == 0
    assert Counter(entry["verdict"] for entry in document["fixtures"]) == {"PASS": MANY}
    events = audit(machine)
    assert len(events) == 2 * MANY
    assert {event["device"] for event in events} == {"GPU-pretended-0", "GPU-pretended-1"}
    assert len({event["pid"] for event in events}) == 2, "an engine stays loaded across the fixtures of its model"
    assert_never_shared(machine)
    assert_nothing_is_left(machine)


def test_the_callers_choice_of_devices_is_kept(many: ToyRoot, machine: dict[str, str]) -> None:
    code, _ = many.json("run", "quick/00*", "-j", "4", CUDA_VISIBLE_DEVICES="1", **machine)
    assert code == 0
    assert {event["device"] for event in audit(machine)} == {"GPU-pretended-1"}


def test_two_runs_at_once_share_the_machine_and_no_device(many: ToyRoot, machine: dict[str, str]) -> None:
    machine["GOLDEN_FAKE_DEVICES"] = "1"
    command = [sys.executable, "-m", "framework", "run", "quick/0*", "--json"]
    runs = [
        subprocess.Popen(
            command, cwd=many.path, env=many.environment(**machine), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for run in runs:
        run.communicate(timeout=60)
    assert [run.returncode for run in runs] == [0, 0]
    assert len(audit(machine)) == 2 * 2 * MANY // 2
    assert_never_shared(machine)
    assert_nothing_is_left(machine)


def test_engines_that_are_killed_lose_no_result_and_leave_no_lease(many: ToyRoot, machine: dict[str, str]) -> None:
    """Twenty and more engines' processes are killed at moments drawn from a seed, in the middle of a run."""
    environment = many.environment(TOY_SECONDS="0.02", **machine)
    command = [sys.executable, "-m", "framework", "run", "quick/*", "-j", "4", "--json"]
    draw = random.Random(20)  # noqa: S311 - the same moments each time
    killed: set[int] = set()
    with subprocess.Popen(
        command, cwd=many.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        path = Path(machine["TOY_AUDIT"])
        while run.poll() is None and len(killed) < 24:
            time.sleep(draw.uniform(0.0, 0.08))
            events = audit(machine) if path.exists() else []
            at_work = Counter(event["pid"] for event in events if event["event"] == "begin")
            at_work.subtract(event["pid"] for event in events if event["event"] == "end")
            victims = sorted(pid for pid, runs in at_work.items() if runs > 0 and pid not in killed)
            if victims:
                victim = draw.choice(victims)
                os.kill(victim, signal.SIGKILL)
                killed.add(victim)
        output, _ = run.communicate(timeout=60)
    entries = json.loads(output)["fixtures"]
    assert len(killed) >= 20
    assert [entry["fixture"] for entry in entries] == [f"quick/{number:03}" for number in range(MANY)]
    failed = [entry for entry in entries if entry["verdict"] != "PASS"]
    assert {entry["verdict"] for entry in failed} == {"ERROR"}
    assert {finding["class"] for entry in failed for finding in entry["findings"]} == {"OUT_OF_MEMORY"}
    assert all("killed by signal 9" in entry["findings"][0]["message"] for entry in failed)
    assert 20 <= len(failed) <= len(killed)
    assert run.returncode == 11
    assert_never_shared(machine)
    assert_nothing_is_left(machine)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_run_that_is_ended_takes_its_engines_with_it(
    many: ToyRoot, machine: dict[str, str], number: signal.Signals, code: int
) -> None:
    environment = many.environment(TOY_SECONDS="30", **machine)
    command = [sys.executable, "-m", "framework", "run", "quick/*", "-j", "2"]
    with subprocess.Popen(
        command, cwd=many.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        path = Path(machine["TOY_AUDIT"])
        while not path.exists() or len(audit(machine)) < 2:
            assert run.poll() is None
            time.sleep(0.02)
        run.send_signal(number)
        _, errors = run.communicate(timeout=20)
    assert run.returncode == code
    assert b"Traceback" not in errors
    for _ in range(100):
        if not any(is_alive(event["pid"]) for event in audit(machine)):
            break
        time.sleep(0.02)
    assert_nothing_is_left(machine)


def test_who_holds_a_device_is_said_when_it_does_not_become_free(many: ToyRoot, machine: dict[str, str]) -> None:
    machine |= {"GOLDEN_FAKE_DEVICES": "1", "GOLDEN_DEVICE_WAIT_S": "0"}
    folder = Path(machine["GOLDEN_LEASE_FOLDER"])
    folder.mkdir(mode=0o700)
    lease = acquire(folder, usable_devices(machine), 1, limit_s=5.0)
    lease.tell("somebody/else")
    code, document = many.json("run", "quick/000", **machine)
    lease.release()
    finding = document["fixtures"][0]["findings"][0]
    assert (code, finding["class"]) == (11, "TIME_LIMIT")
    assert f"is held by process {os.getpid()} for somebody/else since" in finding["message"]


def test_without_known_devices_a_platform_is_one_device(many: ToyRoot, machine: dict[str, str], tmp_path: Path) -> None:
    machine |= {"GOLDEN_FAKE_DEVICES": "0"}
    code, _ = many.json("run", "quick/00*", "-j", "4", **machine)
    assert code == 0
    assert len({event["pid"] for event in audit(machine)}) == 1
    assert_never_shared(machine)


@pytest.mark.parametrize(
    ("name", "jobs"),
    [("GOLDEN_FAKE_DEVICES", "1"), ("GOLDEN_DEVICE_WAIT_S", "3"), ("GOLDEN_DEVICE_FREE_MIB", "1")],
)
def test_a_setting_of_devices_that_is_no_number_is_refused(
    many: ToyRoot, machine: dict[str, str], name: str, jobs: str
) -> None:
    done = many.golden("run", "quick/00*", "-j", jobs, **machine | {name: "many"})
    assert done.returncode == 2
    assert f"golden: {name}='many' is no" in done.stderr
    assert "Traceback" not in done.stderr


def test_fixtures_of_the_cpu_need_no_device_and_hold_none(many: ToyRoot, machine: dict[str, str]) -> None:
    code, _ = many.json("run", "first", **machine)
    assert code == 0
    assert not Path(machine["GOLDEN_LEASE_FOLDER"]).exists()
