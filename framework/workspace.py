"""Where a user's fixtures, goldens and engine are: found once, then passed on as a value."""

from __future__ import annotations

import importlib
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from framework.errors import ManifestError, UsageError
from framework.manifest.models import NoSuchModelError, find_model

if TYPE_CHECKING:
    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter

DEFAULT_ADAPTER = "framework.run.reference_engine:ReferenceEngine"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder with `fixtures/` and `goldens/`, and the adapter (`module:Class`) whose engine is judged there."""

    root: Path
    adapter_spec: str

    @property
    def fixtures_root(self) -> Path:
        """Where manifests and models lie."""
        return self.root / "fixtures"

    @property
    def goldens_root(self) -> Path:
        """Where goldens lie."""
        return self.root / "goldens"

    @property
    def state_folder(self) -> Path:
        """Where the last verdict and the writer's lock lie; never under version control."""
        return self.root / ".golden"

    def model_path(self, fixture: Fixture) -> Path:
        """Return where a fixture's model lies.

        Raises:
            ManifestError: it is not there, or is no model.
        """
        try:
            return find_model(fixture.model, self.fixtures_root)
        except NoSuchModelError as error:
            raise ManifestError(f"{fixture.path}:{fixture.lines.get('model', 1)}: model: {error}") from None


def is_root(folder: Path) -> bool:
    """Say whether a folder holds both `fixtures/` and `goldens/`."""
    return (folder / "fixtures").is_dir() and (folder / "goldens").is_dir()


def open_workspace(root: Path | None, adapter_spec: str | None) -> Workspace:
    """Find the root (the nearest parent of the current folder unless given) and choose the adapter.

    The adapter is the one given, else `adapter` under `[tool.golden]` of the root's pyproject.toml, else the engine
    that comes with this project.

    Raises:
        UsageError: there is no such root, or its pyproject.toml cannot be read.
    """
    found = _find_root(Path.cwd()) if root is None else root.absolute()
    if found is None or not is_root(found):
        searched = f"{found} has not both" if found else f"no parent of {Path.cwd()} has both"
        raise UsageError(f"{searched} `fixtures/` and `goldens/`; go to the folder that has them, or give `--root DIR`")
    return Workspace(root=found, adapter_spec=adapter_spec or _configured_adapter(found) or DEFAULT_ADAPTER)


def _find_root(start: Path) -> Path | None:
    return next((folder for folder in (start, *start.parents) if is_root(folder)), None)


def _configured_adapter(root: Path) -> str | None:
    path = root / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    spec = document.get("tool", {}).get("golden", {}).get("adapter")
    if spec is not None and not isinstance(spec, str):
        raise UsageError(f'{path}: [tool.golden] adapter is {spec!r}, expected a string "module:Class"')
    return spec


def load_adapter(workspace: Workspace) -> Adapter:
    """Import and make the adapter; modules in the root itself are found too.

    Raises:
        UsageError: there is no such module or class; the message names the adapter and the cause.
    """
    spec = workspace.adapter_spec
    module_name, colon, class_name = spec.partition(":")
    if not colon or not module_name or not class_name:
        raise UsageError(f'adapter {spec!r}: expected "module:Class"')
    if (folder := str(workspace.root)) not in sys.path:
        sys.path.insert(0, folder)
    try:
        made = getattr(importlib.import_module(module_name), class_name)()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"adapter {spec!r}: {error}; give `--adapter module:Class`") from None
    return cast("Adapter", made)
