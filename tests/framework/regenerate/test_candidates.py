from __future__ import annotations

import errno
import os
from pathlib import Path

import filelock
import pytest

from framework.errors import GoldenError, NothingSelectedError
from framework.golden import lock
from framework.golden.store import golden_path, read_golden
from framework.regenerate.apply import apply_changes
from framework.regenerate.candidates import (
    candidates_folder,
    drop_candidates,
    find_candidates,
    keep_candidates,
    remove_files,
    write_candidates,
)
from tests.framework.regenerate.proven import ORIGIN, plan, workspace_of
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("deep/a")
    root.write("b", prompts="other")
    return root


def names_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_candidates_are_laid_out_as_goldens_and_are_whole(toy: ToyRoot) -> None:
    workspace = workspace_of(toy)
    kept = keep_candidates(workspace, plan(toy), ORIGIN)
    folder = candidates_folder(workspace)
    assert folder == toy.path / ".golden" / "candidates"
    assert kept == [golden_path(folder, name, "cpu") for name in ("b", "deep/a")]
    origin = read_golden(kept[0]).document["provenance"]
    assert origin["proof"]["runs"] == 7
    assert origin["reason"] == "because"
    found = find_candidates(folder)
    assert [(each.fixture, each.platform) for each in found] == [("b", "cpu"), ("deep/a", "cpu")]


def test_no_golden_is_written_by_keeping_candidates(toy: ToyRoot) -> None:
    keep_candidates(workspace_of(toy), plan(toy), ORIGIN)
    assert list((toy.path / "goldens").iterdir()) == []


def test_a_candidate_goes_once_its_golden_was_found_to_stand(toy: ToyRoot) -> None:
    workspace, changes = workspace_of(toy), plan(toy)
    keep_candidates(workspace, changes, ORIGIN)
    apply_changes(changes, state_folder=workspace.state_folder, origin=ORIGIN)
    assert keep_candidates(workspace, plan(toy), ORIGIN) == []
    assert find_candidates(candidates_folder(workspace)) == ()


def test_dropping_leaves_no_empty_folders_and_no_parts(toy: ToyRoot) -> None:
    workspace = workspace_of(toy)
    keep_candidates(workspace, plan(toy), ORIGIN)
    folder = candidates_folder(workspace)
    (folder / "deep" / "a" / ".golden-writing-cpu.json.xyz.part").write_text("half")
    drop_candidates(workspace, find_candidates(folder, ["deep/*"]))
    assert names_in(folder) == ["b", "b/cpu.json"]
    drop_candidates(workspace, find_candidates(folder))
    assert names_in(folder) == []
    assert drop_candidates(workspace, plan(toy)) == []


def test_a_pattern_that_matches_nothing_is_an_error_that_names_what_there_is(toy: ToyRoot) -> None:
    workspace = workspace_of(toy)
    keep_candidates(workspace, plan(toy), ORIGIN)
    with pytest.raises(NothingSelectedError, match="no candidate matches 'c'; there is b, deep/a"):
        find_candidates(candidates_folder(workspace), ["b", "c"])


def test_hidden_names_are_no_candidates_and_linked_folders_are_not_followed(toy: ToyRoot, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for name in (".hidden/cpu.json", "a/.cpu.json", "a/cpu.txt", "a/cpu.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    assert [each.path for each in find_candidates(folder)] == [folder / "a" / "cpu.json"]
    (folder / "link").symlink_to(toy.path)
    with pytest.raises(GoldenError, match="a link to a folder"):
        find_candidates(folder)


def test_candidates_never_lead_into_the_goldens(toy: ToyRoot) -> None:
    (toy.path / ".golden").mkdir()
    (toy.path / ".golden" / "candidates").symlink_to(toy.path / "goldens")
    with pytest.raises(GoldenError, match="leads into"):
        keep_candidates(workspace_of(toy), plan(toy), ORIGIN)
    assert list((toy.path / "goldens").iterdir()) == []


def test_a_writer_of_goldens_does_not_keep_candidates_from_being_kept(
    toy: ToyRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LOCK_TIMEOUT_S", 0.05)
    (toy.path / ".golden").mkdir()
    with filelock.FileLock(toy.path / ".golden" / "lock"):
        assert len(keep_candidates(workspace_of(toy), plan(toy), ORIGIN)) == 2


def test_a_full_disk_keeps_those_that_waited_before(toy: ToyRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, changes = workspace_of(toy), plan(toy)
    kept = keep_candidates(workspace, changes, ORIGIN)
    before = [path.read_bytes() for path in kept]

    def no_space(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(GoldenError, match="No space left on device; no candidate was kept"):
        keep_candidates(workspace, changes, {**ORIGIN, "reason": "another"})
    assert [path.read_bytes() for path in kept] == before
    assert len(names_in(candidates_folder(workspace))) == 5


def test_nothing_to_write_makes_no_folder(toy: ToyRoot) -> None:
    write_candidates(workspace_of(toy), {})
    assert not (toy.path / ".golden").exists()


def test_what_cannot_be_removed_is_named_with_how_many_were(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").mkdir()
    with pytest.raises(GoldenError, match=r"b: cannot be removed: .*; 1 of 2 were removed"):
        remove_files([tmp_path / "a", tmp_path / "b"], tmp_path)
    assert not (tmp_path / "a").exists()


def test_a_golden_that_would_be_too_large_is_refused_with_what_makes_it_so(
    toy: ToyRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framework.regenerate.candidates.LARGEST_GOLDEN", 500)
    workspace, changes = workspace_of(toy), plan(toy)
    with pytest.raises(GoldenError, match=r"bytes, more than 500; nothing was written\. Most of it is \w+: inform"):
        keep_candidates(workspace, changes, ORIGIN)
    with pytest.raises(GoldenError, match="more than 500"):
        apply_changes(changes, state_folder=workspace.state_folder, origin=ORIGIN)
    assert not candidates_folder(workspace).exists()
    assert list((toy.path / "goldens").iterdir()) == []
