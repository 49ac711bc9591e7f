from __future__ import annotations

import errno
import os
from pathlib import Path

import filelock
import pytest

from framework.errors import GoldenError
from framework.golden import lock
from framework.golden.store import read_golden
from framework.regenerate.apply import apply_changes
from framework.regenerate.plan import Change, Kind
from tests.framework.regenerate.proven import ORIGIN, plan
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("a")
    root.write("b", prompts="other")
    return root


def apply(toy: ToyRoot, changes: list[Change]) -> list[Path]:
    return apply_changes(
        changes,
        state_folder=toy.path / ".golden",
        origin=ORIGIN,
    )


def test_planned_changes_are_written_and_then_nothing_is_left_to_change(toy: ToyRoot) -> None:
    changes = plan(toy)
    assert [change.kind for change in changes] == [Kind.NEW, Kind.NEW]
    assert apply(toy, changes) == [toy.golden_path("a"), toy.golden_path("b")]
    assert [change.kind for change in plan(toy)] == [Kind.UNCHANGED, Kind.UNCHANGED]
    assert apply(toy, plan(toy)) == []


def test_a_golden_that_changed_meanwhile_stops_all_of_them(toy: ToyRoot) -> None:
    changes = plan(toy)
    toy.golden_path("b").parent.mkdir()
    toy.golden_path("b").write_text("somebody else's")
    with pytest.raises(GoldenError, match="STALE_REGEN"):
        apply(toy, changes)
    assert not toy.golden_path("a").exists()
    assert toy.golden_path("b").read_text() == "somebody else's"


def test_two_writers_do_not_write_at_once(toy: ToyRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "LOCK_TIMEOUT_S", 0.05)
    changes = plan(toy)
    (toy.path / ".golden").mkdir()
    with filelock.FileLock(toy.path / ".golden" / "lock"), pytest.raises(GoldenError, match="another process"):
        apply(toy, changes)
    assert not toy.golden_path("a").exists()
    apply(toy, changes)
    assert read_golden(toy.golden_path("a")).document["provenance"]["reason"] == "because"


def test_what_a_killed_writer_left_behind_is_removed(toy: ToyRoot) -> None:
    part = toy.path / "goldens" / "a" / ".golden-writing-cpu.json.xyz.part"
    part.parent.mkdir()
    part.write_text("half")
    apply(toy, plan(toy))
    assert not part.exists()


@pytest.mark.parametrize("obstacle", ["goldens/b", "goldens/b/cpu.json/", ".golden", ".golden/lock/"])
def test_what_cannot_be_written_stops_all_and_is_named(toy: ToyRoot, obstacle: str) -> None:
    path = toy.path / obstacle
    path.parent.mkdir(exist_ok=True)
    path.mkdir() if obstacle.endswith("/") else path.write_text("mine")
    before = sorted(toy.path.rglob("*"))
    changes = plan(toy)
    with pytest.raises(GoldenError, match="nothing was written|no golden was changed") as caught:
        apply(toy, changes)
    assert str(path.parent if obstacle == "goldens/b" else path) in str(caught.value)
    after = {entry for entry in toy.path.rglob("*") if entry.relative_to(toy.path).parts[0] != ".golden"}
    assert after == {entry for entry in before if entry.relative_to(toy.path).parts[0] != ".golden"}


def test_a_full_disk_stops_all_of_them(toy: ToyRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = plan(toy)
    synced: list[int] = []

    def no_space(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(GoldenError, match="No space left on device; no golden was changed"):
        apply(toy, changes)
    assert list((toy.path / "goldens").rglob("*")) == []
