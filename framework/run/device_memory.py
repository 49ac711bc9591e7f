"""Waits until nothing is left on a device of what ran there before.

A driver gives memory back some time after a process has ended.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from framework.run.devices import ask_driver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from framework.run.devices import Device

POLL_S: Final = 0.5
_SHOWN_PROCESSES: Final = 8


@dataclass(frozen=True, slots=True)
class Memory:
    """MiB of a device that are in use, and all."""

    used: int
    total: int


def wait_until_free(
    devices: Sequence[Device],
    *,
    allowed_mib: int,
    limit_s: float,
    is_stopped: Callable[[], bool] = lambda: False,
    ask: Callable[..., str | None] = ask_driver,
) -> str:
    """Wait until at most `allowed_mib` of each device are in use; return why that did not happen, else nothing.

    The driver tells the memory of whole GPUs only: a MIG instance, a device that is pretended, and one that nobody can
    be asked about are not waited for.
    """
    waited_for = [device for device in devices if device.identity.startswith("GPU-") and not device.is_fake]
    began = time.monotonic()
    while waited_for and not is_stopped():
        memory = memory_in_use(ask)
        if memory is None:
            why = "nvidia-smi does not answer, so nobody knows whether its memory is free"
        else:
            waited_for = [device for device in waited_for if _is_taken(memory.get(device.identity), allowed_mib)]
            why = ", ".join(_in_words(device, memory[device.identity]) for device in waited_for)
        if not waited_for:
            break
        if time.monotonic() - began > limit_s:
            return f"{why}, after {limit_s:g} s of waiting; {processes_in_words(waited_for, ask)}"
        time.sleep(POLL_S)
    return ""


def memory_in_use(ask: Callable[..., str | None] = ask_driver) -> Mapping[str, Memory] | None:
    """Return the memory of each GPU by UUID; None if the driver cannot be asked."""
    answer = ask("--query-gpu=uuid,memory.used,memory.total", "--format=csv,noheader,nounits")
    if answer is None:
        return None
    found = {}
    for line in answer.splitlines():
        uuid, *numbers = (entry.strip() for entry in line.split(","))
        if len(numbers) == 2 and all(number.isascii() and number.isdigit() for number in numbers):  # noqa: PLR2004
            found[uuid] = Memory(int(numbers[0]), int(numbers[1]))
    return found


def processes_in_words(devices: Sequence[Device], ask: Callable[..., str | None] = ask_driver) -> str:
    """Return which processes the driver knows on these devices."""
    answer = ask("--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader") or ""
    uuids = {device.identity for device in devices}
    lines = [[entry.strip() for entry in line.split(",")] for line in answer.splitlines()]
    known = [f"process {entry[1]} ({entry[2]})" for entry in lines if len(entry) == 3 and entry[0] in uuids]  # noqa: PLR2004
    return f"there: {', '.join(known[:_SHOWN_PROCESSES])}" if known else "the driver names no process there"


def _is_taken(memory: Memory | None, allowed_mib: int) -> bool:
    return memory is not None and memory.used > allowed_mib


def _in_words(device: Device, memory: Memory) -> str:
    return f"{memory.used:,} of {memory.total:,} MiB of device {device.index} ({device.name}) are still in use"
