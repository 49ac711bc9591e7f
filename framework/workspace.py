"""Where a user's fixtures, goldens and engine are: found once, then passed on as a value."""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from framework.errors import EngineError, ManifestError, UsageError, in_words
from framework.golden.store import leads_out
from framework.manifest.models import ModelNotFetchedError, NoSuchModelError, find_model
from framework.regular_file import read_regular_file
from framework.run.engine_environment import checked_patterns

if TYPE_CHECKING:
    from types import ModuleType

    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter

_ADAPTER_METHODS = ("describe", "check_settings", "platforms", "revision", "model_hashes", "run")
DEFAULT_ADAPTER = "framework.run.reference_engine:ReferenceEngine"
_STATE_FOLDER = ".golden"
_MOST_CONFIGURATION_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder with `fixtures/` and `goldens/`, and the adapter (`module:Class`) whose engine is judged there.

    `engine_environment` names the variables that its engine gets beside the usual ones.
    """

    root: Path
    adapter_spec: str
    engine_environment: tuple[str, ...] = ()

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
        return self.root / _STATE_FOLDER

    def model_path(self, fixture: Fixture) -> Path:
        """Return where a fixture's model lies.

        Raises:
            ManifestError: it is not there, or is no model.
        """
        try:
            return find_model(fixture.model, self.fixtures_root)
        except NoSuchModelError as error:
            raise ManifestError(f"{fixture.path}:{fixture.lines.get('model', 1)}: model: {error}") from None

    def why_not_fetched(self, fixture: Fixture) -> str:
        """Return why a fixture cannot run here although its model is known, with the way out; else an empty string."""
        try:
            find_model(fixture.model, self.fixtures_root)
        except ModelNotFetchedError as error:
            return str(error)
        except NoSuchModelError:
            return ""
        return ""


def is_root(folder: Path) -> bool:
    """Say whether a folder holds both `fixtures/` and `goldens/`."""
    return (folder / "fixtures").is_dir() and (folder / "goldens").is_dir()


def open_workspace(root: Path | None, adapter_spec: str | None) -> Workspace:
    """Find the root (the nearest parent of the current folder unless given) and choose the adapter.

    The adapter is the one given, else `adapter` under `[tool.golden]` of the root's pyproject.toml, else the engine
    that comes with this project.

    Raises:
        UsageError: there is no such root, a link leads out of it, or its pyproject.toml cannot be read.
    """
    found = _find_root(Path.cwd()) if root is None else root.absolute()
    if found is None or not is_root(found):
        searched = f"{found} has not both" if found else f"no parent of {Path.cwd()} has both"
        raise UsageError(f"{searched} `fixtures/` and `goldens/`; go to the folder that has them, or give `--root DIR`")
    _refuse_links_out(found)
    section, where = _configuration(found)
    spec = section.get("adapter")
    if spec is not None and not isinstance(spec, str):
        raise UsageError(f'{where} adapter is {spec!r}, expected a string "module:Class"')
    names = section.get("engine_environment", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{where} engine_environment is {names!r}, expected a list of names of variables")
    passed = checked_patterns(names, f"{where} engine_environment")
    return Workspace(found, adapter_spec or spec or DEFAULT_ADAPTER, passed)


def _find_root(start: Path) -> Path | None:
    return next((folder for folder in (start, *start.parents) if is_root(folder)), None)


def _refuse_links_out(root: Path) -> None:
    """Refuse folders that are elsewhere, and any link in the folder that this project writes to.

    The root itself may be reached by a link: whoever starts a run has chosen it.
    """
    for name in ("fixtures", "goldens", "pyproject.toml", _STATE_FOLDER):
        if leads_out(root / name, root):
            raise UsageError(f"{root / name}: a link leads out of {root}; put there what it leads to, or remove it")
    for folder, folders, files in os.walk(root / _STATE_FOLDER):
        for name in (*folders, *files):
            if Path(folder, name).is_symlink():
                raise UsageError(f"{Path(folder, name)}: a link, and this folder is written to; remove it")


def _configuration(root: Path) -> tuple[dict[str, Any], str]:
    """Return the table [tool.golden] of the root's pyproject.toml, empty without one, and how errors name it."""
    path = root / "pyproject.toml"
    try:
        document = tomllib.loads(read_regular_file(path, _MOST_CONFIGURATION_BYTES).decode("utf-8"))
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    section: Any = document
    for name in ("tool", "golden"):
        section = section.get(name, {})
        if not isinstance(section, dict):
            raise UsageError(f"{path}: {name} is {section!r}, expected the table [tool.golden]")
    return section, f"{path}: [tool.golden]"


def load_adapter(workspace: Workspace) -> Adapter:
    """Import and make the adapter; modules in the root itself are found too.

    Raises:
        UsageError: there is no such module or class, or the class is no adapter.
        EngineError: the module is there and cannot be imported, or the adapter cannot be made; the message names the
            place.
    """
    spec = workspace.adapter_spec
    module_name, colon, class_name = spec.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        raise UsageError(f'adapter {spec!r}: expected "module:Class"')
    if (folder := str(workspace.root)) not in sys.path:
        sys.path.insert(0, folder)
    found = getattr(_imported(spec, module_name), class_name, None)
    missing = [name for name in _ADAPTER_METHODS if not callable(getattr(found, name, None))]
    if not isinstance(found, type) or missing:
        what = "there is no such class" if found is None else f"it is no adapter: it lacks {', '.join(missing)}"
        raise UsageError(f"adapter {spec!r}: {what}; give `--adapter module:Class`")
    try:
        return cast("Adapter", found())
    except (Exception, SystemExit) as error:
        raise EngineError(f"adapter {spec!r}: it cannot be made: {in_words(error)}") from error


def _imported(spec: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise UsageError(f"adapter {spec!r}: {error}; give `--adapter module:Class`") from None
        raise EngineError(f"adapter {spec!r}: it cannot be imported: {in_words(error)}") from error
    except (Exception, SystemExit) as error:
        raise EngineError(f"adapter {spec!r}: it cannot be imported: {in_words(error)}") from error
