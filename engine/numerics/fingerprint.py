"""What of the environment decides a token's bits, as plain JSON."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import torch

from engine.numerics.check import SelfCheck, product_strategies

if TYPE_CHECKING:
    from engine.model.decoder import Decoder


def environment_fingerprint(decoder: Decoder, check: SelfCheck | None = None) -> dict[str, Any]:
    """Describe the environment a decoder runs in.

    The number of threads is not in it: it decides no bits.

    Args:
        decoder: the model that runs.
        check: the result of `self_check`, if it was run.
    """
    return {
        "torch": torch.__version__,
        "dtype": str(decoder.dtype).removeprefix("torch."),
        "product_dtype": str(decoder.product_dtype).removeprefix("torch."),
        "device": device_name(decoder.device),
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "libraries": library_versions(torch.__config__.show()),
        "products": product_strategies(decoder),
        "self_check": "not run" if check is None else "passed",
    }


def device_name(device: torch.device) -> str:
    """`cpu`, or the accelerator's name."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def library_versions(build: str) -> dict[str, str]:
    """The versions of the libraries that multiply matrices, from torch's description of its build."""
    versions = {}
    for line in build.splitlines():
        for name, mark in (("mkl", "Math Kernel Library Version"), ("onednn", "MKL-DNN v"), ("openblas", "OpenBLAS")):
            _, found, rest = line.partition(mark)
            if found:
                versions[name] = rest.split()[0]
    return versions
