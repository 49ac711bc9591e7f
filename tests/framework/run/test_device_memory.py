from __future__ import annotations

from framework.run.device_memory import wait_until_free
from framework.run.devices import Device

GPU = Device(0, "GPU-1", "GPU-1", "toy")


class Driver:
    """Answers with one of the given amounts after the other, the last one for ever."""

    def __init__(self, *used: str) -> None:
        self._used = list(used)

    def __call__(self, *arguments: str) -> str | None:
        if arguments[0].startswith("--query-compute-apps"):
            return "GPU-1, 4711, 70000 MiB\nGPU-2, 1, 5 MiB\nodd\n"
        used = self._used.pop(0) if len(self._used) > 1 else self._used[0]
        return None if used == "silent" else f"GPU-2, 99999, 143771\nGPU-1, {used}, 143771\nnonsense\n"


def waited(driver: Driver, device: Device = GPU, limit_s: float = 0.0) -> str:
    return wait_until_free([device], allowed_mib=1024, limit_s=limit_s, ask=driver)


def test_memory_that_is_free_is_not_waited_for() -> None:
    assert waited(Driver("1024")) == ""


def test_memory_that_becomes_free_is_waited_for() -> None:
    assert waited(Driver("70000", "silent", "3"), limit_s=60.0) == ""


def test_memory_that_stays_in_use_is_said_with_whose_it_is() -> None:
    why = waited(Driver("70000"))
    assert why == (
        "70,000 of 143,771 MiB of device 0 (toy) are still in use, after 0 s of waiting;"
        " there: process 4711 (70000 MiB)"
    )


def test_a_driver_that_does_not_answer_is_said() -> None:
    assert "nvidia-smi does not answer" in waited(Driver("silent"))


def test_what_the_driver_cannot_tell_is_not_waited_for() -> None:
    assert waited(Driver("[N/A]")) == ""
    assert waited(Driver("70000"), Device(0, "MIG-1", "MIG-1", "toy")) == ""
    assert waited(Driver("70000"), Device(0, "GPU-1", "GPU-1", "toy", is_fake=True)) == ""
