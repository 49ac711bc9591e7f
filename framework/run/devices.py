"""Which devices this machine has and the caller may use, said without torch and without a context on any of them.

The machine is asked through `nvidia-smi`; `CUDA_VISIBLE_DEVICES` chooses among its devices as CUDA reads it: indices or
UUIDs (their beginnings do), of GPUs or MIG instances; the list ends before the first entry that names nothing, such as
`-1`, and one named twice makes it empty.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from framework.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
FAKE: Final = "GOLDEN_FAKE_DEVICES"
"""Pretends that the machine has so many devices, to try out leases without any. No engine computes on them."""

_FAKE_NAME: Final = "pretended device"
_MOST_FAKES: Final = 64
_ANSWER_WITHIN_S: Final = 20.0
_GPU_LINE: Final = re.compile(r"GPU \d+: (?P<name>.*) \(UUID: (?P<uuid>GPU-[^)\s]+)\)\s*")
_MIG_LINE: Final = re.compile(r"\s+MIG .*\(UUID: (?P<uuid>MIG-[^)]+)\)\s*")
_INDEX: Final = re.compile(r"\s*\+?(?P<digits>\d{1,9})")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as the driver lists it, with the UUIDs of the MIG instances that it is divided into."""

    uuid: str
    name: str
    instances: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The UUIDs of what can be used of it: its instances, or itself."""
        return self.instances or (self.uuid,)


@dataclass(frozen=True, slots=True)
class Device:
    """What one engine can have to itself.

    `index` is its place among those the caller may use. `identity` names it alike in every process of the machine.
    `visible` is what `CUDA_VISIBLE_DEVICES` says to an engine that is to see this one alone; None leaves it as it is.
    """

    index: int
    identity: str
    visible: str | None
    name: str = ""
    is_fake: bool = False

    @property
    def platform(self) -> str:
        """The platform that goldens of this kind of device are for: `nvidia-h200`."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def usable_devices(environment: Mapping[str, str]) -> tuple[Device, ...]:
    """Return the devices that the caller may use, in the caller's order.

    Raises:
        UsageError: `GOLDEN_FAKE_DEVICES` is no number.
    """
    visible = environment.get(VISIBLE)
    fakes = _fakes(environment.get(FAKE, ""))
    if fakes is not None:
        return chosen(visible, fakes)
    machine = ask_machine()
    return _taken_at_their_word(visible) if machine is None else chosen(visible, machine)


def devices_for(platform: str, devices: Sequence[Device]) -> tuple[Device, ...]:
    """Return the devices that can be meant by a platform.

    An engine may call its platforms as it likes: where no device has that name, every one can be meant; and where no
    device is known at all, the platform is taken for one, so that nothing shares it.
    """
    of_that_name = tuple(device for device in devices if device.platform == platform)
    return of_that_name or tuple(devices) or (Device(0, f"platform-{platform}", None, platform),)


def may_have_devices(environment: Mapping[str, str]) -> bool:
    """Say at once, without asking the driver, whether there can be a device to use."""
    may_use = environment.get(VISIBLE, "all").strip() not in ("", "-1")
    return may_use and (bool(environment.get(FAKE)) or shutil.which("nvidia-smi") is not None)


def chosen(visible: str | None, machine: Sequence[Gpu]) -> tuple[Device, ...]:
    """Return the devices of a machine that a value of `CUDA_VISIBLE_DEVICES` chooses; None chooses all."""
    every = [(uuid, gpu) for gpu in machine for uuid in gpu.parts]
    found = every if visible is None else _found(visible, machine)
    return tuple(
        Device(index, uuid, uuid, gpu.name, is_fake=gpu.name == _FAKE_NAME) for index, (uuid, gpu) in enumerate(found)
    )


def ask_machine() -> tuple[Gpu, ...] | None:
    """Return the GPUs that the driver lists; None if it cannot be asked."""
    listing = ask_driver("-L")
    return None if listing is None else parse_listing(listing)


def ask_driver(*arguments: str) -> str | None:
    """Return what `nvidia-smi` answers; None if it is not there, fails, or takes too long."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return None
    try:
        asked = subprocess.run(  # noqa: S603 - the driver's own tool, with arguments of ours
            [command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout if asked.returncode == 0 else None


def parse_listing(listing: str) -> tuple[Gpu, ...]:
    """Return the GPUs in the text that `nvidia-smi -L` prints; lines of another form are left out."""
    found: list[tuple[str, str, list[str]]] = []
    for line in listing.splitlines():
        if gpu := _GPU_LINE.fullmatch(line):
            found.append((gpu["uuid"], gpu["name"], []))
        elif (instance := _MIG_LINE.fullmatch(line)) and found:
            found[-1][2].append(instance["uuid"])
    return tuple(Gpu(uuid, name, tuple(instances)) for uuid, name, instances in found)


def _fakes(text: str) -> tuple[Gpu, ...] | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_FAKES)) and int(text) <= _MOST_FAKES):
        raise UsageError(f"{FAKE}={text!r} is no number from 0 to {_MOST_FAKES}")
    return tuple(Gpu(f"GPU-pretended-{number}", _FAKE_NAME) for number in range(int(text)))


def _found(visible: str, machine: Sequence[Gpu]) -> list[tuple[str, Gpu]]:
    by_uuid = {uuid: gpu for gpu in machine for uuid in (gpu.uuid, *gpu.instances)}
    found: list[tuple[str, Gpu]] = []
    for entry in visible.split(","):
        uuid = _uuid_meant(entry.strip(), by_uuid) if entry.strip()[:4] in ("GPU-", "MIG-") else _at(entry, machine)
        if uuid is None:
            break
        part = by_uuid[uuid].parts[0] if uuid == by_uuid[uuid].uuid else uuid
        if part in [already for already, _ in found]:
            return []
        found.append((part, by_uuid[uuid]))
    return found


def _uuid_meant(beginning: str, uuids: Mapping[str, Gpu]) -> str | None:
    if beginning in uuids:
        return beginning
    meant = [uuid for uuid in uuids if uuid.startswith(beginning)]
    return meant[0] if len(meant) == 1 else None


def _at(entry: str, machine: Sequence[Gpu]) -> str | None:
    """Return the UUID of the GPU with an index, of which CUDA reads the digits that an entry begins with."""
    index = _INDEX.match(entry)
    return machine[int(index["digits"])].uuid if index and int(index["digits"]) < len(machine) else None


def _taken_at_their_word(visible: str | None) -> tuple[Device, ...]:
    """Return what `CUDA_VISIBLE_DEVICES` names where nobody can be asked what there is."""
    entries: list[str] = []
    for entry in (visible or "").split(","):
        index = _INDEX.match(entry)
        name = index["digits"].lstrip("0") or "0" if index else entry.strip()
        if not index and name[:4] not in ("GPU-", "MIG-"):
            break
        if name in entries:
            return ()
        entries.append(name)
    return tuple(Device(index, f"named-{name}", name) for index, name in enumerate(entries))
