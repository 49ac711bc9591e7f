"""A root with the toy engine: manifests are written by tests, and `golden` is run in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.golden.seal import sealed_bytes
from framework.manifest.load import load_manifest
from tests.framework import toy_adapter

REPOSITORY = Path(__file__).resolve().parents[2]
ADAPTER = "toy_adapter:ToyEngine"
CONFIGURATION = f'[tool.golden]\nadapter = "{ADAPTER}"\nengine_environment = ["TOY_*"]\n'

MANIFEST = """\
manifest: 1
name: {name}
summary: the toy gives what it gave before
tags: [toy]
model: toy
engine: {{{engine}}}
workload:
  prompts: [{prompts}]
  sampling: {{max_new_tokens: 6}}
{workload}
assert:
  generated_tokens: exact
  generated_text: exact
  finish_reason: exact
  generated_logprobs: {{atol: 1.0e-5, rtol: 0.0}}
  counters: {{'*': exact}}
{rules}
inform: [performance]
witness: [counters.step_count > 0]
{more}
"""


@dataclass(frozen=True)
class ToyRoot:
    path: Path

    def write(
        self,
        name: str,
        *,
        engine: str = "",
        prompts: str = "hello",
        workload: str = "",
        rules: str = "",
        more: str = "",
    ) -> Path:
        path = self.path / "fixtures" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = MANIFEST.format(name=name, engine=engine, prompts=prompts, workload=workload, rules=rules, more=more)
        path.write_text(text)
        return path

    def set_default_mode(self, mode: str) -> None:
        self.set_default("mode", mode)

    def set_default(self, name: str, value: str) -> None:
        """Change what the toy does where no manifest pins it: its `mode`, or its `fault`."""
        (self.path / f"toy_default_{name}").write_text(value)

    def misbehave(self, fault: str, *, runs: int | None = None, then: str = "none") -> None:
        """Let unpinned fixtures show a fault, in so many runs, or in all; `then` is what follows."""
        self.set_default("fault", fault)
        (self.path / "toy_then").write_text(then)
        if runs is not None:
            (self.path / "toy_faults_left").write_text(str(runs))

    def share_golden(self, source: str, name: str, platform: str = "cpu") -> None:
        """Give a fixture the golden of another one that does the same: quicker than proving it, hundreds of times."""
        fixtures = self.path / "fixtures"
        document = json.loads(self.golden_path(source).read_bytes())
        document |= {"fixture": name, "platform": platform}
        path = fixtures / f"{name}.yaml"
        document["manifest_sha256"] = load_manifest(path, fixtures_root=fixtures).manifest_sha256
        golden = self.path / "goldens" / name / f"{platform}.json"
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_bytes(sealed_bytes(document))

    def copy(self, path: Path) -> ToyRoot:
        shutil.copytree(self.path, path)
        return ToyRoot(path)

    def golden_path(self, name: str) -> Path:
        return self.path / "goldens" / name / "cpu.json"

    def environment(self, **variables: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "CI"}
        return {**inherited, "PYTHONPATH": str(REPOSITORY), **variables}

    def golden(
        self,
        *arguments: str,
        stdin: str | None = None,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "framework", *arguments],
            cwd=self.path,
            env=self.environment(**variables),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def json(self, *arguments: str, **variables: str) -> tuple[int, dict[str, Any]]:
        done = self.golden(*arguments, "--json", **variables)
        document = json.loads(done.stdout)
        assert isinstance(document, dict), done.stderr
        return done.returncode, document

    def regen(self, *names: str) -> None:
        done = self.golden("regen", *names, "--reason", "first recording", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr


def make_toy_root(path: Path) -> ToyRoot:
    path.mkdir(parents=True, exist_ok=True)
    (path / "goldens").mkdir()
    toy_adapter.toy_model(path / "fixtures" / "models" / "toy")
    shutil.copy(toy_adapter.__file__, path / "toy_adapter.py")
    (path / "pyproject.toml").write_text(CONFIGURATION)
    return ToyRoot(path)
