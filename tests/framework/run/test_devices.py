from __future__ import annotations

from pathlib import Path

import pytest

from framework.errors import UsageError
from framework.run.devices import (
    Device,
    Gpu,
    ask_driver,
    chosen,
    devices_for,
    may_have_devices,
    parse_listing,
    usable_devices,
)

LISTING = """\
GPU 0: NVIDIA H200 (UUID: GPU-aaaa1111-0000)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa2222-0000)
  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef)
  MIG 1g.5gb      Device  1: (UUID: MIG-cba66379)
Some warning of the driver
GPU 2: NVIDIA H200 (odd (name)) (UUID: GPU-bbbb3333-0000)
"""
MACHINE = parse_listing(LISTING)


def identities(visible: str | None) -> list[str]:
    return [device.identity for device in chosen(visible, MACHINE)]


def test_the_listing_of_the_driver_is_read_with_mig_instances() -> None:
    assert (
        Gpu("GPU-aaaa1111-0000", "NVIDIA H200"),
        Gpu("GPU-aaaa2222-0000", "NVIDIA A100-SXM4-40GB", ("MIG-c6d4f1ef", "MIG-cba66379")),
        Gpu("GPU-bbbb3333-0000", "NVIDIA H200 (odd (name))"),
    ) == MACHINE
    assert parse_listing("") == parse_listing("No devices were found\n") == ()


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, ["GPU-aaaa1111-0000", "MIG-c6d4f1ef", "MIG-cba66379", "GPU-bbbb3333-0000"]),
        ("", []),
        (" ", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("2,0", ["GPU-bbbb3333-0000", "GPU-aaaa1111-0000"]),
        (" 2 , +0 ", ["GPU-bbbb3333-0000", "GPU-aaaa1111-0000"]),
        ("0,-1,2", ["GPU-aaaa1111-0000"]),
        ("0,3,2", ["GPU-aaaa1111-0000"]),
        ("0,99999999999999999999", ["GPU-aaaa1111-0000"]),
        ("0,,2", ["GPU-aaaa1111-0000"]),
        ("0,0", []),
        ("0,GPU-aaaa1", []),
        ("0gpu,2x", ["GPU-aaaa1111-0000", "GPU-bbbb3333-0000"]),
        ("1", ["MIG-c6d4f1ef"]),
        ("GPU-bbbb", ["GPU-bbbb3333-0000"]),
        ("GPU-aaaa", []),
        ("GPU-nothing,0", []),
        ("MIG-cba66379,GPU-bbbb3333-0000", ["MIG-cba66379", "GPU-bbbb3333-0000"]),
        ("MIG-cba66379,MIG-cba66379", []),
    ],
)
def test_the_callers_choice_is_read_as_cuda_reads_it(visible: str | None, expected: list[str]) -> None:
    assert identities(visible) == expected


def test_a_device_knows_its_place_and_what_an_engine_is_told() -> None:
    first, second = chosen("2,1", MACHINE)
    assert (first.index, first.visible, first.platform) == (0, "GPU-bbbb3333-0000", "nvidia-h200-odd-name")
    assert (second.index, second.visible, second.platform) == (1, "MIG-c6d4f1ef", "nvidia-a100-sxm4-40gb")


def test_devices_are_pretended_where_that_is_asked_for() -> None:
    found = usable_devices({"GOLDEN_FAKE_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "2,0"})
    assert [device.identity for device in found] == ["GPU-pretended-2", "GPU-pretended-0"]
    assert all(device.is_fake for device in found)
    assert usable_devices({"GOLDEN_FAKE_DEVICES": "0"}) == ()


@pytest.mark.parametrize("number", ["-1", "two", "65", "1.0", "٢", "1" * 5000])
def test_a_number_of_pretended_devices_that_is_none_is_refused(number: str) -> None:
    with pytest.raises(UsageError, match="GOLDEN_FAKE_DEVICES"):
        usable_devices({"GOLDEN_FAKE_DEVICES": number})


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("no_driver")
def test_without_a_driver_devices_are_taken_at_their_word() -> None:
    found = usable_devices({"CUDA_VISIBLE_DEVICES": "01,GPU-x,-1,7"})
    assert [(device.identity, device.visible) for device in found] == [("named-1", "1"), ("named-GPU-x", "GPU-x")]
    assert usable_devices({"CUDA_VISIBLE_DEVICES": "1,01"}) == usable_devices({}) == ()


def test_a_driver_that_fails_says_nothing(no_driver: Path) -> None:
    command = no_driver / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 'GPU 0: X (UUID: GPU-1)'\nexit 9\n")
    command.chmod(0o755)
    assert ask_driver("-L") is None
    command.write_text("#!/bin/sh\necho 'GPU 0: X (UUID: GPU-1)'\n")
    assert [device.identity for device in usable_devices({})] == ["GPU-1"]


def test_a_platform_is_a_kind_of_device_else_any_else_one_of_its_own() -> None:
    devices = chosen(None, MACHINE)
    assert [device.identity for device in devices_for("nvidia-h200", devices)] == ["GPU-aaaa1111-0000"]
    assert devices_for("its-own-name", devices) == devices
    assert devices_for("tpu", ()) == (Device(0, "platform-tpu", None, "tpu"),)


def test_whether_there_may_be_devices_is_said_without_asking(no_driver: Path) -> None:
    assert may_have_devices({"GOLDEN_FAKE_DEVICES": "2"})
    assert not may_have_devices({"GOLDEN_FAKE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": ""})
    assert not may_have_devices({})
    assert no_driver.is_dir()
