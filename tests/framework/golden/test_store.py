from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from framework.errors import GoldenError, MissingGoldenError, SealError
from framework.golden.seal import sealed_bytes
from framework.golden.store import (
    golden_path,
    read_golden,
    read_record_or_golden,
    remove_parts,
    why_not_writable,
    write_all,
    write_atomically,
)
from tests.framework.toy_root import REPOSITORY

GOLDEN: dict[str, Any] = {
    "schema": "golden.golden/1",
    "fixture": "a",
    "platform": "cpu",
    "requests": {"0": {"prompt_tokens": [1], "generated_tokens": [2]}},
    "settings": {"mode": {"value": "async", "source": "default"}},
    "environment": {},
    "hashes": {"model": "m"},
    "manifest_sha256": "x",
    "provenance": {"reason": "test"},
}


def write(tmp_path: Path, document: dict[str, Any]) -> Path:
    path = tmp_path / "cpu.json"
    path.write_bytes(sealed_bytes(document))
    return path


def test_a_golden_lies_under_its_fixture_and_platform() -> None:
    assert golden_path(Path("goldens"), "a/b", "cpu") == Path("goldens/a/b/cpu.json")


def test_a_sealed_golden_is_read(tmp_path: Path) -> None:
    golden = read_golden(write(tmp_path, GOLDEN))
    assert golden.document["requests"] == GOLDEN["requests"]


def test_a_crlf_checkout_is_the_same_golden(tmp_path: Path) -> None:
    path = write(tmp_path, GOLDEN)
    original = read_golden(path)
    path.write_bytes(original.data.replace(b"\n", b"\r\n"))
    assert read_golden(path) == original


def test_a_missing_golden_is_not_a_broken_one(tmp_path: Path) -> None:
    with pytest.raises(MissingGoldenError, match=r"golden regen --reason"):
        read_golden(tmp_path / "cpu.json")


def test_a_changed_golden_says_that_its_seal_is_broken_and_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path, GOLDEN)
    path.write_bytes(path.read_bytes().replace(b"[2]", b"[3]"))
    with pytest.raises(SealError, match=r"(?s)seal is broken.*merge.*golden regen"):
        read_golden(path)


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
def test_a_golden_cut_short_is_unreadable_rather_than_unsealed(tmp_path: Path, cut: float) -> None:
    path = write(tmp_path, GOLDEN)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * cut)])
    with pytest.raises(GoldenError, match="golden unreadable: truncated") as caught:
        read_golden(path)
    assert not isinstance(caught.value, SealError)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"schema": "golden.record/1"}, "expected"),
        ({"schema": "other"}, "schema"),
        ({"requests": []}, "a list"),
        ({"requests": {"0": 1}}, "a number"),
        ({"counters": 1}, "counters"),
        ({"platform": None}, "platform"),
        ({"settings": {"mode": "async"}}, "mode"),
        ({"settings": {"mode": {"source": "guess", "value": 1}}}, "mode"),
        ({"hashes": "x"}, "hashes"),
    ],
)
def test_what_is_sealed_but_no_golden_is_refused(tmp_path: Path, change: dict[str, Any], cause: str) -> None:
    with pytest.raises(GoldenError, match=cause):
        read_golden(write(tmp_path, GOLDEN | change))


def test_a_record_needs_no_seal_but_a_golden_does(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"schema": "golden.record/1", "requests": {}}')
    assert read_record_or_golden(path)["requests"] == {}
    path.write_text('{"schema": "golden.golden/1", "requests": {}}')
    with pytest.raises(SealError):
        read_record_or_golden(path)
    path.write_text("[1]")
    with pytest.raises(GoldenError, match="not a record: the top level is a list"):
        read_record_or_golden(path)


def test_an_atomic_write_leaves_the_new_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(b"old")

    def no_space(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_several_files_are_all_written_or_none(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for wrong in (tmp_path / "folder", tmp_path / "old" / "below", tmp_path / "old" / "deep" / "below"):
        with pytest.raises(OSError, match=r"folder|directory"):
            write_all({tmp_path / "old": b"new", tmp_path / "new" / "deep" / "file": b"new", wrong: b"new"})
        assert sorted(tmp_path.rglob("*")) == before
        assert (tmp_path / "old").read_bytes() == b"old"
    write_all({tmp_path / "old": b"new", tmp_path / "new" / "deep" / "file": b"other"})
    assert (tmp_path / "old").read_bytes() == b"new"
    assert (tmp_path / "new" / "deep" / "file").read_bytes() == b"other"


def test_only_what_a_writer_of_the_same_file_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    names = (
        ".cpu.json.x.part",
        ".download.part",
        ".golden-writing-other.json.x.part",
        "deep/.golden-writing-cpu.json.x.part",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("precious")
    (tmp_path / ".golden-writing-cpu.json.x.part").write_text("half")
    remove_parts([path, tmp_path / "missing" / "cpu.json"])
    assert sorted(entry.relative_to(tmp_path).as_posix() for entry in tmp_path.rglob("*.part")) == sorted(names)


@pytest.mark.parametrize(
    ("name", "why"),
    [("folder", "it is a folder"), ("file/x", "file is no folder"), ("file/a/x", "file is no folder"), ("a/b/x", "")],
)
def test_it_is_known_beforehand_what_cannot_be_written(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert why_not_writable(tmp_path / name, tmp_path).endswith(why)
    assert bool(why_not_writable(tmp_path / name, tmp_path)) is bool(why)


def test_a_link_in_a_root_carries_no_file_out_of_it(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "linked").symlink_to(outside)
    (root / "inside").symlink_to(root)
    (tmp_path / "reached").symlink_to(root)
    for path in (root / "linked" / "x", root / "a" / ".." / "linked" / "b" / "x"):
        assert why_not_writable(path, root) == f"a link leads out of {root}"
    assert why_not_writable(tmp_path / "reached" / "linked" / "x", tmp_path / "reached").startswith("a link leads out")
    for path in (outside / "x", root / "inside" / "x", root / ".." / "outside" / "x", tmp_path / "reached" / "x"):
        assert why_not_writable(path, root) == ""


def test_a_path_that_no_file_can_have_is_unreadable() -> None:
    with pytest.raises(GoldenError, match="null byte"):
        read_golden(Path("a\0b"))


def test_a_golden_that_names_no_fixture_is_none(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    sections: dict[str, Any] = {name: {} for name in ("requests", "settings", "environment", "hashes", "provenance")}
    path.write_bytes(sealed_bytes({"schema": "golden.golden/1", "platform": "cpu", "manifest_sha256": "", **sections}))
    with pytest.raises(GoldenError, match='"fixture" is absent'):
        read_golden(path)


KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from framework.golden import store

calls = []
def traced(frame, event, argument):
    if event == "call" and frame.f_code.co_name in ("write_all", "mkstemp", "fdopen", "replace", "_sync_folder"):
        calls.append(frame.f_code.co_name)
        if len(calls) > int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
    return None

sys.setprofile(traced)
store.write_atomically(Path(sys.argv[1]), b"new" * 100000)
"""


@pytest.mark.parametrize("step", range(5))
def test_a_writer_killed_at_any_step_leaves_the_old_file_or_the_new_one(tmp_path: Path, step: int) -> None:
    path = tmp_path / "cpu.json"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", KILLED_WRITER, str(path), str(step)]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == (b"new" * 100_000 if step == 4 else b"old")
    remove_parts([path])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("nonsense", [b"[" * 100_000, b'\n  "seal": "', b"\xff", b"\xef\xbb\xbf{}"])
def test_nonsense_under_a_seal_that_holds_is_unreadable(tmp_path: Path, nonsense: bytes) -> None:
    sealed = sealed_bytes({"schema": "golden.golden/1", "x": "MARK"})
    start = sealed.index(b'\n  "seal": "')
    end = sealed.index(b"\n", start + 1)
    body = sealed[:start].replace(b"MARK", nonsense), sealed[end:]
    digest = hashlib.sha256(b"".join(body)).hexdigest().encode()
    path = tmp_path / "cpu.json"
    path.write_bytes(body[0] + b'\n  "seal": "' + digest + b'",' + body[1])
    with pytest.raises(GoldenError, match="golden unreadable"):
        read_golden(path)
