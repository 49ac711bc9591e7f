from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.gate.key import Reached
from framework.gate.passes import MOST_KEPT, Pass, Passes, read_passes, write_passes


def a_pass(fixture: str = "first", golden: str = "1", head: str = "a" * 40) -> Pass:
    groups = {"manifest": {"fixtures/first.yaml": "0"}, "golden": {"goldens/first/cpu.json": golden}}
    return Pass(fixture, "cpu", groups, Reached(("engine/config.py",), is_whole=True), head, 0.5, 76)


def test_passes_read_back_as_they_were_written(tmp_path: Path) -> None:
    passes = Passes((a_pass(), a_pass("second")))
    write_passes(tmp_path / "passes.json", passes)
    assert read_passes(tmp_path / "passes.json") == passes


def test_without_a_file_nothing_has_passed(tmp_path: Path) -> None:
    found = read_passes(tmp_path / "passes.json")
    assert (found.known, found.problem) == ((), "no earlier pass is recorded here")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("passes") / "passes.json"
    write_passes(path, Passes((a_pass(), a_pass("second"))))
    return path.read_bytes()


@given(st.data())
def test_one_wrong_byte_and_nothing_in_it_counts(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(whole) - 2))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != whole[place]))
    path = tmp_path_factory.mktemp("damaged") / "passes.json"
    path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
    found = read_passes(path)
    sound = Passes((a_pass(), a_pass("second")))
    assert found == sound or (found.known == () and "no earlier pass counts" in found.problem)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"null", b"\xff\xfe", b'{"schema": "golden.gate-passes/1"}', b"[" * 100_000],
)
def test_a_file_that_is_something_else_is_said_to_be_damaged(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "passes.json"
    path.write_bytes(data)
    assert "damaged" in read_passes(path).problem


def test_another_version_counts_for_nothing(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "passes.json"
    path.write_text(json.dumps({**json.loads(whole), "schema": "golden.gate-passes/2"}))
    assert read_passes(path).known == ()


def test_the_latest_passes_of_a_fixture_are_kept_each_once() -> None:
    passes = Passes()
    for number in range(20):
        passes = passes.with_more([a_pass(golden=str(number)), a_pass(golden=str(number), head="b" * 40)])
    kept = passes.by_fixture("cpu")["first"]
    assert [each.groups["golden"]["goldens/first/cpu.json"] for each in kept] == [
        str(number) for number in range(19, 19 - MOST_KEPT, -1)
    ]
    assert passes.by_fixture("nvidia-h200") == {}
