"""Where a fixture's model lies: a folder in Hugging Face layout under `fixtures/models/`.

A recipe there, `NAME.yaml`, makes the name of a model known that is fetched and not in the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from framework.manifest.find import MODELS_FOLDER
from framework.manifest.suggest import did_you_mean

CONFIG_FILE: Final = "config.json"
RECIPE_SUFFIX: Final = ".yaml"


class NoSuchModelError(LookupError):
    """There is no model of that name; the message says what there is instead."""


class ModelNotFetchedError(NoSuchModelError):
    """A recipe makes the model known, and its weights are not here; the message says how to get them."""


def find_model(name: str, fixtures_root: Path) -> Path:
    """Return the folder of the model `name`.

    Raises:
        ModelNotFetchedError: there is only a recipe for it.
        NoSuchModelError: there is none, it is not a model, or it or a file of it lies outside the repository.
    """
    folder = fixtures_root / MODELS_FOLDER
    candidate = folder / name
    if candidate.is_dir():
        if not candidate.resolve().is_relative_to(fixtures_root.parent.resolve()):
            raise NoSuchModelError(f"the model {name} leads out of the repository. Keep it inside.")
        outside = [path.name for path in candidate.iterdir() if _leads_out(path, fixtures_root.parent)]
        if outside:
            raise NoSuchModelError(
                f"the model {name} has a link that leads out of the repository, or nowhere: {min(outside)}. Put the"
                " file itself there."
            )
        if (candidate / CONFIG_FILE).is_file():
            return candidate
    if name in (path.stem for path in recipe_paths(fixtures_root)):
        raise ModelNotFetchedError(f"the model {name} is not here; `golden models fetch {name}` brings it.")
    if candidate.is_dir():
        raise NoSuchModelError(f"{folder.name}/{name} holds no {CONFIG_FILE}, so it is no model.")
    there = model_names(fixtures_root)
    hint = did_you_mean(name, there) if there else f"There is none: put one under {fixtures_root.name}/{folder.name}/."
    if candidate.exists():
        raise NoSuchModelError(f"{folder.name}/{name} is a file, and a model is a folder with {CONFIG_FILE}. {hint}")
    raise NoSuchModelError(f'there is no model "{name}". {hint}')


def _leads_out(path: Path, repository: Path) -> bool:
    try:
        return path.is_symlink() and not (path.exists() and path.resolve().is_relative_to(repository.resolve()))
    except (OSError, RuntimeError):  # a link that leads to itself
        return True


def model_names(fixtures_root: Path) -> tuple[str, ...]:
    """Return the names of all models, sorted: those that are here, and those that a recipe can bring."""
    folder = fixtures_root / MODELS_FOLDER
    inside = (path.parent.relative_to(folder) for path in folder.glob(f"**/{CONFIG_FILE}") if path.is_file())
    here = {path.as_posix() for path in inside if not any(part.startswith(".") for part in path.parts)}
    return tuple(sorted((here | {path.stem for path in recipe_paths(fixtures_root)}) - {"."}))


def recipe_paths(fixtures_root: Path) -> tuple[Path, ...]:
    """Return the recipes, sorted: each is named like the model that it brings, and lies beside it."""
    found = (fixtures_root / MODELS_FOLDER).glob(f"*{RECIPE_SUFFIX}")
    return tuple(sorted(path for path in found if path.is_file() and not path.name.startswith(".")))
