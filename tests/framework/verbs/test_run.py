from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    """A root with goldens; tests change what they need in a copy."""
    root = make_toy_root(tmp_path_factory.mktemp("run"))
    root.write("default", prompts="hello, world")
    legacy = "relations: [{kind: async_equals_legacy, with: default}]"
    root.write("mode/legacy", engine="async_sched_mode: legacy", prompts="hello, world", more=legacy)
    root.regen()
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


def classes(document: dict[str, object]) -> dict[str, list[str]]:
    entries = document["fixtures"]
    assert isinstance(entries, list)
    return {entry["fixture"]: [finding["class"] for finding in entry["findings"]] for entry in entries}


def verdicts(document: dict[str, object]) -> dict[str, str]:
    entries = document["fixtures"]
    assert isinstance(entries, list)
    return {entry["fixture"]: entry["verdict"] for entry in entries}


def test_goldens_that_were_just_recorded_pass(toy: ToyRoot) -> None:
    code, document = toy.json("run")
    assert code == 0
    assert (document["schema"], document["verdict"], document["exit_code"]) == ("golden.run/1", "PASS", 0)
    assert verdicts(document) == {"default": "PASS", "mode/legacy": "PASS"}
    assert document["settings_drift"] == []
    entry = document["fixtures"][0]
    usual = {"fixture", "verdict", "compared", "informed", "ignored", "seconds", "platform", "findings"}
    assert entry.keys() == usual
    assert entry["platform"] == "cpu"
    timing = document["timing"]
    assert timing.keys() == {"wall_seconds", "engine_seconds", "framework_seconds", "framework_share"}
    assert timing["wall_seconds"] >= timing["framework_seconds"] >= 0.0
    assert entry["compared"] == 2 * (6 + 1 + 1 + 6) + 2


def test_the_table_shows_every_fixture_and_progress_goes_to_stderr(toy: ToyRoot) -> None:
    done = toy.golden("run")
    assert done.returncode == 0
    assert "the toy gives what it gave before" in done.stdout
    assert "2 PASS; 60 values compared" in done.stdout
    assert [line.split()[:2] for line in done.stderr.splitlines()] == [["PASS", "default"], ["PASS", "mode/legacy"]]


def test_a_changed_default_is_said_first_with_whom_it_reaches(toy: ToyRoot) -> None:
    toy.set_default_mode("legacy")
    code, document = toy.json("run")
    assert code == 1
    assert document["settings_drift"] == [
        {
            "setting": "async_sched_mode",
            "golden": "async",
            "current": "legacy",
            "inherited_by": ["default"],
            "pinned_by": ["mode/legacy"],
        },
    ]
    assert classes(document) == {"default": ["SETTINGS_DRIFT", "COUNTER", "COUNTER"], "mode/legacy": []}
    counters = {finding["path"]: finding for finding in document["fixtures"][0]["findings"][1:]}
    moved = counters["counters.async_sched_step_count"]
    assert (moved["golden"], moved["current"]) == (6, 0)
    done = toy.golden("run")
    assert done.stdout.startswith("DEFAULT CHANGED: `async_sched_mode` default async → legacy since")
    assert "1 fixture inherits it: default; pinned, so not affected: mode/legacy" in done.stdout


def test_an_edited_workload_is_stale_and_never_run(toy: ToyRoot) -> None:
    toy.write("default", engine="fault: die")
    code, document = toy.json("run", "default")
    assert code == 12
    assert verdicts(document) == {"default": "STALE"}
    assert classes(document) == {"default": ["STALE"]}


def test_a_changed_model_is_stale_rather_than_wrong_tokens(toy: ToyRoot) -> None:
    (toy.path / "fixtures/models/toy/config.json").write_text('{"vocab_size": 1000, "new": true}')
    code, document = toy.json("run", "default")
    assert code == 12
    assert document["fixtures"][0]["findings"][0]["path"] == "hashes.model"


def test_a_golden_edited_by_hand_has_a_broken_seal(toy: ToyRoot) -> None:
    path = toy.golden_path("default")
    path.write_text(path.read_text().replace('"step_count": 7', '"step_count": 8'))
    code, document = toy.json("run", "default")
    assert code == 12
    assert verdicts(document) == {"default": "ERROR"}
    assert classes(document) == {"default": ["SEAL"]}


def test_a_golden_cut_in_half_is_unreadable(toy: ToyRoot) -> None:
    path = toy.golden_path("default")
    path.write_bytes(path.read_bytes()[:300])
    done = toy.golden("run", "default")
    assert done.returncode == 12
    assert f"{path}: golden unreadable: truncated" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_golden_of_another_fixture_is_refused(toy: ToyRoot) -> None:
    toy.golden_path("default").write_bytes(toy.golden_path("mode/legacy").read_bytes())
    code, document = toy.json("run", "default")
    assert code == 12
    assert "recorded for mode/legacy" in document["fixtures"][0]["findings"][0]["message"]


def test_a_fixture_without_a_golden_is_missing(toy: ToyRoot) -> None:
    toy.write("new")
    code, document = toy.json("run", "new")
    assert code == 12
    assert verdicts(document) == {"new": "MISSING"}


@pytest.mark.parametrize(
    ("fault", "code", "verdict", "kind"),
    [
        ("crash", 11, "ERROR", "ENGINE_CRASH"),
        ("die", 11, "ERROR", "ENGINE_CRASH"),
        ("memory", 11, "ERROR", "OUT_OF_MEMORY"),
        ("hang", 11, "ERROR", "TIME_LIMIT"),
        ("nan", 1, "FAIL", "NON_FINITE"),
        ("random", 1, "FAIL", "TOKEN"),
    ],
)
def test_an_engine_that_misbehaves_has_its_class(toy: ToyRoot, fault: str, code: int, verdict: str, kind: str) -> None:
    (toy.path / "toy_default_fault").write_text(fault)
    toy.write("default", prompts="hello, world", more="time_limit_s: 1")
    found, document = toy.json("run", "default")
    assert found == code
    assert verdicts(document) == {"default": verdict}
    assert kind in classes(document)["default"]


def test_a_relation_is_checked_between_the_records_of_the_run(toy: ToyRoot) -> None:
    toy.write("default", prompts="goodbye, world")
    toy.regen("default")
    _, document = toy.json("run")
    assert verdicts(document) == {"default": "PASS", "mode/legacy": "FAIL"}
    assert set(classes(document)["mode/legacy"]) == {"RELATION"}
    _, alone = toy.json("run", "mode/legacy")
    assert classes(alone)["mode/legacy"] == classes(document)["mode/legacy"]


def test_a_paired_ratio_is_measured_and_judged_in_the_run(toy: ToyRoot) -> None:
    relation = "relations: [{kind: async_equals_legacy, with: mode/legacy}]"
    rule = "  performance: {paired_throughput_ratio: {ratio: [0.9, 1.1]}}"
    toy.write("fast", engine="async_sched_mode: async", prompts="hello, world", rules=rule, more=relation)
    toy.regen("fast")
    golden = json.loads(toy.golden_path("fast").read_bytes())
    assert golden["performance"] == {"paired_throughput_ratio": [2.0] * 5}
    assert toy.json("run", "fast")[0] == 0
    code, document = toy.json("run", "fast", TOY_SLOW_MODE="async")
    assert code == 1
    assert classes(document) == {"fast": ["PERFORMANCE"]}


def test_a_junit_report_is_written_beside_the_table(toy: ToyRoot) -> None:
    toy.set_default_mode("legacy")
    assert toy.golden("run", "--junit", "out/report.xml").returncode == 1
    report = (toy.path / "out/report.xml").read_text()
    assert '<testsuite name="golden" tests="2" failures="1"' in report


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["defualt"], 13, 'Did you mean "default"'),
        (["--tag", "toi"], 13, 'Did you mean "toy"'),
        (["--platform", "nvidia-h200"], 2, "no fixture is for the platform 'nvidia-h200'. There are: cpu"),
        (["--platfrom", "cpu"], 2, "--platfrom"),
    ],
)
def test_nothing_to_run_says_why(toy: ToyRoot, arguments: list[str], code: int, words: str) -> None:
    done = toy.golden("run", *arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_platform_that_is_not_here_is_skipped_with_its_reason(toy: ToyRoot) -> None:
    toy.write("gpu", more="platforms: [nvidia-h200]")
    code, document = toy.json("run", "--platform", "nvidia-h200")
    assert verdicts(document) == {"default": "SKIP", "gpu": "SKIP", "mode/legacy": "SKIP"}
    assert document["fixtures"][0]["reason"] == "it is for cpu; this machine has cpu and nvidia-h200 was asked for"
    assert (code, document["verdict"]) == (13, "FAIL")


@pytest.mark.parametrize("target", ["", "folder", "file/report.xml", "file/deep/report.xml"])
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(toy: ToyRoot, target: str) -> None:
    (toy.path / "folder").mkdir()
    (toy.path / "file").write_text("mine")
    (toy.path / "toy_default_fault").write_text("die")
    code, document = toy.json("run", "--junit", target)
    assert code == 2
    assert "--junit" in document["error"]
    assert (toy.path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("asinc_sched_mode: legacy", ["fixtures/default.yaml:6", "asinc_sched_mode", "async_sched_mode"]),
        ("async_sched_mode: sometimes", ["fixtures/default.yaml:6", "sometimes"]),
        ("async_sched_mode: legacy, fault: hang", ["fixtures/default.yaml:6", "'hang' needs"]),
        ("fault: none, fault: die", ["fixtures/default.yaml:6", "fault"]),
    ],
)
def test_a_broken_manifest_ends_before_any_engine_starts(toy: ToyRoot, engine: str, words: list[str]) -> None:
    toy.write("default", engine=engine)
    done = toy.golden("run")
    assert done.returncode == 10
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr
    code, document = toy.json("run")
    assert (code, document["exit_code"]) == (10, 10)


def test_an_error_is_one_json_document_too(toy: ToyRoot) -> None:
    code, document = toy.json("run", "nothing")
    assert (code, document["verdict"], document["exit_code"]) == (13, "ERROR", 13)
    assert "nothing" in document["error"]


def test_reports_are_files_beside_what_is_printed(toy: ToyRoot) -> None:
    code, document = toy.json("run", "--report", "r.json", "--markdown", "r.md", "--junit", "r.xml")
    assert code == 0
    assert json.loads((toy.path / "r.json").read_text()) == document
    assert (toy.path / "r.md").read_text().startswith("## Golden values: PASS\n")
    assert "<testsuite" in (toy.path / "r.xml").read_text()


@pytest.mark.parametrize("option", ["--report", "--markdown", "--junit"])
def test_a_report_that_could_not_be_written_is_refused_before_anything_runs(toy: ToyRoot, option: str) -> None:
    done = toy.golden("run", option, "pyproject.toml/file")
    assert done.returncode == 2
    assert f"{option} pyproject.toml/file: it cannot be written" in done.stderr
    assert done.stdout == ""


def test_the_share_of_the_framework_is_said(toy: ToyRoot) -> None:
    assert "The framework around the engine took" in toy.golden("run").stdout


def test_the_share_of_the_framework_is_that_of_the_whole_process(toy: ToyRoot) -> None:
    _, document = toy.json("run", "default", TOY_SECONDS="0.4")
    timing = document["timing"]
    assert 0.4 <= timing["engine_seconds"] < timing["wall_seconds"]
    assert timing["framework_seconds"] == pytest.approx(timing["wall_seconds"] - timing["engine_seconds"], abs=0.002)
    assert timing["framework_seconds"] > 0.05  # interpreter, imports and manifests are the framework's own
    last = toy.golden("run", "default").stdout.splitlines()[-1]
    assert last.startswith("The framework around the engine took ")


def test_an_adapter_that_fails_to_get_ready_is_run_all_the_same(toy: ToyRoot) -> None:
    with (toy.path / "toy_adapter.py").open("a") as stream:
        stream.write("\ndef prepare(self): raise OSError('no toys')\nToyEngine.prepare = prepare\n")
    assert toy.golden("run", "default").returncode == 0
