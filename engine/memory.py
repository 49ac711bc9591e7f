"""How much a device can hold, asked before an allocator promises memory that is not there."""

from __future__ import annotations

import os

import torch


def memory_bytes(device: torch.device) -> int:
    """The bytes of a device: what is free on an accelerator, what the machine has for the CPU."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
