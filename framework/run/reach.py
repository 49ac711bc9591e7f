"""Which files a process came to use: modules it imported and ran code of, files it opened, processes it started.

It is everything since the process began, so what an earlier fixture left behind in it counts too. A worker writes it to
the file that `REACH_FILE` names, if it is asked to, before each of its answers.
"""

from __future__ import annotations

import inspect
import json
import linecache
import site
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType

_TOOLS: Final = (3, 4)
"""Numbers of monitoring tools that Python leaves to anybody."""

_STARTS_A_PROCESS: Final = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
REACH_FILE: Final = "GOLDEN_REACH_FILE"
"""The variable that names the file in which a worker says what it has used; the gate sets it for its own workers."""

_TAKES_FUNCTIONS_APART: Final = frozenset({"torch._dynamo", "numba"})
_BYTECODE: Final = "/__pycache__/"
_CANNOT_BE_READ_BACK: Final = "<"
"""What the names of modules' origins begin with that are no files, such as `<frozen importlib>`."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a process used, as absolute paths: `imported` modules and files `opened` by Python.

    `idle` are those of the imported modules of which no function was started and no source was read: they did no more
    than define what stands in them. It is empty where Python cannot tell.

    Installed distributions and Python itself are left out, also what they call modules and is no file: their versions
    tell them. `is_whole` is false where other processes were started or a module has no file, so that more than this
    may have been used.
    """

    imported: frozenset[str]
    opened: frozenset[str]
    is_whole: bool
    idle: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, Any]:
        """Return it as a part of a worker's answer."""
        return {
            "imported": sorted(self.imported),
            "opened": sorted(self.opened),
            "idle": sorted(self.idle),
            "is_whole": self.is_whole,
        }


def read_reach(path: Path) -> Reach | None:
    """Return what a worker wrote, None where it did not come to that."""
    try:
        value = json.loads(path.read_bytes())
        parts = {name: frozenset(map(str, value[name])) for name in ("imported", "opened", "idle")}
        return Reach(is_whole=value["is_whole"] is True, **parts)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def reach_teller(environment: Mapping[str, str]) -> Callable[[], None]:
    """Return what writes the reach of this process, from now on, to the file that the environment names, if it does."""
    path = environment.get(REACH_FILE)
    if not path:
        return lambda: None
    tracer = ReachTracer()

    def tell() -> None:
        """Write it as it is now; a part of it, left by a process that was killed, is no JSON and so says nothing."""
        Path(path).write_text(json.dumps(tracer.reach().as_json()), encoding="utf-8")

    return tell


class ReachTracer:
    """Listens to this process from now on; it cannot be taken out again, since audit hooks cannot."""

    def __init__(self) -> None:
        self._opened: set[str] = set()
        self._has_children = False
        self._entered = {origin for module in list(sys.modules.values()) if (origin := _origin_of(module))}
        self._sees_functions = _watch_functions(self._entered.add)
        sys.addaudithook(self._heard)

    def reach(self) -> Reach:
        """Return what this process has used so far."""
        installed = installed_folders()
        modules = {name: _origin_of(module) for name, module in list(sys.modules.items())}
        own = {
            origin
            for name, origin in modules.items()
            if origin is not None
            and not origin.startswith(installed)
            and not (modules.get(name.partition(".")[0]) or "").startswith(installed)
        }
        opened = {path for path in self._opened.copy() if not path.startswith(installed) and _BYTECODE not in path}
        is_whole = not self._has_children and all(Path(path).is_file() for path in own)
        return Reach(frozenset(own), frozenset(opened - own), is_whole, frozenset(self._idle(own)))

    def _idle(self, own: set[str]) -> set[str]:
        """Return the modules that did no more than define what stands in them.

        A compiler that takes Python functions apart runs them without starting them; with one, nothing can be told.
        """
        if not self._sees_functions or _TAKES_FUNCTIONS_APART & sys.modules.keys():
            return set()
        read = {str(Path(path).absolute()) for path, entry in linecache.cache.copy().items() if len(entry) > 1}
        return {path for path in own if path.endswith(".py")} - self._entered - read

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode = arguments[0], arguments[1]
            if isinstance(path, str) and (mode is None or not set("wxa") & set(mode)):
                self._opened.add(str(Path(path).absolute()))
        elif event in _STARTS_A_PROCESS:
            self._has_children = True


def _watch_functions(hear: Callable[[str], None]) -> bool:
    """Let `hear` be told the file of every function that starts, once each; return whether this Python can.

    A module's own code and a class's body are no functions. Each code object is heard once, so it costs nothing after.
    """
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        return False
    free = [tool for tool in _TOOLS if monitoring.get_tool(tool) is None]
    if not free:
        return False

    def started(code: CodeType, _offset: int) -> Any:
        if code.co_flags & inspect.CO_OPTIMIZED:
            hear(code.co_filename)
        return monitoring.DISABLE

    monitoring.use_tool_id(free[0], "golden")
    monitoring.register_callback(free[0], monitoring.events.PY_START, started)
    monitoring.set_events(free[0], monitoring.events.PY_START)
    return True


def installed_folders() -> tuple[str, ...]:
    """Return the folders of Python's own library and of installed distributions, each with its closing slash."""
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(f"{folder.rstrip('/')}/" for folder in dict.fromkeys(folders) if folder.strip("/"))


def _origin_of(module: Any) -> str | None:
    """Return the file of a module; a namespace package or a part of Python itself has none."""
    found = getattr(module, "__file__", None)
    if not isinstance(found, str) or found.startswith(_CANNOT_BE_READ_BACK):
        return None
    return str(Path(found).absolute())
