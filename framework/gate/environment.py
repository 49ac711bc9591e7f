"""What of the machine and of what is installed could change a verdict, without importing any of it.

It says more than an engine's own fingerprint on purpose: what is not known to be without effect counts.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from framework.redact import looks_like_a_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

_WITHOUT_EFFECT: Final = frozenset(
    {"CONDA_PREFIX", "HOME", "LOGNAME", "PATH", "TEMP", "TMP", "TMPDIR", "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME"}
)
"""Variables that an engine gets and that say where things are, not how anything is computed."""

_CPU_LINES: Final = frozenset({"model name", "flags", "Features", "CPU implementer", "CPU part"})


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return what a verdict may depend on besides files, each by a name that a reader understands.

    `variables` are those that an engine gets (`framework.run.engine_environment`); a secret among them is told by a
    digest.
    """
    described = {
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()} {' '.join(platform.libc_ver())}",
        "CPUs": str(os.cpu_count()),
        **{f"CPU: {name}": value for name, value in _cpu().items()},
        "GPUs": gpus(),
    }
    for distribution in importlib.metadata.distributions():
        name = str(distribution.metadata["Name"]).lower()
        version = str(distribution.version)
        described[f"installed {name}"] = ", ".join(sorted({version, *_known(described, name)}))
    chosen = {name: value for name, value in sorted(variables.items()) if name not in _WITHOUT_EFFECT}
    return described | {f"variable {name}": _shown(name, value) for name, value in chosen.items()}


def _shown(name: str, value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest() if looks_like_a_secret(name) else value


def gpus() -> str:
    """Return the machine's GPUs with their driver, `none` without any."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return "none"
    asked = subprocess.run(  # noqa: S603 - the driver's own tool
        [command, "--query-gpu=name,driver_version,vbios_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    )
    return "; ".join(asked.stdout.split("\n")).strip("; ") if asked.returncode == 0 else "none that answers"


def _known(described: dict[str, str], name: str) -> list[str]:
    """Return the versions of a distribution that were found already: a path may hold two."""
    found = described.get(f"installed {name}")
    return found.split(", ") if found else []


def _cpu() -> dict[str, str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {"model name": platform.processor()}
    parts: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in _CPU_LINES:
            parts.setdefault(name.strip(), value.strip())
    return parts or {"model name": platform.processor()}
