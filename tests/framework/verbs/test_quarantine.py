from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.framework.quarantine.entries import entry_text, write_quarantine
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("quarantine") / "root")
    root.write("first", prompts="hello")
    root.write("second", prompts="hello", engine="async_sched_mode: legacy")
    root.regen()
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


def moved(toy: ToyRoot) -> None:
    """Let the engine give other tokens, text and log-probs, in every run."""
    toy.misbehave("random")


def only_first(document: dict[str, Any]) -> dict[str, Any]:
    (entry,) = [entry for entry in document["fixtures"] if entry["fixture"] == "first"]
    assert isinstance(entry, dict)
    return entry


def test_declared_classes_are_excused_and_shown_with_owner_issue_and_days_left(toy: ToyRoot) -> None:
    moved(toy)
    write_quarantine(toy.path, entry_text("first", kind="[TOKEN, TEXT, LOGPROB]"))
    done = toy.golden("run", "first", "--junit", "report.xml")
    assert done.returncode == 0, done.stdout
    assert "QUARANTINED first" in done.stdout
    assert "TOKEN" in done.stdout
    assert "(5 days left); owner @ada, issue #12" in done.stdout
    assert "1 QUARANTINED" in done.stdout
    assert "Every golden holds." not in done.stdout
    skipped = ET.parse(toy.path / "report.xml").getroot().find("testcase/skipped")  # noqa: S314 - our own
    assert skipped is not None
    assert skipped.get("type") == "golden.quarantined"


def test_other_classes_and_other_fixtures_stay_red(toy: ToyRoot) -> None:
    moved(toy)
    write_quarantine(toy.path, entry_text("first", kind="TOKEN"))
    code, document = toy.json("run")
    assert code == 1
    assert [entry["verdict"] for entry in document["fixtures"]] == ["FAIL", "FAIL"]
    assert only_first(document)["quarantine"]["why_not"] == "not excused: LOGPROB, TEXT are not what it declares"
    assert "quarantine" not in document["fixtures"][1]


def test_an_engine_that_dies_can_be_excused(toy: ToyRoot) -> None:
    toy.misbehave("die")
    write_quarantine(toy.path, entry_text("first", kind="ENGINE_CRASH"))
    code, document = toy.json("run", "first")
    assert (code, only_first(document)["verdict"]) == (0, "QUARANTINED")


def test_the_golden_in_quarantine_is_never_excused(toy: ToyRoot) -> None:
    toy.golden_path("first").unlink()
    write_quarantine(toy.path, entry_text("first", kind="STRUCTURE"))
    code, document = toy.json("run", "first")
    assert (code, only_first(document)["verdict"]) == (12, "MISSING")


BAD = {
    "expired": [entry_text("first", age=5, left=-1)],
    "unknown": [entry_text("frist")],
    "doubled": [entry_text("first"), entry_text("first", kind="TEXT")],
    "too long": [entry_text("first", age=0, left=31)],
    "not begun": [entry_text("first", age=-1)],
    "of a class that is repaired": [entry_text("first", kind="SEAL")],
    "no such key": [entry_text("first", more="    forever: true\n")],
}


@pytest.mark.parametrize("what", BAD)
def test_a_broken_quarantine_ends_every_verb_that_judges(toy: ToyRoot, what: str) -> None:
    write_quarantine(toy.path, *BAD[what])
    for verb in (("run", "second"), ("lint",), ("check",)):
        done = toy.golden(*verb)
        assert done.returncode == 10, (verb, done.stdout)
        assert "quarantine.yaml:" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_lint_goes_on_beside_a_quarantine_that_cannot_be_read(toy: ToyRoot) -> None:
    (toy.path / "quarantine.yaml").write_text("entries: [\n")
    toy.write("first", engine="asinc_sched_mode: legacy")
    code, document = toy.json("lint")
    messages = [problem["message"] for problem in document["problems"]]
    assert code == 10
    assert any(problem.get("path") == "engine.asinc_sched_mode" for problem in document["problems"])
    assert any(message.startswith("quarantine.yaml:") for message in messages)


def test_passes_in_a_row_are_counted_by_run_and_listed(toy: ToyRoot) -> None:
    write_quarantine(toy.path, entry_text("first"))
    for _ in range(2):
        code, document = toy.json("run", "first")
    assert (code, only_first(document)["verdict"]) == (0, "PASS")
    assert only_first(document)["quarantine"]["consecutive_passes"] == 2
    code, listed = toy.json("quarantine")
    assert (code, listed["schema"]) == (0, "golden.quarantine/1")
    (entry,) = listed["entries"]
    assert (entry["consecutive_passes"], entry["days_left"], entry["holds"]) == ({"cpu": 2}, 5, True)


def test_the_twentieth_pass_says_remove_me(toy: ToyRoot) -> None:
    write_quarantine(toy.path, entry_text("first"))
    assert toy.golden("run", "first").returncode == 0
    counts = toy.path / ".golden" / "quarantine_passes.json"
    kept = json.loads(counts.read_text())
    kept["first on cpu"]["passes"] = 19
    counts.write_text(json.dumps(kept))
    done = toy.golden("run", "first")
    assert done.returncode == 0
    assert "20 passes in a row: REMOVE ME from quarantine.yaml" in " ".join(done.stdout.split())
    assert "20: REMOVE ME" in " ".join(toy.golden("quarantine").stdout.split())


def test_the_list_shows_expired_entries_and_ends_with_ten(toy: ToyRoot) -> None:
    write_quarantine(toy.path, entry_text("first", age=9, left=-2), entry_text("second"))
    done = toy.golden("quarantine")
    assert done.returncode == 10
    assert "does not hold" in done.stdout
    assert "expired on" in done.stderr


def test_without_a_file_the_list_is_empty(toy: ToyRoot) -> None:
    done = toy.golden("quarantine")
    assert (done.returncode, "nothing is in quarantine" in done.stdout) == (0, True)
    assert toy.json("quarantine")[1]["entries"] == []
