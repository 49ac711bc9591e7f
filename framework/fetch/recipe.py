"""Recipes: `fixtures/models/NAME.yaml` makes a model's name known, and says how to get it and what it must be."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from framework.errors import ManifestError
from framework.manifest.find import MODELS_FOLDER, source_name
from framework.manifest.models import recipe_paths
from framework.manifest.schema import Schema, refusals, violations
from framework.manifest.strict_yaml import load_bytes, read_bounded

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileSum:
    """What a file must be: its size in bytes and its SHA-256 in hexadecimal digits."""

    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileSum:
        """Return size and checksum of the file `path`.

        Raises:
            OSError: it cannot be read.
        """
        digest, size = hashlib.sha256(), 0
        with path.open("rb") as stream:
            while block := stream.read(_READ_BYTES):
                digest.update(block)
                size += len(block)
        return cls(size, digest.hexdigest())

    def __str__(self) -> str:
        """Write it as it stands in a recipe, so that the author of one can take it from a message."""
        return f"{{bytes: {self.size}, sha256: {self.sha256}}}"


@dataclass(frozen=True, slots=True)
class Wheel:
    """The wheel of a package, pinned by version and checksum; `gguf` is the path of the weights in it."""

    package: str
    version: str
    file: str
    checksum: FileSum
    gguf: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one model is fetched. `writes` has the checksum of every file of the finished model, by name."""

    name: str
    path: Path
    summary: str
    license: str
    wheel: Wheel
    writes: Mapping[str, FileSum]

    @property
    def folder(self) -> Path:
        """Where the finished model lies."""
        return self.path.with_suffix("")

    @property
    def bytes_written(self) -> int:
        """The size of the finished model in bytes."""
        return sum(checksum.size for checksum in self.writes.values())


def load_recipes(fixtures_root: Path) -> tuple[Recipe, ...]:
    """Load every recipe, by name.

    Raises:
        ManifestError: one of them is no recipe; the message names file, line, what is wrong and the way out.
    """
    return tuple(load_recipe(path, fixtures_root=fixtures_root) for path in recipe_paths(fixtures_root))


def load_recipe(path: Path, *, fixtures_root: Path) -> Recipe:
    """Load one recipe.

    Raises:
        ManifestError: it is no recipe; the message names file, line, what is wrong and the way out.
    """
    source = source_name(path, fixtures_root)
    document = load_bytes(read_bounded(path, source), source=source)
    messages = refusals(document, violations(document.value, recipe_schema()))
    if messages:
        raise ManifestError("\n".join(messages))
    value: dict[str, Any] = document.value
    wheel = value["wheel"]
    return Recipe(
        name=path.stem,
        path=fixtures_root / MODELS_FOLDER / path.name,
        summary=value["summary"].strip(),
        license=value["license"],
        wheel=Wheel(
            package=wheel["package"],
            version=wheel["version"],
            file=wheel["file"],
            checksum=_file_sum(wheel),
            gguf=wheel["gguf"],
        ),
        writes={name: _file_sum(entry) for name, entry in value["writes"].items()},
    )


@functools.cache
def recipe_schema() -> Schema:
    """Return the recipe's JSON Schema."""
    schema: Schema = json.loads(resources.files("framework.fetch").joinpath("recipe.schema.json").read_text("utf-8"))
    return schema


def _file_sum(entry: Mapping[str, Any]) -> FileSum:
    return FileSum(entry["bytes"], entry["sha256"])
