from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from framework.errors import ExitCode
from framework.judge import Outcome, Verdict
from framework.quarantine.entry import Entry, Note
from framework.quarantine.passes import count_passes, passes_of
from framework.report.text import quarantine_words
from tests.framework.quarantine.entries import DAY, entry


def outcome(verdict: Verdict = Verdict.PASS, of: Entry | None = None) -> Outcome:
    note = Note(of or entry(), "cpu", days_left=5, excused=verdict is Verdict.QUARANTINED)
    return Outcome("first", verdict, ExitCode.GOOD, quarantine=note)


def counted(folder: Path, *outcomes: Outcome) -> int | None:
    passes = None
    for each in outcomes:
        (noted,) = count_passes(folder, [each])
        assert noted.quarantine is not None
        passes = noted.quarantine.consecutive_passes
    return passes


def test_passes_in_a_row_are_counted_over_runs(tmp_path: Path) -> None:
    assert counted(tmp_path, *[outcome()] * 3) == 3
    assert passes_of(tmp_path, entry(), "cpu") == 3
    assert passes_of(tmp_path, entry(), "nvidia-h200") == 0


@pytest.mark.parametrize("verdict", [Verdict.QUARANTINED, Verdict.FAIL, Verdict.FLAKY, Verdict.ERROR, Verdict.STALE])
def test_whatever_is_no_pass_ends_the_row(tmp_path: Path, verdict: Verdict) -> None:
    assert counted(tmp_path, outcome(), outcome(), outcome(verdict)) == 0
    assert counted(tmp_path, outcome()) == 1


def test_an_entry_that_was_renewed_begins_anew(tmp_path: Path) -> None:
    assert counted(tmp_path, *[outcome()] * 3) == 3
    assert counted(tmp_path, outcome(of=entry(since=DAY - timedelta(days=1)))) == 1


def test_twenty_in_a_row_ask_to_be_removed(tmp_path: Path) -> None:
    said = []
    for _ in range(20):
        (noted,) = count_passes(tmp_path, [outcome()])
        assert noted.quarantine is not None
        said.append(quarantine_words(noted.quarantine))
    assert "19 of 20 passes in a row" in said[18]
    assert "REMOVE ME" not in said[18]
    assert said[19].endswith("20 passes in a row: REMOVE ME from quarantine.yaml")


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", '{"first on cpu": 7}', '{"first on cpu": {"since": "2026-06-05", "passes": "19"}}', "[" * 100_000]
    + [
        f'{{"first on cpu": {{"since": "2026-06-05", "passes": {passes}}}}}' for passes in ("-3", "1.5", "true", "null")
    ],
)
def test_a_damaged_count_is_none(tmp_path: Path, damage: str) -> None:
    (tmp_path / "quarantine_passes.json").write_text(damage)
    assert passes_of(tmp_path, entry(), "cpu") == 0
    assert counted(tmp_path, outcome()) == 1


def test_a_folder_that_cannot_be_written_does_not_fail_a_run(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    outcomes = count_passes(tmp_path / "state", [outcome()])
    assert outcomes[0].verdict is Verdict.PASS
    assert outcomes[0].quarantine is not None
    assert outcomes[0].quarantine.consecutive_passes is None


def test_without_a_quarantine_nothing_is_written(tmp_path: Path) -> None:
    count_passes(tmp_path / "state", [Outcome("first", Verdict.PASS, ExitCode.GOOD)])
    assert not (tmp_path / "state").exists()
