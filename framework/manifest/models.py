"""Where a fixture's model lies: a folder in Hugging Face layout under `fixtures/models/`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from framework.manifest.find import MODELS_FOLDER
from framework.manifest.suggest import did_you_mean

CONFIG_FILE: Final = "config.json"


class NoSuchModelError(LookupError):
    """There is no model of that name; the message says what there is instead."""


def find_model(name: str, fixtures_root: Path) -> Path:
    """Return the folder of the model `name`.

    Raises:
        NoSuchModelError: there is none, it is not a model, or it lies outside the repository.
    """
    folder = fixtures_root / MODELS_FOLDER
    candidate = folder / name
    if candidate.is_dir():
        if not candidate.resolve().is_relative_to(fixtures_root.parent.resolve()):
            raise NoSuchModelError(f"the model {name} leads out of the repository. Keep it inside.")
        if not (candidate / CONFIG_FILE).is_file():
            raise NoSuchModelError(f"{folder.name}/{name} holds no {CONFIG_FILE}, so it is no model.")
        return candidate
    there = model_names(fixtures_root)
    hint = did_you_mean(name, there) if there else f"There is none: put one under {fixtures_root.name}/{folder.name}/."
    if candidate.exists():
        raise NoSuchModelError(f"{folder.name}/{name} is a file, and a model is a folder with {CONFIG_FILE}. {hint}")
    raise NoSuchModelError(f'there is no model "{name}". {hint}')


def model_names(fixtures_root: Path) -> tuple[str, ...]:
    """Return the names of all models, sorted."""
    folder = fixtures_root / MODELS_FOLDER
    configs = (path for path in folder.glob(f"**/{CONFIG_FILE}") if path.is_file())
    return tuple(sorted({path.parent.relative_to(folder).as_posix() for path in configs} - {"."}))
