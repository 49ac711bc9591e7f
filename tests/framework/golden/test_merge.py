"""Two branches that record the same golden differently, merged by git itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framework.errors import SealError
from framework.golden.seal import sealed_bytes
from framework.golden.store import read_golden
from framework.regenerate.apply import apply_changes
from tests.framework.regenerate.proven import ORIGIN, plan
from tests.framework.toy_root import REPOSITORY, ToyRoot, make_toy_root

GOLDEN = "goldens/a/cpu.json"


class Branches:
    """A repository whose branches `ours` and `theirs` each changed another value of the golden that is on `base`."""

    def __init__(self, toy: ToyRoot) -> None:
        self.toy = toy
        shutil.copy(REPOSITORY / ".gitattributes", toy.path / ".gitattributes")
        toy.write("a", prompts="hello, world")
        apply_changes(plan(toy), state_folder=toy.path / ".golden", origin=ORIGIN)
        self.git("init", "--quiet", "--initial-branch=base")
        self.commit("base")
        self.git("checkout", "--quiet", "-b", "theirs")
        self.record("theirs", lambda golden: golden["requests"]["1"].update(generated_text="theirs"))
        self.git("checkout", "--quiet", "-b", "ours", "base")
        self.record("ours", lambda golden: golden["counters"].update(step_count=99))

    @property
    def golden(self) -> Path:
        return self.toy.path / GOLDEN

    def record(self, reason: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Record the golden as if this had moved, and commit it."""
        document = read_golden(self.golden).document
        change(document)
        document["provenance"]["reason"] = reason
        self.golden.write_bytes(sealed_bytes(document))
        self.commit(reason)

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", message)

    def git(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(
            ["git", *settings, *arguments],
            cwd=self.toy.path,
            env={**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
            capture_output=True,
            check=check,
        )

    def side(self, name: str) -> bytes:
        return self.git("show", f"{name}:{GOLDEN}").stdout

    def merged_by_lines(self, *options: str) -> bytes:
        """Return what merging the three versions by lines makes of them."""
        files = []
        for name in ("ours", "base", "theirs"):
            path = self.toy.path / f"{name}.side"
            path.write_bytes(self.side(name))
            files.append(str(path))
        return self.git("merge-file", "-p", *options, *files, check=False).stdout


@pytest.fixture
def branches(tmp_path: Path) -> Branches:
    return Branches(make_toy_root(tmp_path / "root"))


def test_git_stops_with_a_conflict_and_mixes_no_lines(branches: Branches) -> None:
    merge = branches.git("merge", "theirs", check=False)
    assert merge.returncode == 1
    assert b"CONFLICT" in merge.stdout
    assert branches.golden.read_bytes() == branches.side("ours")
    unmerged = branches.git("ls-files", "--unmerged").stdout.decode()
    assert unmerged.count(GOLDEN) == 3


def test_either_side_taken_whole_is_a_golden_again(branches: Branches) -> None:
    branches.git("merge", "theirs", check=False)
    branches.git("checkout", "--theirs", GOLDEN)
    assert read_golden(branches.golden).document["provenance"]["reason"] == "theirs"


@pytest.mark.parametrize("options", [("--union",), ("--ours",), ("--theirs",)])
def test_a_forced_merge_by_lines_is_caught_by_the_seal_which_says_what_to_do(
    branches: Branches, options: tuple[str, ...]
) -> None:
    merged = branches.merged_by_lines(*options)
    assert merged not in (branches.side("ours"), branches.side("theirs"))
    branches.golden.write_bytes(merged)
    with pytest.raises(SealError, match=r"(?s)seal is broken.*take either side, run `golden regen --reason …`"):
        read_golden(branches.golden)
    code, document = branches.toy.json("run")
    assert code == 12
    finding = document["fixtures"][0]["findings"][0]
    assert finding["class"] == "SEAL"
    assert "on the merged tree" in finding["message"]


@pytest.mark.parametrize("options", [(), ("--diff3",)])
def test_conflict_markers_are_named_with_the_way_out(branches: Branches, options: tuple[str, ...]) -> None:
    merged = branches.merged_by_lines(*options)
    assert b"<<<<<<<" in merged
    branches.golden.write_bytes(merged)
    code, document = branches.toy.json("check")
    assert code == 12
    message = document["fixtures"][0]["findings"][0]["message"]
    assert "merge-conflict markers at line" in message
    assert "Take either side whole, then run `golden regen" in message
