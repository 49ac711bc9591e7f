"""`golden models list`: every model, and whether it is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from framework.errors import ExitCode
from framework.fetch.fetch import State, state_of
from framework.fetch.recipe import load_recipes
from framework.manifest.models import model_names
from framework.report.streams import out, print_json
from framework.report.terminal import show, shown
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse

    from framework.fetch.recipe import Recipe

_SHIPPED = "shipped"


def run(arguments: argparse.Namespace) -> ExitCode:
    """List the models that lie in the repository and those that a recipe can bring."""
    fixtures_root = open_workspace(arguments.root, arguments.adapter).fixtures_root
    recipes = {recipe.name: recipe for recipe in load_recipes(fixtures_root)}
    entries = [_entry(name, recipes.get(name)) for name in model_names(fixtures_root)]
    if arguments.json:
        print_json({"schema": "golden.models/1", "models": entries})
        return ExitCode.GOOD
    show(lambda console: console.print(_table(entries)))
    to_fetch = [entry["model"] for entry in entries if entry["state"] in (State.NOT_FETCHED, State.DAMAGED)]
    if to_fetch:
        out(f"Next: golden models fetch {' '.join(to_fetch)}")
    return ExitCode.GOOD


def _entry(name: str, recipe: Recipe | None) -> dict[str, Any]:
    if recipe is None:
        return {"model": name, "state": _SHIPPED, "summary": None, "license": None, "source": None, "bytes": None}
    return {
        "model": name,
        "state": state_of(recipe).value,
        "summary": recipe.summary,
        "license": recipe.license,
        "source": f"{recipe.wheel.package} {recipe.wheel.version}",
        "bytes": recipe.bytes_written,
    }


def _table(entries: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("model", "state", "license", "source"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it is", ratio=1)
    for entry in entries:
        table.add_row(*(shown(entry[key] or "") for key in ("model", "state", "license", "source", "summary")))
    return table
