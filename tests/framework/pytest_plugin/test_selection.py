from __future__ import annotations

from pathlib import Path

import pytest

from tests.framework.pytest_plugin.driving import run_pytest
from tests.framework.toy_root import ToyRoot

STRICT = "--strict-markers"


@pytest.fixture
def tagged(toy: ToyRoot) -> ToyRoot:
    """Fixtures with odd tags: words of expressions, of pytest's own markers, and no Python identifiers."""
    for name, tags in (("a", "and, 9-lives"), ("b", "skip"), ("c", "xfail, two-words"), ("d", "slow")):
        path = toy.write(name, engine="async_sched_mode: legacy")
        path.write_text(path.read_text().replace("tags: [toy]", f"tags: [{tags}]"))
    return toy


def selected(toy: ToyRoot, *arguments: str) -> set[str]:
    done = run_pytest(toy, "fixtures", "--collect-only", "-q", STRICT, *arguments)
    assert done.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout + done.stderr
    return {line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("toy", {"default", "mode/legacy"}),
        ("9-lives", {"a"}),
        ("two-words or slow", {"c", "d"}),
        ("not toy and not slow", {"a", "b", "c"}),
        ("golden(tag='and')", {"a"}),
        ("golden(tag='skip') or golden(tag='xfail')", {"b", "c"}),
        ("golden(platform='cpu', model='toy') and toy", {"default", "mode/legacy"}),
        ("golden(platform='nvidia-h200')", set()),
        ("not golden", set()),
    ],
)
def test_markers_select(tagged: ToyRoot, expression: str, names: set[str]) -> None:
    assert selected(tagged, "-m", expression) == names


def test_a_tag_that_is_a_word_of_pytest_neither_skips_nor_excuses(tagged: ToyRoot) -> None:
    done = run_pytest(tagged, "fixtures", STRICT, "-k", "skip or xfail")
    assert done.returncode == 1, "there is no golden"
    assert "2 failed" in done.stdout


def test_a_marker_that_the_repository_registered_is_shared(tagged: ToyRoot) -> None:
    (tagged.path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: takes long\n")
    (tagged.path / "test_it.py").write_text("import pytest\n@pytest.mark.slow\ndef test_it(): pass\n")
    done = run_pytest(tagged, "--collect-only", "-q", STRICT, "-m", "slow")
    assert "d.yaml::d" in done.stdout
    assert "test_it.py::test_it" in done.stdout


def test_items_are_named_by_file_and_fixture(toy: ToyRoot) -> None:
    done = run_pytest(toy, "fixtures", "--collect-only", "-q")
    assert done.stdout.splitlines()[:2] == ["fixtures/default.yaml::default", "fixtures/mode/legacy.yaml::mode/legacy"]
    assert run_pytest(toy, "fixtures/mode/legacy.yaml::mode/legacy").returncode == 0


def broken_suffix(root: Path) -> str:
    (root / "fixtures" / "loud.YAML").write_text("manifest: 1\n")
    return "fixtures/loud.YAML"


def short_suffix(root: Path) -> str:
    (root / "fixtures" / "other.yml").write_text("manifest: 1\n")
    return "fixtures/other.yml: a manifest is named NAME.yaml, so this one would never be run"


def linked_folder(root: Path) -> str:
    (root / "elsewhere").mkdir()
    (root / "elsewhere" / "x.yaml").write_text("manifest: 1\n")
    (root / "fixtures" / "linked").symlink_to(root / "elsewhere")
    return "fixtures/linked: a link to a folder"


def link_to_nowhere(root: Path) -> str:
    (root / "fixtures" / "mode" / "gone").symlink_to(root / "nowhere")
    return "fixtures/mode/gone: a link that leads nowhere"


def broken_quarantine(root: Path) -> str:
    (root / "quarantine.yaml").write_text("quarantine: 2\n")
    return "quarantine.yaml:1"


@pytest.mark.parametrize("break_it", [broken_suffix, short_suffix, linked_folder, link_to_nowhere, broken_quarantine])
def test_what_golden_run_refuses_is_a_collection_error(toy: ToyRoot, break_it: object) -> None:
    assert callable(break_it)
    words = break_it(toy.path)
    assert toy.golden("run").returncode == 10
    done = run_pytest(toy, "fixtures", "--golden-report", "report.json")
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert words in done.stdout
    assert "1 error" in done.stdout, "it is said once"
    assert "Traceback" not in done.stdout
    assert '"exit_code": 10' in (toy.path / "report.json").read_text()


@pytest.mark.parametrize("name", ["build", "dist"])
def test_a_folder_that_pytest_passes_over_elsewhere_is_looked_into(toy: ToyRoot, name: str) -> None:
    toy.write(f"{name}/all", engine="async_sched_mode: legacy")
    done = run_pytest(toy, "fixtures", "--collect-only", "-q")
    assert f"fixtures/{name}/all.yaml::{name}/all" in done.stdout
    ignored = run_pytest(toy, "fixtures", "--collect-only", "-q", f"--ignore=fixtures/{name}")
    assert f"{name}/all" not in ignored.stdout


def test_python_tests_beside_manifests_are_collected_as_ever(toy: ToyRoot) -> None:
    (toy.path / "fixtures" / "test_beside.py").write_text("def test_it(): pass\n")
    done = run_pytest(toy, "fixtures", "-q")
    assert "3 passed" in done.stdout


def test_a_broken_manifest_that_was_not_asked_for_does_not_stop_others(toy: ToyRoot) -> None:
    (toy.path / "fixtures" / "broken.yaml").write_text("manifest: 1\nmanifest: 1\n")
    assert run_pytest(toy, "fixtures/mode").returncode == 0


def test_a_fixture_that_its_engine_refuses_is_no_pass_in_the_report(toy: ToyRoot) -> None:
    toy.write("default", engine="asinc: 1")
    done = run_pytest(toy, "fixtures", "--golden-report", "report.json", "-n", "2")
    assert done.returncode == 1
    text = (toy.path / "report.json").read_text()
    assert '"exit_code": 10' in text
    assert "fixtures/default.yaml:6" in text
