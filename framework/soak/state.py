"""The runs of a soak on disk, so that it goes on where it was stopped.

`.golden/soak/<fixture>/<platform>.jsonl`: a first line that says what was soaked (engine, golden, manifest), then the
environment and the runs, a line each, each written by one call. A kill loses the run in progress; a line that is torn
is not read, and so is run again. Another engine, golden, manifest or environment starts the fixture anew: runs of two
engines together say nothing of either.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import filelock

from framework.errors import UsageError
from framework.golden.store import write_atomically
from framework.regular_file import read_regular_file
from framework.soak.soak_run import SoakRun, soak_run_from

STATE_SCHEMA: Final = "golden.soak-state/1"
_MOST_BYTES: Final = 256 * 1024 * 1024


def state_path(state_folder: Path, fixture_name: str, platform: str) -> Path:
    """Return where the runs of a fixture on a platform lie; `state_folder` is `.golden/` under the root."""
    return state_folder.joinpath("soak", *fixture_name.split("/"), f"{platform}.jsonl")


@contextmanager
def soak_lock(state_folder: Path) -> Iterator[None]:
    """Hold the lock of the one soak of a root; it ends with the process.

    Raises:
        UsageError: another soak holds it, or it cannot be made.
    """
    lock = filelock.FileLock(state_folder / "soak.lock")
    try:
        state_folder.mkdir(exist_ok=True)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise UsageError(f"{state_folder / 'soak.lock'}: another soak is running here; wait for it to end") from None
    except OSError as error:
        raise _unwritable(error.filename or state_folder, error) from None
    try:
        yield
    finally:
        lock.release()


@dataclass(slots=True)
class SoakState:
    """The runs of one fixture by number; `key` says what they are runs of.

    `environment` is that of its runs, None until one said. `has_begun_anew` says that earlier runs were of something
    else and do not count.
    """

    path: Path
    key: Mapping[str, str]
    runs: dict[int, SoakRun] = field(default_factory=dict)
    environment: Mapping[str, Any] | None = None
    has_begun_anew: bool = False
    _is_clean: bool = False
    _environment_is_checked: bool = False

    def add(self, run: SoakRun, environment: Mapping[str, Any] | None) -> None:
        """Keep a run. `environment` is what its record says, None if it gave none.

        The first run as written that this process adds shows whether earlier runs were made in the same environment;
        a varied one does not, since an engine may count its threads among it.

        Raises:
            UsageError: it cannot be written.
        """
        lines = b""
        if environment is not None and not run.is_varied and not self._environment_is_checked:
            self._environment_is_checked = True
            if self.environment not in (None, environment):
                self._forget()
            if self.environment is None:
                self.environment = environment
                lines = _line({"environment": environment})
        self.runs[run.number] = run
        try:
            if not self._is_clean:
                write_atomically(self.path, self._head())
                self._is_clean = True
            else:
                _append(self.path, lines + run.as_line())
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def _forget(self) -> None:
        self.runs.clear()
        self.environment = None
        self.has_begun_anew = True
        self._is_clean = False

    def _head(self) -> bytes:
        """Return the whole file as it should be."""
        lines = [_line({"schema": STATE_SCHEMA, "key": dict(self.key)})]
        if self.environment is not None:
            lines.append(_line({"environment": self.environment}))
        return b"".join([*lines, *(run.as_line() for run in self.runs.values())])


def open_state(path: Path, key: Mapping[str, str], *, fresh: bool = False) -> SoakState:
    """Return what is kept of earlier runs, nothing if they were of something else or `fresh` is asked for.

    Nothing is written before a run is added.

    Raises:
        UsageError: the file is there and cannot be read.
    """
    state = SoakState(path, key)
    try:
        lines = read_regular_file(path, _MOST_BYTES).split(b"\n")
    except FileNotFoundError:
        return state
    except OSError as error:
        raise UsageError(f"{path}: it cannot be read: {error.strerror or error}. Move away what lies there") from None
    entries = [_entry(line) for line in lines]
    if fresh or entries[0] != {"schema": STATE_SCHEMA, "key": dict(key)}:
        state.has_begun_anew = True
        return state
    for entry in entries[1:]:
        run = soak_run_from(entry)
        if run is not None:
            state.runs.setdefault(run.number, run)
        elif isinstance(entry.get("environment"), dict):
            state.environment = entry["environment"]
    state._is_clean = lines[-1] == b"" and all(entries[:-1])  # noqa: SLF001 - its own module
    return state


def _entry(line: bytes) -> dict[str, Any]:
    """Return what a line says, an empty object if it is no whole one."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _append(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        written = os.write(descriptor, data)
        if written != len(data):
            raise OSError(0, "only a part of a line could be written")
    finally:
        os.close(descriptor)


def _unwritable(path: object, error: OSError) -> UsageError:
    return UsageError(
        f"{path}: the runs of this soak cannot be kept there: {error.strerror or error}. Make room, or move away what"
        " lies there; the same command then goes on"
    )
