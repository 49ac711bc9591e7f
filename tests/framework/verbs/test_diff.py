from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.framework.toy_root import ToyRoot, make_toy_root


def git(root: ToyRoot, *arguments: str) -> str:
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.invalid", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=root.path, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    """Two commits: the first goldens, and those after the default changed, with one removed and one added."""
    root = make_toy_root(tmp_path_factory.mktemp("history") / "root")
    root.write("default")
    root.write("other")
    root.write("pinned", engine="async_sched_mode: legacy")
    root.regen()
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "first")
    root.set_default_mode("legacy")
    for path in (root.golden_path("other"), root.path / "fixtures" / "other.yaml"):
        path.unlink()
    root.write("another", engine="async_sched_mode: legacy")
    done = root.golden("regen", "default", "another", "--reason", "legacy is the default again", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "second")
    return root


def test_a_changed_default_is_said_first_then_every_golden_with_its_reason_and_figures(history: ToyRoot) -> None:
    done = history.golden("diff", "HEAD~1..HEAD")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "3 goldens differ between HEAD~1 and HEAD, 1 do not."
    assert lines[1] == 'SETTING async_sched_mode: "async" → "legacy" in 1 of them: default'
    assert "another/cpu.json: added" in lines
    assert "other/cpu.json: removed" in lines
    assert "  reason: legacy is the default again" in lines
    assert any(line.startswith("  COUNTER counters.async_sched_step_count: ") for line in lines)
    assert not any("TOKEN" in line for line in lines), "tokens did not change, so no line speaks of them"
    assert len(lines) <= 24


def test_the_document_holds_every_finding(history: ToyRoot) -> None:
    code, document = history.json("diff", "HEAD~1..HEAD")
    assert code == 0
    assert (document["schema"], document["unchanged"]) == ("golden.diff/1", 1)
    whats = {entry["golden"]: entry["what"] for entry in document["goldens"]}
    assert whats == {"another/cpu.json": "added", "default/cpu.json": "changed", "other/cpu.json": "removed"}
    (changed,) = [entry for entry in document["goldens"] if entry["what"] == "changed"]
    assert changed["settings"] == [{"setting": "async_sched_mode", "old": "async", "new": "legacy"}]
    assert {finding["class"] for finding in changed["findings"]} == {"COUNTER"}


def test_one_revision_is_compared_with_the_working_tree(history: ToyRoot, tmp_path: Path) -> None:
    root = history.copy(tmp_path / "root")
    assert root.golden("diff", "HEAD").stdout.startswith(
        "0 goldens differ between HEAD and the working tree, 3 do not."
    )
    path = root.golden_path("default")
    path.write_bytes(path.read_bytes()[:-20])
    shown = root.golden("diff", "HEAD").stdout
    assert "default/cpu.json: unreadable: " in shown


@pytest.mark.parametrize("revisions", ["nowhere..HEAD", "HEAD..nowhere", "--all", "HEAD~50"])
def test_a_revision_that_is_none_is_a_usage_error(history: ToyRoot, revisions: str) -> None:
    done = history.golden("diff", "--", revisions)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("golden: ")


def test_a_root_outside_any_repository_is_a_usage_error(history: ToyRoot, tmp_path: Path) -> None:
    root = make_toy_root(tmp_path / "root")
    done = root.golden("diff", "HEAD", GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert done.returncode == 2
    assert "not a git repository" in done.stderr
