"""A scratch repository with the toy engine, whose changes are put through the gate alone and batched."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.framework.git import commit, git
from tests.framework.toy_root import ToyRoot, make_toy_root

LANES = """\
gate: 1
lanes:
  cpu:
    platform: cpu
    fixtures: 2
    values: 20
    needs: [async, legacy]
declared: {{{declared}}}
"""
FIXTURES = ("first", "second", "third")
Change = Callable[[ToyRoot], object]


@dataclass
class Queue:
    """`base` is the commit that every change starts from; `heads` are the changes that were made, by name."""

    root: ToyRoot
    base: str
    heads: dict[str, str] = field(default_factory=dict)

    def make(self, name: str, change: Change, base: str | None = None) -> str:
        """Commit a change on a branch of its own, and return its head."""
        self.go_to(base or self.base)
        change(self.root)
        self.heads[name] = commit(self.root.path, name)
        return self.heads[name]

    def batch(self, *names: str) -> str:
        """Merge changes one after another on the base, as a merge queue does, and return the head."""
        self.go_to(self.base)
        for name in names:
            git(self.root.path, "merge", "--quiet", "--no-ff", "--message", f"merge {name}", self.heads[name])
        return git(self.root.path, "rev-parse", "HEAD")

    def go_to(self, head: str) -> None:
        git(self.root.path, "checkout", "--quiet", "--force", "--detach", head)
        git(self.root.path, "clean", "--quiet", "-d", "--force")

    def gate(self, head: str, *arguments: str, base: str | None = None) -> tuple[int, dict[str, Any]]:
        """Check out a head, validate it, and return the exit code and the verdict."""
        self.go_to(head)
        code, document = self.root.json("gate", "--base", base or self.base, "--head", head, *arguments)
        written = json.loads((self.root.path / ".golden" / "gate-verdict.json").read_bytes())
        assert written == document
        assert document["exit_code"] == code
        return code, document


def make_queue(folder: Path) -> Queue:
    root = make_toy_root(folder)
    root.write("first", more="time_limit_s: 2")
    root.write("second", prompts="world", more="time_limit_s: 2")
    root.write("third", engine="async_sched_mode: legacy", more="time_limit_s: 2")
    declare(root)
    (root.path / ".gitignore").write_text(".golden/\n__pycache__/\n")
    (root.path / "docs").mkdir()
    (root.path / "docs" / "notes.md").write_text("notes\n")
    root.regen()
    git(root.path, "init", "--quiet")
    return Queue(root, commit(root.path, "base"))


def declare(root: ToyRoot, **reasons: str) -> None:
    text = ", ".join(f"{json.dumps(name)}: {json.dumps(reason)}" for name, reason in reasons.items())
    (root.path / "gate.yaml").write_text(LANES.format(declared=text))


def regen(root: ToyRoot, *names: str, reason: str) -> None:
    done = root.golden("regen", *names, "--reason", reason, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr


def verdicts(document: dict[str, Any]) -> dict[str, str]:
    return {entry["fixture"]: entry["verdict"] for entry in document["fixtures"]}


def classes(document: dict[str, Any]) -> list[str]:
    return sorted({refusal["class"] for refusal in document["refusals"]})


def finding_classes(document: dict[str, Any]) -> set[str]:
    return {finding["class"] for entry in document["fixtures"] for finding in entry["findings"]}
