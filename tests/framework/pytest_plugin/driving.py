"""A root with the toy engine, judged by pytest in a process of its own, with nothing of this repository's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points

from tests.framework.toy_root import REPOSITORY, ToyRoot

INSTALLED = any(entry.value == "framework.plugin" for entry in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "framework.plugin")


def run_pytest(toy: ToyRoot, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a root; nothing of the run that this is part of reaches it."""
    unwanted = ("CI", "PYTEST_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", *arguments],
        cwd=toy.path,
        env={**inherited, "PYTHONPATH": str(REPOSITORY), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def verdicts(document: dict[str, object]) -> dict[str, str]:
    """The verdicts of a `golden.run/1` document, by fixture."""
    entries = document["fixtures"]
    assert isinstance(entries, list)
    return {entry["fixture"]: entry["verdict"] for entry in entries}
