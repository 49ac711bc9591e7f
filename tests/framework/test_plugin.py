from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from framework.plugin import root_of_manifest
from tests.framework.quarantine.entries import entry_text, write_quarantine
from tests.framework.toy_root import REPOSITORY, ToyRoot, make_toy_root

INSTALLED = any(entry.value == "framework.plugin" for entry in entry_points(group="pytest11"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("plugin"))
    root.write("default")
    root.write(
        "mode/legacy", engine="async_sched_mode: legacy", more="relations: [{kind: same_outputs_as, with: default}]"
    )
    root.regen()
    (root.path / "pytest.ini").write_text("[pytest]\n")
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> ToyRoot:
    root = recorded.copy(tmp_path / "root")
    monkeypatch.chdir(root.path)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    return root


def run(pytester: pytest.Pytester, *arguments: str, timeout: float = 60) -> pytest.RunResult:
    plugin = () if INSTALLED else ("-p", "framework.plugin")
    return pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *arguments, timeout=timeout)


def test_every_manifest_is_an_item_and_passes(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    result = run(pytester, "fixtures", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*default.yaml::default PASSED*", "*legacy.yaml::mode/legacy PASSED*"])
    result.stdout.fnmatch_lines(["*2 fixtures, 32 values compared*"])


def test_a_failing_item_shows_what_golden_run_shows(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    toy.set_default_mode("legacy")
    result = run(pytester, "fixtures", "--golden-report", "report.json")
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "FAIL default: * compared*",
            "*SETTINGS_DRIFT settings.async_sched_mode*",
            "*COUNTER counters.async_sched_step_count*",
            "DEFAULT CHANGED: `async_sched_mode` default async → legacy*default*not affected: mode/legacy*",
        ],
    )
    assert "Traceback" not in result.stdout.str()
    document = json.loads((toy.path / "report.json").read_text())
    _, expected = toy.json("run")
    assert _timeless(document) == _timeless(expected)


def _timeless(document: dict[str, object]) -> dict[str, object]:
    text = json.dumps(document)
    loaded: dict[str, object] = json.loads(text, object_hook=lambda entry: {**entry, "seconds": 0})
    loaded.pop("timing", None)
    return loaded


def test_workers_run_fixtures_and_the_controller_reports(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    toy.set_default_mode("legacy")
    result = run(pytester, "fixtures", "-n", "2", "--golden-report", "report.json")
    result.assert_outcomes(passed=1, failed=1)
    document = json.loads((toy.path / "report.json").read_text())
    assert [entry["fixture"] for entry in document["fixtures"]] == ["default", "mode/legacy"]
    assert document["exit_code"] == 1
    assert document["settings_drift"][0]["pinned_by"] == ["mode/legacy"]


def test_items_are_selected_by_name_and_tag(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    run(pytester, "fixtures", "-k", "legacy").assert_outcomes(passed=1, deselected=1)
    run(pytester, "fixtures", "-k", "toy").assert_outcomes(passed=2)
    run(pytester, "fixtures/mode").assert_outcomes(passed=1)


def test_a_platform_that_is_not_here_skips(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    toy.write("gpu", more="platforms: [nvidia-h200]")
    result = run(pytester, "fixtures", "--golden-platform", "nvidia-h200", "-rs", "--golden-report", "report.json")
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["*this machine has cpu and nvidia-h200 was asked for*"])
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert json.loads((toy.path / "report.json").read_text())["exit_code"] == 13


def test_skipped_fixtures_beside_passing_ones_are_no_failure(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    toy.write("gpu", more="platforms: [nvidia-h200]")
    result = run(pytester, "fixtures", "-n", "2")
    result.assert_outcomes(passed=2, skipped=1)
    assert result.ret == 0


def test_a_platform_of_no_fixture_is_an_error(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    result = run(pytester, "fixtures", "--golden-platform", "nonsense")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*no fixture is for the platform 'nonsense'. There are: cpu*"])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize(
    ("text", "words"),
    [("def x(:", "SyntaxError: invalid syntax (at *toy_adapter.py:1)"), ("NOPE", "NameError: *toy_adapter.py:1)")],
)
def test_an_engine_that_cannot_be_imported_is_an_error(
    toy: ToyRoot, pytester: pytest.Pytester, text: str, words: str
) -> None:
    (toy.path / "toy_adapter.py").write_text(text)
    result = run(pytester, "fixtures")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"*cannot be imported: {words}".replace("(at", "[(]at")])
    assert "Traceback" not in result.stdout.str()


def test_a_fault_of_the_framework_is_one_line(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    with (toy.path / "toy_adapter.py").open("a") as stream:
        stream.write("\ndef broken(self, path): raise KeyError('odd')\nToyEngine.model_hashes = broken\n")
    result = run(pytester, "fixtures", "-k", "legacy")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["internal error: KeyError: 'odd' *please report it*"])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize("target", ["", "fixtures", "pytest.ini/report.json"])
def test_a_report_that_cannot_be_written_is_refused_first(toy: ToyRoot, pytester: pytest.Pytester, target: str) -> None:
    result = run(pytester, "fixtures", f"--golden-report={target}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--golden-report {target}: it cannot be written: *"])


def test_who_pins_a_setting_is_said_of_fixtures_that_did_not_run(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    toy.set_default_mode("legacy")
    result = run(pytester, "fixtures", "-k", "default")
    result.stdout.fnmatch_lines(["DEFAULT CHANGED: *not affected: mode/legacy*"])


def test_a_broken_manifest_is_a_collection_error_with_its_line(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    (toy.path / "fixtures" / "broken.yaml").write_text("manifest: 1\nmanifest: 1\n")
    result = run(pytester, "fixtures")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixtures/broken.yaml:2*"])
    assert "Traceback" not in result.stdout.str()


def test_an_unknown_setting_fails_without_an_engine(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    toy.write("default", engine="asinc: 1")
    result = run(pytester, "fixtures", "-k", "default")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*fixtures/default.yaml:6*asinc*"])


def test_nothing_is_ever_written_to_goldens(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    toy.set_default_mode("legacy")
    toy.golden_path("mode/legacy").unlink()
    before = {path: path.read_bytes() for path in toy.path.glob("goldens/**/*.json")}
    run(pytester, "fixtures").assert_outcomes(failed=2)
    assert {path: path.read_bytes() for path in toy.path.glob("goldens/**/*.json")} == before


def test_yaml_of_other_repositories_is_left_alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    pytester.makepyfile("import sys\ndef test_it(): assert 'framework.judge' not in sys.modules\n")
    for name in ("a.yaml", "fixtures/b.yaml", "goldens/c.yaml"):
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("no: manifest")
    (pytester.path / "fixtures" / "b.yaml").unlink()
    result = run(pytester)
    result.assert_outcomes(passed=1)
    assert "fixtures" not in result.stdout.str(), "there is no section about fixtures"
    assert not (pytester.path / ".golden").exists()


@pytest.mark.parametrize(
    ("name", "is_manifest"),
    [
        ("fixtures/a.yaml", True),
        ("fixtures/deep/a.yml", True),
        ("fixtures/models/a.yaml", False),
        ("fixtures/deep/models/a.yaml", True),
        ("fixtures/.hidden/a.yaml", False),
        ("fixtures/a.json", False),
        ("other/a.yaml", False),
        ("elsewhere/fixtures/a.yaml", False),
    ],
)
def test_only_files_under_the_fixtures_of_a_root_are_manifests(tmp_path: Path, name: str, is_manifest: bool) -> None:
    (tmp_path / "goldens").mkdir()
    assert root_of_manifest(tmp_path / name) == (tmp_path if is_manifest else None)


def test_a_fixture_in_quarantine_is_expected_to_fail_with_owner_and_issue(
    toy: ToyRoot, pytester: pytest.Pytester
) -> None:
    toy.misbehave("random")
    write_quarantine(toy.path, entry_text("default", kind="[TOKEN, TEXT, LOGPROB]"))
    result = run(pytester, "fixtures/default.yaml", "-rx", "--golden-report", "report.json")
    result.assert_outcomes(xfailed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["XFAIL *in quarantine for TOKEN, TEXT, LOGPROB on cpu *owner @ada, issue #12*"])
    result.stdout.fnmatch_lines(["IN QUARANTINE: default, which gave QUARANTINED*5 days left*"])
    report = json.loads((toy.path / "report.json").read_text())
    assert (report["exit_code"], report["fixtures"][0]["verdict"]) == (0, "QUARANTINED")
    shown = run(pytester, "fixtures/default.yaml", "--runxfail")
    shown.assert_outcomes(failed=1)


def test_a_fixture_in_quarantine_that_passes_passes_and_other_classes_fail(
    toy: ToyRoot, pytester: pytest.Pytester
) -> None:
    write_quarantine(toy.path, entry_text("default", kind="TOKEN"))
    result = run(pytester, "fixtures/default.yaml")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["IN QUARANTINE: default, which gave PASS*"])
    toy.set_default_mode("legacy")
    run(pytester, "fixtures/default.yaml").assert_outcomes(failed=1)


def test_a_broken_quarantine_collects_nothing(toy: ToyRoot, pytester: pytest.Pytester) -> None:
    write_quarantine(toy.path, entry_text("default", age=9, left=-1))
    result = run(pytester, "fixtures")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*quarantine.yaml:3: entries?0?.expires: the entry of default expired on*"])
    assert "Traceback" not in result.stdout.str()
