"""Recipes: what one says, and what is said of one that is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.errors import ManifestError
from framework.fetch.recipe import FileSum, load_recipe, load_recipes, recipe_schema

REPOSITORY = Path(__file__).resolve().parents[3]
SUM = "{bytes: 3, sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'}"
RECIPE = f"""\
recipe: 1
summary: a model
license: Apache-2.0
wheel:
  package: some-weights
  version: 1.0.1
  file: some_weights-1.0.1-py3-none-any.whl
  bytes: 3
  sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
  gguf: some_weights/model.gguf
writes:
  config.json: {SUM}
"""


def write(root: Path, text: str = RECIPE) -> Path:
    path = root / "fixtures" / "models" / "some.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_recipe_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = write(tmp_path)
    (path.parent / ".hidden.yaml").write_text("{}")
    (recipe,) = load_recipes(tmp_path / "fixtures")
    assert (recipe.name, recipe.folder, recipe.bytes_written) == ("some", path.with_suffix(""), 3)
    assert (recipe.wheel.package, recipe.wheel.version) == ("some-weights", "1.0.1")
    (path.parent / "abc").write_text("abc")
    assert FileSum.of(path.parent / "abc") == recipe.wheel.checksum == recipe.writes["config.json"]


def test_a_checksum_is_shown_as_a_recipe_has_it(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path), fixtures_root=tmp_path / "fixtures")
    shown = f"{recipe.writes['config.json']}"
    again = write(tmp_path, RECIPE.replace(SUM, shown))
    assert load_recipe(again, fixtures_root=tmp_path / "fixtures") == recipe


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("recipe: 1\n", "", ':1:1: the key "recipe" is missing'),
        ("recipe: 1", "recipe: 2", ":1:9: recipe is 2. Write 1"),
        ("license:", "licence:", ':3:1: licence: this key is not known here. Did you mean "license"?'),
        ("package: some-weights", "package: --index-url=x", ":5:12: wheel.package is"),
        ("version: 1.0.1", "version: 1.0", ":6:12: wheel.version is 1.0, not a string"),
        ("file: some_weights-1.0.1-py3-none-any.whl", "file: ../some.whl", ":7:9: wheel.file is"),
        ("bytes: 3\n  sha", "bytes: '3'\n  sha", ':8:10: wheel.bytes is the string "3", not an integer'),
        ("'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'\n", "'BA78'\n", ":9:11: wheel.sha256 is"),
        ("config.json:", "../config.json:", ":12:3: writes.../config.json: the key is"),
        (f"config.json: {SUM}", "{}", ":12:3: writes is empty. Write at least 1"),
        (RECIPE, "[]", ":1:1: is empty, not a map"),
        (RECIPE, RECIPE + "recipe: 1\n", ":13:1: "),
    ],
)
def test_a_broken_recipe_is_refused_with_its_place(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = write(tmp_path, RECIPE.replace(old, new))
    with pytest.raises(ManifestError) as refused:
        load_recipe(path, fixtures_root=tmp_path / "fixtures")
    assert f"fixtures/models/some.yaml{words}" in str(refused.value)


def test_the_schema_is_one_and_takes_the_shipped_recipes() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is the oracle; install the test extra")
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the recipes")
    jsonschema.Draft202012Validator.check_schema(recipe_schema())
    shipped = load_recipes(REPOSITORY / "fixtures")
    assert [recipe.name for recipe in shipped] == ["smollm2-135m-instruct"]
    for recipe in shipped:
        value = json.loads(json.dumps(yaml.safe_load(recipe.path.read_text())))
        jsonschema.validate(value, recipe_schema())


def test_version_control_leaves_fetched_models_alone() -> None:
    ignored = (REPOSITORY / ".gitignore").read_text().splitlines()
    for recipe in load_recipes(REPOSITORY / "fixtures"):
        assert f"/fixtures/models/{recipe.name}/" in ignored
    assert "/fixtures/models/.*" in ignored
