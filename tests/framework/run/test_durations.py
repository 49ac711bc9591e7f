from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.run.durations import FILE, expected_seconds, read_durations, record_durations


def warned(heard: list[str], folder: Path) -> dict[str, dict[str, float]]:
    return read_durations(folder, heard.append)


def test_seconds_are_kept_by_platform_and_merged(tmp_path: Path) -> None:
    heard: list[str] = []
    record_durations(tmp_path, {("cpu", "a"): 1.25, ("gpu", "a"): 0.5}, heard.append)
    record_durations(tmp_path, {("cpu", "b/c"): 2.0, ("gpu", "a"): 0.75}, heard.append)
    assert warned(heard, tmp_path) == {"cpu": {"a": 1.25, "b/c": 2.0}, "gpu": {"a": 0.75}}
    assert heard == []


def test_without_a_file_there_is_neither_a_time_nor_a_warning(tmp_path: Path) -> None:
    heard: list[str] = []
    assert warned(heard, tmp_path) == {}
    record_durations(tmp_path / "new", {}, heard.append)
    assert heard == []
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"schema": "another/1", "seconds": {}}',
        b'{"schema": "golden.durations/1", "seconds": []}',
        b'{"schema": "golden.durations/1", "seconds": {"cpu": 1}}',
        b'{"schema": "golden.durations/1", "seconds": {"cpu": {"a": NaN}}}',
        b'{"schema": "golden.durations/1", "seconds": {"cpu": {"a": -1}}}',
        b'{"schema": "golden.durations/1", "seconds": {"cpu": {"a": true}}}',
        b'{"schema": "golden.durations/1", "seconds": {"cpu": {"a": "1"}}}',
        b'{"schema": "golden.durations/1", "seconds": {"cpu": {"a": 1e999}}}',
    ],
)
def test_a_file_that_is_damaged_or_not_ours_is_a_warning_and_then_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    heard: list[str] = []
    assert warned(heard, tmp_path) == {}
    assert len(heard) == 1
    assert str(tmp_path / FILE) in heard[0]
    record_durations(tmp_path, {("cpu", "a"): 1.0}, heard.append)
    assert json.loads((tmp_path / FILE).read_bytes())["seconds"] == {"cpu": {"a": 1.0}}


def test_a_folder_where_the_file_should_be_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    heard: list[str] = []
    assert warned(heard, tmp_path) == {}
    record_durations(tmp_path, {("cpu", "a"): 1.0}, heard.append)
    assert [line.startswith("warning: ") for line in heard] == [True, True]


def test_a_fixture_without_a_time_is_expected_to_take_the_median() -> None:
    assert expected_seconds({"a": 1.0, "b": 5.0, "c": 3.0}, "b") == 5.0
    assert expected_seconds({"a": 1.0, "b": 5.0, "c": 3.0}, "new") == 3.0
    assert expected_seconds({}, "new") == 1.0
