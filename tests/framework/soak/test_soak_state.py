from __future__ import annotations

from pathlib import Path

import pytest

from framework.errors import ExitCode, UsageError
from framework.soak.soak_run import SoakRun, soak_run_from
from framework.soak.state import SoakState, open_state, soak_lock, state_path

KEY = {"engine": "1", "golden": "seal", "manifest": "hash"}
ENVIRONMENT = {"torch": "2", "cpu": "one"}


def run(number: int, *, kinds: tuple[str, ...] = ()) -> SoakRun:
    return SoakRun(
        number=number,
        kinds=kinds,
        exit_code=ExitCode.REGRESSION if kinds else ExitCode.GOOD,
        compared=7,
        seconds=0.25,
        date="2026-01-02",
        overrides={"num_threads": 3} if kinds else {},
        order=(1, 0) if kinds else None,
        arrivals=(4, 2) if kinds else None,
        deviations={"generated_logprobs": 1e-6},
        findings=({"class": "TOKEN", "path": "requests", "message": "ü\nmore"},) if kinds else (),
        finding_count=len(kinds),
    )


RUNS = [run(0), run(1, kinds=("num_threads 3", "arrivals shuffled")), run(2, kinds=("x",)), run(3)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return state_path(tmp_path / ".golden", "folder/a", "cpu")


def filled(path: Path) -> SoakState:
    state = open_state(path, KEY)
    for each in RUNS:
        state.add(each, ENVIRONMENT)
    return state


def test_what_was_kept_is_read_back(path: Path) -> None:
    filled(path)
    state = open_state(path, KEY)
    assert list(state.runs.values()) == RUNS
    assert state.environment == ENVIRONMENT
    assert not state.has_begun_anew


def test_a_kill_at_any_moment_loses_no_whole_line(path: Path) -> None:
    filled(path)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        state = open_state(path, KEY)
        assert list(state.runs.values()) == RUNS[: len(state.runs)]
        assert len(state.runs) >= data[:length].count(b"\n") - 2
        missing = RUNS[len(state.runs) :]
        for each in missing:
            state.add(each, ENVIRONMENT)
        assert list(open_state(path, KEY).runs.values()) == RUNS
        assert b"" not in path.read_bytes().split(b"\n")[:-1]


def test_a_line_that_is_no_run_is_left_out_and_written_no_more(path: Path) -> None:
    filled(path)
    good = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*good[:3], b'{"run": true}\n', b"[1]\n", b"\xff\n", *good[4:]]))
    state = open_state(path, KEY)
    assert sorted(state.runs) == [0, 2, 3]
    state.add(RUNS[1], ENVIRONMENT)
    assert sorted(path.read_bytes().splitlines(keepends=True)) == sorted(good)


@pytest.mark.parametrize("name", KEY)
def test_another_engine_golden_or_manifest_starts_anew(path: Path, name: str) -> None:
    filled(path)
    state = open_state(path, KEY | {name: "another"})
    assert (state.runs, state.has_begun_anew) == ({}, True)
    state.add(RUNS[0], ENVIRONMENT)
    assert list(open_state(path, KEY | {name: "another"}).runs) == [0]
    assert open_state(path, KEY).runs == {}


def test_fresh_forgets_but_writes_nothing_before_a_run(path: Path) -> None:
    filled(path)
    assert open_state(path, KEY, fresh=True).runs == {}
    assert len(open_state(path, KEY).runs) == 4


def test_another_environment_starts_anew_once_a_run_as_written_shows_it(path: Path) -> None:
    filled(path)
    state = open_state(path, KEY)
    other = ENVIRONMENT | {"torch": "3"}
    state.add(run(5, kinds=("num_threads 2",)), other)
    assert len(state.runs) == 5
    state.add(run(8), other)
    assert (list(state.runs), state.has_begun_anew, state.environment) == ([8], True, other)
    state.add(run(12), ENVIRONMENT | {"an engine": "that changes its mind"})
    assert list(open_state(path, KEY).runs) == [8, 12]
    assert open_state(path, KEY).environment == other


def test_a_run_that_gave_no_record_has_no_environment(path: Path) -> None:
    state = open_state(path, KEY)
    state.add(RUNS[0], None)
    assert open_state(path, KEY).environment is None
    state.add(RUNS[3], ENVIRONMENT)
    kept = open_state(path, KEY)
    assert (kept.environment, list(kept.runs)) == (ENVIRONMENT, [0, 3])


def test_a_run_with_an_unknown_exit_code_is_none() -> None:
    entry = RUNS[0].as_json()
    assert soak_run_from(entry) == RUNS[0]
    assert soak_run_from(entry | {"exit_code": 77}) is None
    assert soak_run_from({}) is None


def test_one_soak_at_a_time(tmp_path: Path) -> None:
    with soak_lock(tmp_path), pytest.raises(UsageError, match="another soak is running"), soak_lock(tmp_path):
        pass
    with soak_lock(tmp_path):
        pass


def test_a_folder_where_the_file_belongs_is_named(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(UsageError, match=r"cpu\.jsonl: it cannot be read"):
        open_state(path, KEY)
    with pytest.raises(UsageError, match=r"cpu\.jsonl: the runs of this soak cannot be kept there"):
        SoakState(path, KEY).add(RUNS[0], ENVIRONMENT)
