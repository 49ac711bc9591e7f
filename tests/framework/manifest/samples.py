"""A small root with one model, and manifests written into it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from framework.manifest.fixture import Fixture
from framework.manifest.lint import lint
from framework.manifest.linted import LintProblem
from framework.manifest.load import load_all
from framework.run.adapter import SettingDescription

MANIFEST = """\
manifest: 1
name: {name}
summary: Shows that it works.
model: small
engine: {engine}
workload:
  prompts: [hello]
assert:
  generated_tokens: exact
witness: ["counters.step_count > 0"]
"""

SETTINGS = {
    "async_sched_mode": SettingDescription("async", "str", "Scheduling.", choices=("async", "legacy")),
    "max_tokens": SettingDescription(16384, "int", "Token budget.", minimum=1),
    "scale": SettingDescription(1.0, "float", "A scale.", minimum=0.5),
    "moe_enable_routing_replay": SettingDescription(False, "bool", "Replay."),
    "routing_replay_path": SettingDescription(None, "str", "File.", optional=True),
}


def check_settings(pinned: Any) -> None:
    """Refuse routing replay unless legacy is pinned."""
    if pinned.get("moe_enable_routing_replay") and pinned.get("async_sched_mode") != "legacy":
        raise ValueError("moe_enable_routing_replay: true needs async_sched_mode: legacy.")


def make_root(folder: Path) -> Path:
    """Make a root with a model called small."""
    model = folder / "fixtures" / "models" / "small"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    return folder


def write(root: Path, name: str, *, engine: str = "{}", more: str = "", text: str | None = None) -> Path:
    """Write the manifest `name`, with `more` lines at its end, or with another text altogether."""
    path = root / "fixtures" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MANIFEST.format(name=name, engine=engine) + more if text is None else text, "utf-8")
    return path


def write_golden(root: Path, name: str, platform: str = "cpu", *, size: int = 2) -> Path:
    """Write a file where a golden would lie."""
    path = root / "goldens" / name / f"{platform}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b" " * size)
    return path


def refuse_to_list(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make a folder one that this user may not read; who tests as root may read all."""
    real = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path) == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


def fixtures_of(root: Path) -> tuple[Fixture, ...]:
    """Load all manifests, which must be without errors."""
    loaded = load_all(root / "fixtures")
    assert loaded.errors == ()
    return loaded.fixtures


def problems(root: Path) -> list[LintProblem]:
    """Lint the root, its missing goldens and witnesses apart."""
    found = lint(load_all(root / "fixtures").fixtures, root=root, settings=SETTINGS, check_settings=check_settings)
    return [problem for problem in found if not problem.message.startswith("there is no golden for")]


def only(root: Path) -> LintProblem:
    """Return the only problem there is."""
    (problem,) = problems(root)
    return problem
