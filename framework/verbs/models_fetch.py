"""`golden models fetch`: bring models that a recipe describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import ExitCode, NothingSelectedError, UsageError
from framework.fetch.fetch import fetch
from framework.fetch.recipe import Recipe, load_recipes
from framework.manifest.models import model_names
from framework.manifest.suggest import did_you_mean
from framework.report.streams import log, out, print_json
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path


def run(arguments: argparse.Namespace) -> ExitCode:
    """Fetch the models that are named, one after another; what is here and whole is left as it is."""
    workspace = open_workspace(arguments.root, arguments.adapter)
    entries = []
    for recipe in _chosen(arguments.models, workspace.fixtures_root):
        fetched = fetch(recipe, workspace.state_folder, log)
        entries.append({"model": recipe.name, "folder": str(recipe.folder), "fetched": fetched})
        if not arguments.json:
            out(f"{recipe.name}: {'fetched' if fetched else 'already here'}, {recipe.folder}")
    if arguments.json:
        print_json({"schema": "golden.fetch/1", "models": entries})
    return ExitCode.GOOD


def _chosen(names: Sequence[str], fixtures_root: Path) -> list[Recipe]:
    """Return the recipes of the models named, or all, without names."""
    recipes = {recipe.name: recipe for recipe in load_recipes(fixtures_root)}
    if not recipes:
        raise NothingSelectedError(f"there is no recipe below {fixtures_root / 'models'}; no model has to be fetched")
    for name in names:
        if name not in recipes:
            shipped = name in model_names(fixtures_root)
            what = "lies in the repository, so there is nothing to fetch" if shipped else "is no model"
            raise UsageError(f"{name!r} {what}. {did_you_mean(name, recipes)}")
    return [recipes[name] for name in dict.fromkeys(names or recipes)]
