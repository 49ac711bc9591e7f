"""Reruns and retries: what each may do, and that neither ever makes a mismatch a pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.framework.quarantine.entries import entry_text, write_quarantine
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("reruns") / "root")
    root.write("deep/first", prompts="hello")
    root.write("other", prompts="hello")
    root.regen()
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


def run(toy: ToyRoot, *options: str) -> tuple[int, dict[str, Any]]:
    code, document = toy.json("run", "deep/first", *options)
    (entry,) = document["fixtures"]
    assert isinstance(entry, dict)
    return code, entry


def test_a_mismatch_that_is_gone_in_a_rerun_is_flaky_and_stays_red(toy: ToyRoot) -> None:
    toy.misbehave("random", runs=1)
    code, entry = run(toy, "--rerun-mismatches", "3")
    assert (code, entry["verdict"]) == (1, "FLAKY")
    assert {finding["class"] for finding in entry["findings"]} == {"TOKEN", "TEXT", "LOGPROB"}
    assert (entry["reruns"]["count"], entry["reruns"]["differed"]) == (1, True)
    assert entry["reruns"]["message"].startswith("rerun 1 was not like the first run: it passed; TOKEN")


def test_both_records_are_kept_with_their_environment_and_can_be_compared(toy: ToyRoot) -> None:
    toy.misbehave("random")
    _, entry = run(toy, "--rerun-mismatches", "1")
    kept = [Path(name) for name in entry["reruns"]["records"]]
    assert [path.relative_to(toy.path).as_posix() for path in kept] == [
        ".golden/flaky/deep/first/first.json",
        ".golden/flaky/deep/first/rerun-1.json",
    ]
    documents = [json.loads(path.read_text()) for path in kept]
    assert all(document["environment"] == {"machine": "one", "platform": "cpu"} for document in documents)
    (toy.path / "rules.yaml").write_text(
        "assert: {generated_tokens: exact, generated_text: exact}\ninform: [counters, "
        "performance, finish_reason, generated_logprobs]\n"
    )
    code, compared = toy.json("compare", "--rules", "rules.yaml", *map(str, kept))
    assert code == 1
    assert compared["findings"][0]["class"] == "TOKEN"


def test_other_values_in_every_run_are_flaky_and_the_message_says_what_differed(toy: ToyRoot) -> None:
    toy.misbehave("random")
    code, entry = run(toy, "--rerun-mismatches", "5")
    assert (code, entry["verdict"], entry["reruns"]["count"]) == (1, "FLAKY", 1)
    assert 'TOKEN requests["0"].generated_tokens' in entry["reruns"]["message"]
    assert "in the first run" in entry["reruns"]["message"]


@pytest.mark.parametrize("change", ["schedule", "nan"])
def test_the_same_mismatch_each_time_is_deterministic(toy: ToyRoot, change: str) -> None:
    if change == "schedule":
        toy.set_default_mode("legacy")
    else:
        toy.misbehave("nan")
    code, entry = run(toy, "--rerun-mismatches", "2")
    assert (code, entry["verdict"]) == (1, "FAIL")
    assert entry["reruns"] == {
        "count": 2,
        "differed": False,
        "message": "same mismatch in 2 reruns: deterministic",
        "records": [],
    }
    assert not (toy.path / ".golden/flaky").exists()


def test_a_rerun_that_crashes_is_flaky(toy: ToyRoot) -> None:
    toy.misbehave("random", runs=1, then="die")
    code, entry = run(toy, "--rerun-mismatches", "1")
    assert (code, entry["verdict"]) == (1, "FLAKY")
    assert "it gave no record: ENGINE_CRASH" in entry["reruns"]["message"]
    assert entry["findings"][-1]["class"] == "ENGINE_CRASH"
    assert [Path(name).name for name in entry["reruns"]["records"]] == ["first.json"]


def test_without_the_option_nothing_is_run_again(toy: ToyRoot) -> None:
    toy.misbehave("random", runs=1)
    code, entry = run(toy)
    assert (code, entry["verdict"]) == (1, "FAIL")
    assert "reruns" not in entry


def test_a_pass_is_not_run_again(toy: ToyRoot) -> None:
    toy.misbehave("random", runs=0)
    code, entry = run(toy, "--rerun-mismatches", "3")
    assert (code, entry["verdict"]) == (0, "PASS")
    assert "reruns" not in entry


def test_the_terminal_shows_reruns_and_where_records_are_kept(toy: ToyRoot) -> None:
    toy.misbehave("random", runs=1)
    done = toy.golden("run", "--rerun-mismatches", "2")
    assert done.returncode == 1
    assert "RERUN       deep/first" in done.stderr
    assert "1 FLAKY" in done.stdout
    assert "rerun 1 was not like the first run: it passed" in done.stdout
    assert ".golden/flaky/deep/first/rerun-1.json" in done.stdout


@pytest.mark.parametrize(
    ("fault", "kind"), [("die", "ENGINE_CRASH"), ("memory", "OUT_OF_MEMORY"), ("crash", "ENGINE_CRASH")]
)
def test_an_engine_that_failed_once_may_be_retried_and_every_attempt_is_shown(
    toy: ToyRoot, fault: str, kind: str
) -> None:
    toy.misbehave(fault, runs=2)
    code, entry = run(toy, "--retry-infrastructure", "2")
    assert (code, entry["verdict"]) == (0, "PASS")
    assert [attempt["class"] for attempt in entry["attempts"]] == [kind, kind]
    assert all(attempt["message"] and attempt["seconds"] >= 0 for attempt in entry["attempts"])
    toy.misbehave(fault, runs=1)
    done = toy.golden("run", "deep/first", "--retry-infrastructure", "2")
    assert f"RETRY       deep/first  attempt 1 gave no record: {kind}" in done.stderr
    assert f"retried, attempt 1: {kind}" in " ".join(done.stdout.split())


def test_a_hang_may_be_retried_with_its_whole_time_limit(toy: ToyRoot) -> None:
    toy.write("deep/first", prompts="hello", more="time_limit_s: 1")
    toy.misbehave("hang", runs=1)
    code, entry = run(toy, "--retry-infrastructure", "1")
    assert (code, entry["verdict"]) == (0, "PASS")
    assert [attempt["class"] for attempt in entry["attempts"]] == ["TIME_LIMIT"]


def test_retries_end_and_the_failure_stays(toy: ToyRoot) -> None:
    toy.misbehave("die")
    code, entry = run(toy, "--retry-infrastructure", "1")
    assert (code, entry["verdict"]) == (11, "ERROR")
    assert len(entry["attempts"]) == 1


def test_by_default_nothing_is_retried(toy: ToyRoot) -> None:
    toy.misbehave("die", runs=1)
    code, entry = run(toy)
    assert (code, entry["verdict"]) == (11, "ERROR")
    assert "attempts" not in entry


def test_a_mismatch_is_never_retried_as_infrastructure(toy: ToyRoot) -> None:
    toy.misbehave("random", runs=1)
    code, entry = run(toy, "--retry-infrastructure", "5")
    assert (code, entry["verdict"]) == (1, "FAIL")
    assert "attempts" not in entry


def test_a_quarantine_must_declare_what_the_reruns_show_too(toy: ToyRoot) -> None:
    toy.misbehave("random", runs=1)
    write_quarantine(toy.path, entry_text("deep/first", kind="[TOKEN, TEXT]"))
    code, entry = run(toy, "--rerun-mismatches", "1")
    assert (code, entry["verdict"]) == (1, "FLAKY")
    assert not entry["quarantine"]["excused"]


@pytest.mark.parametrize("option", ["--rerun-mismatches", "--retry-infrastructure"])
@pytest.mark.parametrize("value", ["-1", "101", "1.5", "", "99999999999999999999", "²"])
def test_a_number_that_makes_no_sense_is_refused(toy: ToyRoot, option: str, value: str) -> None:
    done = toy.golden("run", f"{option}={value}")
    assert done.returncode == 2
    assert "is no number from 0 to 100" in done.stderr
