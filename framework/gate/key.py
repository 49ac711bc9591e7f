"""The key of a fixture: everything that its verdict can depend on, as groups of named contents.

A file counts for every fixture unless it is known not to: documentation and tests do not, a manifest, a golden and a
model count where they are used, and a Python source of the engine counts where the process of an earlier pass came to
use it. That last one is sound because a run is decided by what it uses: a source that was not used can only come to be
used because something else changed that was, and then the fixture runs anyway. For the same reason a module of which no
function was started counts by what it defines (`framework.gate.surface`). The names of all modules count, since a new
file can take the place of another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, Final

from framework.gate.lanes import LANES_FILE
from framework.manifest.find import MODELS_FOLDER
from framework.manifest.fixture import Fixture
from framework.run.reach import Reach

Groups = Mapping[str, Mapping[str, str]]
"""What a verdict depends on: by group (`manifest`, `golden`, `sources`, …), names and what tells their content."""

GONE: Final = "gone"
NAMES_OF_MODULES: Final = "the names of modules"
_NEVER_FOLDERS: Final = frozenset({"docs", "tests", ".github", ".ci"})
_NEVER_FILES: Final = frozenset({"LICENSE", ".gitignore", LANES_FILE, "quarantine.yaml"})
_MODULES: Final = (".py", ".so", ".pyd", ".pth")


class Role(Enum):
    """What a file of the repository is to a fixture."""

    MANIFEST = "manifest"
    GOLDEN = "golden"
    MODEL = "model"
    FRAMEWORK = "framework"
    SOURCE = "source"
    SHARED = "shared"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Reached:
    """What the process of a pass came to use: paths from the root, or absolute ones outside of it.

    `idle` are modules that did no more than define what stands in them, and count by that. `is_whole` is false where
    more may have been used; then every source counts.
    """

    paths: tuple[str, ...]
    is_whole: bool
    idle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ground:
    """What all fixtures of a lane stand on, at the head.

    `files` holds every file of the commit with what tells its content. `framework` are the sources that judge, and
    `framework_folder` is where they lie below the root, None elsewhere. `content_of` tells the content of a file that
    is not in the commit, `surface_of` what a module of it defines. `model_hashes` gives SHA-256 of a model by its name.
    """

    platform: str
    adapter: str
    files: Mapping[str, str]
    framework: Mapping[str, str]
    framework_folder: str | None
    environment: Mapping[str, str]
    defaults: Mapping[str, Any]
    fixtures: Mapping[str, Fixture]
    model_hashes: Callable[[str], Mapping[str, str]]
    content_of: Callable[[str], str]
    surface_of: Callable[[str], str]
    _of_all: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def shared(self) -> Mapping[str, str]:
        """Return the files that count for every fixture, gathered once."""
        if "files" not in self._of_all:
            found = {path: name for path, name in self.files.items() if self.role(path) is Role.SHARED}
            self._of_all["files"] = found
        return self._of_all["files"]

    def sources(self) -> Mapping[str, str]:
        """Return every source, and what tells the names of all modules, gathered once."""
        if "sources" not in self._of_all:
            found = {path: name for path, name in self.files.items() if self.role(path) is Role.SOURCE}
            modules = sorted(path for path in self.files if path.endswith(_MODULES) and _may_be_imported(self, path))
            names = hashlib.sha256(canonical(modules)).hexdigest()
            self._of_all["sources"] = found | {NAMES_OF_MODULES: names}
        return self._of_all["sources"]

    def judging(self) -> Mapping[str, str]:
        """Return what judges: the framework's sources, the adapter's name and the platform."""
        if "judging" not in self._of_all:
            self._of_all["judging"] = {**self.framework, "adapter": self.adapter, "platform": self.platform}
        return self._of_all["judging"]

    def role(self, path: str) -> Role:
        """Return what a file of the repository is to a fixture."""
        return role_of(path, self.framework_folder)


def role_of(path: str, framework_folder: str | None) -> Role:
    """Return what the file at `path`, from the root, is to a fixture."""
    pure = PurePosixPath(path)
    top, *below = pure.parts
    if top == "goldens" and below:
        return Role.GOLDEN
    if top == "fixtures" and below:
        if below[0] == MODELS_FOLDER:
            return Role.MODEL
        is_hidden = any(part.startswith(".") for part in below)
        return Role.MANIFEST if pure.suffix.lower() in (".yaml", ".yml") and not is_hidden else Role.SHARED
    if framework_folder is not None and path.startswith(f"{framework_folder}/"):
        return Role.FRAMEWORK
    if top in _NEVER_FOLDERS or path in _NEVER_FILES or pure.suffix.lower() == ".md":
        return Role.NEVER
    return Role.SOURCE if pure.suffix == ".py" else Role.SHARED


def groups_of(fixture: Fixture, ground: Ground, used: Reached) -> Groups:
    """Return everything that the verdict on a fixture can depend on."""
    partners = sorted({relation.other for relation in fixture.relations} & ground.fixtures.keys())
    own = [fixture, *(ground.fixtures[name] for name in partners)]
    return {
        "manifest": {f"fixtures/{each.name}.yaml": _manifest(each, ground) for each in own},
        "golden": {path: ground.files.get(path, GONE) for path in (_golden(each, ground) for each in own)},
        "model": {
            f"{each.model}: {name}": digest for each in own for name, digest in ground.model_hashes(each.model).items()
        },
        "settings": {f"{each.name}: {name}": value for each in own for name, value in _settings(each, ground)},
        "sources": dict(_sources(ground, used)),
        "files": ground.shared(),
        "framework": ground.judging(),
        "environment": ground.environment,
    }


def reached(ground: Ground, used: Reach, root: str) -> Reached:
    """Return what a worker used as the key has it: without what counts by another way."""
    paths: set[str] = set()
    idle: set[str] = set()
    for path in used.imported | used.opened:
        below = path.removeprefix(f"{root}/")
        if below == path and not path.startswith("/proc/"):
            paths.add(path)
        elif below != path and ground.role(below) in (Role.SOURCE, Role.NEVER):
            (idle if path in used.idle and below in ground.files else paths).add(below)
    return Reached(tuple(sorted(paths)), used.is_whole, tuple(sorted(idle)))


def key_of(groups: Groups) -> str:
    """Return the SHA-256 that stands for all of it."""
    return hashlib.sha256(canonical(groups)).hexdigest()


def canonical(value: Any) -> bytes:
    """Return JSON of which there is one form for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def difference(old: Groups, new: Groups) -> tuple[str, ...]:
    """Return the names of what is not the same, the most telling groups first."""
    names: list[str] = []
    for group in new:
        then, now = old.get(group, {}), new[group]
        found = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
        names += [f"{group} {name}" if group in ("settings", "environment", "model") else name for name in found]
    return tuple(dict.fromkeys(names))


def _manifest(fixture: Fixture, ground: Ground) -> str:
    """Return what tells a manifest: its bytes, and its meaning, which covers the prompt file it names."""
    return f"{ground.files.get(f'fixtures/{fixture.name}.yaml', GONE)} {fixture.manifest_sha256}"


def _golden(fixture: Fixture, ground: Ground) -> str:
    return f"goldens/{fixture.name}/{ground.platform}.json"


def _settings(fixture: Fixture, ground: Ground) -> Iterator[tuple[str, str]]:
    """Yield every setting with the value that the fixture runs with."""
    for name in sorted({*ground.defaults, *fixture.engine}):
        value = fixture.engine.get(name, ground.defaults.get(name))
        yield name, json.dumps(value, sort_keys=True, default=str)


def _sources(ground: Ground, used: Reached) -> Iterator[tuple[str, str]]:
    every = ground.sources()
    yield NAMES_OF_MODULES, every[NAMES_OF_MODULES]
    for path in used.paths:
        yield path, ground.files[path] if path in ground.files else ground.content_of(path)
    for path in used.idle:
        yield path, ground.surface_of(path) if path in ground.files else GONE
    if not used.is_whole:
        yield from every.items()


def _may_be_imported(ground: Ground, path: str) -> bool:
    """Say whether a module could take the place of another one: those of the framework count by their content."""
    return ground.role(path) in (Role.SOURCE, Role.SHARED)
