from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from framework.golden.store import read_golden
from tests.framework.toy_root import ToyRoot, make_toy_root

REASON = ("--reason", "because")


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("a", prompts="hello, world")
    return root


def test_a_golden_is_written_with_its_reason_and_evidence(toy: ToyRoot) -> None:
    code, document = toy.json("regen", "a", "--yes", *REASON)
    assert code == 0
    assert document["written"] == [str(toy.golden_path("a"))]
    golden = read_golden(toy.golden_path("a")).document
    origin = golden["provenance"]
    assert (origin["reason"], origin["engine_revision"], origin["previous_seal"]) == ("because", "toy 1", None)
    # twice and once fresh, two thread counts, the other mode, reversed, another instruction set
    assert origin["proof"] == {"runs": 8, "spread": {"generated_logprobs": 0.0}, "instruction_set_error": 0.0}
    assert golden["settings"]["async_sched_mode"] == {"value": "async", "source": "default"}
    assert golden["requests"]["0"].keys() == {
        "prompt_tokens",
        "generated_tokens",
        "generated_text",
        "finish_reason",
        "generated_logprobs",
        "margins",
    }
    assert toy.golden("run").returncode == 0


def test_unchanged_values_write_nothing_even_with_another_reason(toy: ToyRoot) -> None:
    toy.regen()
    before = toy.golden_path("a").stat()
    code, document = toy.json("regen", "--yes", "--reason", "another")
    assert (code, document["written"]) == (0, [])
    assert document["fixtures"][0]["change"] == "unchanged"
    assert toy.golden_path("a").stat().st_mtime_ns == before.st_mtime_ns


def test_what_changes_is_shown_by_class_before_it_is_written(toy: ToyRoot) -> None:
    toy.regen()
    seal = read_golden(toy.golden_path("a")).document["seal"]
    toy.set_default_mode("legacy")
    done = toy.golden("regen", "--yes", *REASON)
    assert done.returncode == 0
    assert "a [cpu]: changed, after 8 runs (2 COUNTER)" in done.stdout
    assert "COUNTER counters.async_sched_step_count: 6 → 0" in done.stdout
    assert 'setting async_sched_mode: {"source": "default", "value": "async"} → ' in done.stdout
    golden = read_golden(toy.golden_path("a")).document
    assert golden["provenance"]["previous_seal"] == seal
    assert toy.golden("run").returncode == 0


def test_a_field_no_longer_asserted_leaves_the_golden(toy: ToyRoot) -> None:
    toy.regen()
    path = toy.write("a", prompts="hello, world")
    text = (
        path.read_text()
        .replace("  generated_text: exact\n", "")
        .replace("[performance]", "[performance, generated_text]")
    )
    path.write_text(text)
    toy.regen()
    assert "generated_text" not in read_golden(toy.golden_path("a")).document["requests"]["0"]


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("random", 1, "TOKEN"),
        ("nan", 1, "NON_FINITE requests.0.generated_logprobs[1]"),
        ("tie", 1, "exact tie"),
        ("narrow", 1, "less than 100 times the measured difference between instruction sets"),
        ("crash", 11, "ENGINE_CRASH"),
        ("memory", 11, "OUT_OF_MEMORY"),
        ("hang", 11, "TIME_LIMIT"),
    ],
)
def test_what_cannot_be_believed_is_refused_and_nothing_is_written(
    toy: ToyRoot,
    fault: str,
    code: int,
    words: str,
) -> None:
    toy.write("b", engine=f"fault: {fault}", more="time_limit_s: 1")
    found, document = toy.json("regen", "--yes", *REASON)
    assert found == code
    assert {entry["fixture"]: entry["change"] for entry in document["fixtures"]} == {"a": "new", "b": "refused"}
    assert words in "\n".join(document["fixtures"][1]["problems"])
    assert document["written"] == []
    assert not toy.golden_path("a").exists()


def test_a_witness_that_does_not_hold_refuses(toy: ToyRoot) -> None:
    path = toy.write("a")
    path.write_text(path.read_text().replace("counters.step_count > 0", "counters.step_count > 99"))
    code, document = toy.json("regen", "--yes", *REASON)
    assert code == 1
    assert "WITNESS" in document["fixtures"][0]["problems"][0]


def test_a_relation_that_does_not_hold_refuses(toy: ToyRoot) -> None:
    toy.write("b", prompts="another", more="relations: [{kind: same_outputs_as, with: a}]")
    code, document = toy.json("regen", "b", "--yes", *REASON)
    assert code == 1
    assert "RELATION" in document["fixtures"][0]["problems"][0]


def test_noise_within_the_tolerance_is_recorded_and_a_wide_tolerance_is_warned_about(toy: ToyRoot) -> None:
    path = toy.write("a", engine="fault: noise")
    code, document = toy.json("regen", "--yes", *REASON)
    assert code == 0
    assert document["fixtures"][0]["spread"]["generated_logprobs"] == pytest.approx(1e-6)
    assert document["fixtures"][0]["instruction_set_error"] == pytest.approx(1e-6)
    assert document["fixtures"][0]["warnings"] == []
    path.write_text(path.read_text().replace("atol: 1.0e-5", "atol: 1.0e-3"))
    code, document = toy.json("regen", "--yes", *REASON)
    assert "more than ten times the spread" in document["fixtures"][0]["warnings"][0]
    path.write_text(path.read_text().replace("atol: 1.0e-3", "atol: 1.0e-7"))
    code, document = toy.json("regen", "--yes", *REASON)
    assert code == 1
    assert "instruction set other disagrees: LOGPROB" in document["fixtures"][0]["problems"][0]


def test_a_reason_is_needed(toy: ToyRoot) -> None:
    assert toy.golden("regen", "--yes").returncode == 2
    assert toy.golden("regen", "--yes", "--reason", "  ").returncode == 2


@pytest.mark.parametrize("reason", ["", "\u200b", "\u2060\ufeff", "\u3164", "\u2800", "\u00a0\n", "\u0301"])
def test_a_reason_that_nobody_can_see_is_none(toy: ToyRoot, reason: str) -> None:
    code, document = toy.json("regen", "--yes", "--reason", reason)
    assert code == 2
    assert "--reason is empty" in document["error"]


@pytest.mark.parametrize("value", ["true", "1", "TRUE", "on", "woodpecker", " true"])
def test_any_kind_of_ci_refuses(toy: ToyRoot, value: str) -> None:
    assert toy.golden("regen", "--yes", *REASON, CI=value).returncode == 2
    assert not toy.golden_path("a").exists()


@pytest.mark.parametrize("value", ["", "0", "false", "No"])
def test_what_says_that_this_is_no_ci_does_not(toy: ToyRoot, value: str) -> None:
    assert toy.golden("regen", "--yes", *REASON, CI=value).returncode == 0


def test_nobody_to_ask_means_no_and_what_was_proven_is_kept(toy: ToyRoot) -> None:
    done = toy.golden("regen", *REASON, stdin="y\n")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert "`golden accept --reason …` brings them in" in done.stderr
    assert not toy.golden_path("a").exists()
    assert read_golden(toy.path / ".golden" / "candidates" / "a" / "cpu.json").document["fixture"] == "a"


@pytest.mark.parametrize(("answer", "written"), [("y", True), ("n", False), ("", False)])
def test_a_person_is_asked(toy: ToyRoot, answer: str, written: bool) -> None:
    controller, terminal = os.openpty()
    command = [sys.executable, "-m", "framework", "regen", *REASON]
    os.write(controller, f"{answer}\n".encode())
    done = subprocess.run(
        command,
        cwd=toy.path,
        env=toy.environment(),
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(controller)
    os.close(terminal)
    assert done.returncode == 0
    assert "write 1 golden(s)? [y/N]" in done.stderr
    assert toy.golden_path("a").exists() is written
    assert (toy.path / ".golden" / "candidates" / "a" / "cpu.json").exists() is not written


def test_no_golden_is_written_through_a_link_that_leads_out(toy: ToyRoot, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (toy.path / "toy_default_fault").write_text("die")
    toy.golden_path("a").parent.symlink_to(tmp_path / "elsewhere")
    code, document = toy.json("regen", "--yes", *REASON)
    assert code == 12
    assert "a link leads out of" in document["error"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def kept(toy: ToyRoot) -> list[str]:
    folder = toy.path / ".golden" / "candidates"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.json"))


def test_what_was_proven_outlives_an_interruption_while_a_person_is_asked(toy: ToyRoot) -> None:
    controller, terminal = os.openpty()
    command = [sys.executable, "-m", "framework", "regen", *REASON]
    with subprocess.Popen(
        command, cwd=toy.path, env=toy.environment(), stdin=terminal, stdout=-3, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        said = b""
        while b"[y/N]" not in said:
            part = os.read(process.stderr.fileno(), 65536)
            assert part, said
            said += part
        process.send_signal(signal.SIGKILL)
    os.close(controller)
    os.close(terminal)
    assert kept(toy) == ["a/cpu.json"]
    assert toy.golden("accept", "--yes", *REASON).returncode == 0


def test_without_an_answer_the_document_says_what_waits(toy: ToyRoot) -> None:
    code, document = toy.json("regen", *REASON)
    assert (code, document["exit_code"], document["verdict"], document["written"]) == (2, 2, "FAIL", [])
    assert document["pending"] == [str(toy.path / ".golden" / "candidates" / "a" / "cpu.json")]


def test_nobody_need_be_asked_where_nothing_changed(toy: ToyRoot) -> None:
    toy.regen()
    assert toy.golden("regen", *REASON).returncode == 0
    assert kept(toy) == []


def test_a_golden_that_is_written_or_stands_leaves_no_candidate_behind(toy: ToyRoot) -> None:
    toy.golden("regen", *REASON)
    assert kept(toy) == ["a/cpu.json"]
    toy.regen()
    assert kept(toy) == []
    toy.set_default_mode("legacy")
    toy.golden("regen", *REASON)
    toy.set_default_mode("async")
    assert kept(toy) == ["a/cpu.json"]
    assert toy.golden("regen", *REASON).returncode == 0
    assert kept(toy) == []


def test_goldens_that_cannot_be_written_leave_what_was_proven_as_candidates(toy: ToyRoot) -> None:
    toy.golden_path("a").mkdir(parents=True)
    done = toy.golden("regen", "--yes", *REASON)
    assert done.returncode == 12
    assert "1 candidate(s) that were proven are kept" in done.stderr
    assert kept(toy) == ["a/cpu.json"]


def test_a_tolerance_below_the_spread_is_refused_with_the_way_out(toy: ToyRoot) -> None:
    path = toy.write("a", engine="fault: noise")
    path.write_text(path.read_text().replace("atol: 1.0e-5", "atol: 1.0e-7"))
    code, document = toy.json("regen", "--yes", *REASON)
    assert code == 1
    assert "generated_logprobs: atol 1e-07, rtol 0.0 allows 1e-07, less than the spread 1e-06" in str(document)


def test_ci_writes_candidates_only(toy: ToyRoot) -> None:
    done = toy.golden("regen", "--yes", *REASON, CI="true")
    assert done.returncode == 2
    assert "--out DIR" in done.stderr
    assert list((toy.path / "goldens").iterdir()) == []
    assert toy.golden("regen", "--out", "candidates", *REASON, CI="true").returncode == 0
    assert read_golden(toy.path / "candidates" / "a" / "cpu.json").document["fixture"] == "a"
    assert list((toy.path / "goldens").iterdir()) == []


def test_candidates_never_go_into_goldens(toy: ToyRoot) -> None:
    assert toy.golden("regen", "--out", "goldens/new", *REASON).returncode == 2


@pytest.mark.parametrize("out", ["", "file", "file/deep", "goldens", "link", "inner", "root/goldens"])
def test_a_folder_for_candidates_that_is_unfit_is_refused_before_anything_runs(toy: ToyRoot, out: str) -> None:
    (toy.path / "toy_default_fault").write_text("die")
    (toy.path / "file").write_text("mine")
    (toy.path / "link").symlink_to(toy.path / "goldens")
    (toy.path / "root").symlink_to(toy.path)
    (toy.path / "inner").mkdir()
    (toy.path / "inner" / "a").symlink_to(toy.path / "goldens")
    code, document = toy.json("regen", "--out", out, *REASON)
    assert code == 2
    assert "--out" in document["error"]
    assert list((toy.path / "goldens").iterdir()) == []
    assert (toy.path / "file").read_text() == "mine"


def test_foreign_files_beside_candidates_stay(toy: ToyRoot) -> None:
    foreign = toy.path / "candidates" / "a" / ".download.part"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("precious")
    assert toy.golden("regen", "--out", "candidates", *REASON).returncode == 0
    assert foreign.read_text() == "precious"


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ("del record['requests']['0']['margins']", 1, 'requests["0"].margins: a margin for each token'),
        ("record['requests']['1']['margins'].pop()", 1, 'requests["1"].margins: a margin for each token'),
        ("del record['requests']['1']", 1, 'requests["1"]: the engine gave no such request'),
        ("record['requests']['0']['margins'][0] = -1.0", 1, "exact tie"),
        ("record['fixture'] = 'b'", 11, "record is malformed"),
        ("record['settings']['x'] = 5", 11, "record is malformed"),
    ],
)
def test_what_a_run_would_refuse_to_read_is_never_written(toy: ToyRoot, change: str, code: int, words: str) -> None:
    adapter = toy.path / "toy_adapter.py"
    head = '        return {"schema": "nonsense"}'
    adapter.write_text(adapter.read_text().replace(head, f"        {change}\n{head}"))
    found, document = toy.json("regen", "--yes", *REASON)
    assert found == code
    assert words in "\n".join(document["fixtures"][0]["problems"])
    assert not toy.golden_path("a").exists()


def test_a_request_that_failed_or_samples_needs_no_margins(toy: ToyRoot) -> None:
    path = toy.write(
        "a", prompts="{text: hello, sampling: {temperature: 1.0}}, world", workload="  arrivals: {requests_per_step: 1}"
    )
    adapter = toy.path / "toy_adapter.py"
    head = '        return {"schema": "nonsense"}'
    changes = "del outputs['0']['margins']; outputs['1'].update(error='too long', margins=[])"
    adapter.write_text(adapter.read_text().replace(head, f"        {changes}\n{head}"))
    path.write_text(path.read_text().replace("generated_tokens: exact", "generated_tokens: exact\n  error: exact"))
    _, document = toy.json("regen", "--yes", *REASON)
    assert "margins" not in "\n".join(document["fixtures"][0]["problems"])
    assert document["written"] == [str(toy.golden_path("a"))]


def test_a_broken_golden_is_replaced(toy: ToyRoot) -> None:
    toy.regen()
    toy.golden_path("a").write_text("<<<<<<< ours")
    done = toy.golden("regen", "--yes", *REASON)
    assert done.returncode == 0
    assert "replaces a broken one" in done.stdout
    assert toy.golden("run").returncode == 0


@pytest.mark.parametrize("seconds", [0.3, 0.7, 1.0, 1.3])
def test_a_regeneration_killed_at_any_moment_leaves_the_old_golden_or_the_new_one(toy: ToyRoot, seconds: float) -> None:
    toy.regen()
    old = toy.golden_path("a").read_bytes()
    toy.set_default_mode("legacy")
    command = [sys.executable, "-m", "framework", "regen", "--yes", *REASON]
    with subprocess.Popen(command, cwd=toy.path, env=toy.environment(), stdout=-3, stderr=-3) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    golden = read_golden(toy.golden_path("a"))
    assert golden.data == old or golden.document["counters"]["async_sched_step_count"] == 0
    assert toy.golden("regen", "--yes", *REASON).returncode == 0
    assert [path.name for path in toy.golden_path("a").parent.iterdir()] == ["cpu.json"]
    assert json.loads(toy.golden_path("a").read_bytes())["counters"]["async_sched_step_count"] == 0
