"""What of the environment decides a token's bits, as plain JSON."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from engine.numerics.check import SelfCheck, product_strategies

if TYPE_CHECKING:
    from engine.model.decoder import Decoder


_PATH_CHOOSING_VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
)
"""Environment variables by which a user makes a library compute on another path than the CPU's best."""


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
        "cpu": cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "path_variables": {name: os.environ[name] for name in _PATH_CHOOSING_VARIABLES if name in os.environ},
        "libraries": library_versions(torch.__config__.show()),
        "products": product_strategies(decoder),
        "self_check": "not run" if check is None else "passed",
    }


def device_name(device: torch.device) -> str:
    """`cpu`, or the accelerator's name."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def cpu_model() -> str:
    """The processor's name, as the system knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def library_versions(build: str) -> dict[str, str]:
    """The versions of the libraries that multiply matrices, from torch's description of its build."""
    versions = {}
    for line in build.splitlines():
        for name, mark in (("mkl", "Math Kernel Library Version"), ("onednn", "MKL-DNN v"), ("openblas", "OpenBLAS")):
            _, found, rest = line.partition(mark)
            if found:
                versions[name] = rest.split()[0]
    return versions
