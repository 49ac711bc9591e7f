from __future__ import annotations

from pathlib import Path

import pytest

from framework.manifest.models import ModelNotFetchedError, NoSuchModelError, find_model, model_names
from tests.framework.manifest.samples import make_root


def test_a_model_is_a_folder(tmp_path: Path) -> None:
    fixtures = make_root(tmp_path) / "fixtures"
    nested = fixtures / "models" / "random" / "tiny"
    nested.mkdir(parents=True)
    (nested / "config.json").write_text("{}")
    (fixtures / "models" / "random" / "recipe.yaml").write_text("{}")
    assert find_model("small", fixtures) == fixtures / "models" / "small"
    assert find_model("random/tiny", fixtures) == nested
    assert model_names(fixtures) == ("random/tiny", "small")


@pytest.mark.parametrize("name", ["small/config.json", "README.md", "small.yml"])
def test_a_file_is_no_model_and_those_that_are_there_are_listed(tmp_path: Path, name: str) -> None:
    fixtures = make_root(tmp_path) / "fixtures"
    (fixtures / "models" / name).write_text("{}")
    with pytest.raises(NoSuchModelError, match=f"models/{name} is a file, and a model is a folder.*small"):
        find_model(name, fixtures)
    with pytest.raises(NoSuchModelError, match='no model "recipe". There are: small'):
        find_model("recipe", fixtures)


def test_a_recipe_makes_a_model_known_and_says_how_to_get_it(tmp_path: Path) -> None:
    fixtures = make_root(tmp_path) / "fixtures"
    folder = fixtures / "models" / "large"
    folder.with_name("large.yaml").write_text("{}")
    assert model_names(fixtures) == ("large", "small")
    for _ in ("nothing there", "an empty folder there"):
        with pytest.raises(ModelNotFetchedError, match="`golden models fetch large` brings it"):
            find_model("large", fixtures)
        folder.mkdir(exist_ok=True)
    with pytest.raises(NoSuchModelError, match='Did you mean "large"'):
        find_model("larg", fixtures)
    (folder / "config.json").write_text("{}")
    assert find_model("large", fixtures) == folder


def test_a_hidden_folder_holds_no_model(tmp_path: Path) -> None:
    fixtures = make_root(tmp_path) / "fixtures"
    half = fixtures / "models" / ".large.fetching"
    half.mkdir()
    (half / "config.json").write_text("{}")
    (fixtures / "models" / ".large.yaml").write_text("{}")
    assert model_names(fixtures) == ("small",)


def test_a_missing_model_lists_what_is_there(tmp_path: Path) -> None:
    fixtures = make_root(tmp_path) / "fixtures"
    with pytest.raises(NoSuchModelError, match='no model "other". There are: small'):
        find_model("other", fixtures)
    with pytest.raises(NoSuchModelError, match="There is none: put one under"):
        find_model("other", tmp_path / "empty" / "fixtures")


def test_a_folder_without_config_is_no_model(tmp_path: Path) -> None:
    fixtures = make_root(tmp_path) / "fixtures"
    (fixtures / "models" / "empty").mkdir()
    with pytest.raises(NoSuchModelError, match="holds no config.json"):
        find_model("empty", fixtures)


def test_a_link_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "config.json").write_text("{}")
    fixtures = make_root(tmp_path / "root") / "fixtures"
    (fixtures / "models" / "linked").symlink_to(outside)
    with pytest.raises(NoSuchModelError, match="leads out of the repository"):
        find_model("linked", fixtures)
