"""In a lane that needs a device, a pass counts only where its record and its lease say that it had one."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.compare.rules import Rules
from framework.gate.gate import _Run
from framework.gate.select import Decision
from framework.manifest.fixture import Fixture, Workload

FIXTURE = Fixture("first", Path("first.yaml"), "", "toy", {}, Workload((), {}), Rules({}))
LEASED = ("NVIDIA H200 GPU-1",)


def why(device: str, leased: tuple[str, ...], platform: str) -> str:
    return _Run(Decision(FIXTURE, runs=True, why="new"), None, leased, device).why_elsewhere(platform)


@pytest.mark.parametrize(
    ("device", "leased", "platform", "message"),
    [
        ("cpu", (), "cpu", ""),
        ("", (), "cpu", ""),
        ("NVIDIA H200", LEASED, "nvidia-h200", ""),
        ("", LEASED, "nvidia-h200", ""),
        ("cpu", LEASED, "nvidia-h200", "ran on the CPU"),
        ("NVIDIA H200", (), "nvidia-h200", "no lease"),
    ],
)
def test_a_pass_of_a_device_lane_needs_the_device_and_its_lease(
    device: str, leased: tuple[str, ...], platform: str, message: str
) -> None:
    found = why(device, leased, platform)
    assert message in found
    assert bool(found) == bool(message)
