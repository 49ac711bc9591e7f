"""The verbs that run no engine: list, which, lint, check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("offline"))
    root.write("default")
    root.write(
        "legacy", engine="async_sched_mode: legacy", more="relations: [{kind: async_equals_legacy, with: default}]"
    )
    root.regen()
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


def test_list_shows_what_there_is(recorded: ToyRoot) -> None:
    code, document = recorded.json("list")
    assert code == 0
    assert [(entry["fixture"], entry["goldens"], entry["pinned"]) for entry in document["fixtures"]] == [
        ("default", ["cpu"], {}),
        ("legacy", ["cpu"], {"async_sched_mode": "legacy"}),
    ]
    assert "the toy gives what it gave before" in recorded.golden("list", "legacy").stdout
    assert recorded.golden("list", "legacy", "--platform", "cpu").returncode == 0


def test_which_names_the_golden_and_the_reason(recorded: ToyRoot) -> None:
    code, document = recorded.json("which", "default")
    assert code == 0
    (entry,) = document["fixtures"]
    assert entry["golden"] == str(recorded.golden_path("default"))
    assert entry["platform"] == "cpu"
    assert "machine's best" in entry["why"]


@pytest.mark.parametrize("verb", ["list", "which", "check", "explain", "run", "regen"])
def test_a_platform_of_no_fixture_is_a_usage_error(recorded: ToyRoot, verb: str) -> None:
    more = ["--reason", "because"] if verb == "regen" else []
    code, document = recorded.json(verb, "default", "--platform", "cpuu", *more)
    assert code == 2
    assert 'Did you mean "cpu"?' in document["error"]


@pytest.mark.parametrize("verb", ["list", "which", "check"])
def test_a_platform_of_another_machine_selects_nothing_here(toy: ToyRoot, verb: str) -> None:
    toy.write("gpu", more="platforms: [nvidia-h200]")
    assert toy.golden(verb, "default", "--platform", "nvidia-h200").returncode == 13


def test_which_says_that_there_is_none_yet(toy: ToyRoot) -> None:
    toy.golden_path("default").unlink()
    done = toy.golden("which", "default")
    assert done.returncode == 12
    assert "there is no golden yet" in done.stdout


def test_lint_is_good_about_good_manifests(recorded: ToyRoot) -> None:
    code, document = recorded.json("lint")
    assert (code, document["verdict"], document["problems"]) == (0, "PASS", [])


def test_lint_shows_every_problem_with_its_line(toy: ToyRoot) -> None:
    toy.write("unknown", engine="asinc: 1")
    (toy.path / "fixtures" / "broken.yaml").write_text("manifest: 1\nmanifest: 1\n")
    code, document = toy.json("lint")
    assert code == 10
    shown = "\n".join(str(problem) for problem in document["problems"])
    assert "fixtures/broken.yaml:2" in shown
    assert "asinc" in shown
    done = toy.golden("lint")
    assert done.returncode == 10
    assert "fixtures/unknown.yaml:6" in done.stdout


def test_lint_of_nothing_is_not_a_good_verdict(tmp_path: Path) -> None:
    empty = make_toy_root(tmp_path)
    code, document = empty.json("lint")
    assert (code, document["exit_code"]) == (13, 13)
    assert "there is no manifest" in document["error"]


def test_check_passes_goldens_that_stand(recorded: ToyRoot) -> None:
    code, document = recorded.json("check")
    assert (code, document["schema"], document["verdict"]) == (0, "golden.check/1", "PASS")


def test_check_finds_what_does_not_stand_without_an_engine(toy: ToyRoot) -> None:
    (toy.path / "toy_default_fault").write_text("die")
    toy.set_default_mode("legacy")
    toy.write("legacy", engine="async_sched_mode: legacy", prompts="another")
    toy.write("new")
    code, document = toy.json("check")
    assert code == 12
    found = {
        entry["fixture"]: (entry["verdict"], [each["class"] for each in entry["findings"]])
        for entry in document["fixtures"]
    }
    assert found == {
        "default": ("FAIL", ["SETTINGS_DRIFT"]),
        "legacy": ("STALE", ["STALE"]),
        "new": ("MISSING", ["STRUCTURE"]),
    }
    assert document["settings_drift"][0]["inherited_by"] == ["default"]


def test_check_relates_goldens(toy: ToyRoot) -> None:
    toy.write("default", prompts="another")
    toy.regen("default")
    code, document = toy.json("check", "legacy")
    assert code == 1
    assert {finding["class"] for finding in document["fixtures"][0]["findings"]} == {"RELATION"}


def test_check_says_how_many_goldens_and_relations_it_looked_at(recorded: ToyRoot) -> None:
    code, document = recorded.json("check")
    assert code == 0
    assert document["checked"] == {"goldens": 2, "relations": 1, "relations_held": 1}
    shown = recorded.golden("check").stdout
    assert "2 PASS; 2 goldens read, sealed and current; 1 relation holds. Every golden" in shown


def test_check_counts_no_golden_it_cannot_believe_and_no_relation_that_is_broken(toy: ToyRoot) -> None:
    toy.write("default", prompts="another")
    toy.regen("default")
    toy.write("new")
    _, document = toy.json("check")
    assert document["checked"] == {"goldens": 2, "relations": 1, "relations_held": 0}
    assert "2 goldens read, sealed and current; of 1 relation between them 0 hold." in toy.golden("check").stdout
    path = toy.golden_path("default")
    path.write_bytes(path.read_bytes()[:300])
    _, document = toy.json("check")
    assert document["checked"] == {"goldens": 1, "relations": 1, "relations_held": 0}
