"""The wheel of a model: downloaded with the user's own pip and its configuration, and believed only by its checksum."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from framework.errors import FetchError
from framework.fetch.recipe import FileSum, Wheel

if TYPE_CHECKING:
    from collections.abc import Callable

_MEGABYTE: Final = 1_000_000
_STDERR: Final = 2
_SHOWN_LINES: Final = 6


def downloaded_wheel(wheel: Wheel, folder: Path, say: Callable[[str], None]) -> Path:
    """Return the wheel in `folder`, which is downloaded unless it is there and whole.

    The caller holds the lock of all fetches, so what a killed one left in `folder` may be removed.

    Raises:
        FetchError: it cannot be had, or is not what the recipe names.
        OSError: `folder` cannot be written.
    """
    path = folder / wheel.file
    if path.is_file():
        if FileSum.of(path) == wheel.checksum:
            say(f"{wheel.file} was downloaded before")
            return path
        say(f"{path} is damaged, so it is downloaded again")
        path.unlink()
    part = folder / f".{wheel.file}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        say(f"downloading {wheel.file} ({wheel.checksum.size / _MEGABYTE:.0f} MB)")
        _pip_download(wheel, part, path)
        found = _the_wheel(wheel, part)
        found.replace(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return path


def _pip_download(wheel: Wheel, folder: Path, wanted: Path) -> None:
    """Let pip download the wheel and nothing it depends on; its progress goes to stderr."""
    elsewhere = f"or put {wheel.file} at {wanted} from elsewhere, and run this again"
    if importlib.util.find_spec("pip") is None:
        raise FetchError(
            f"{wheel.package} {wheel.version} cannot be downloaded: this Python has no pip. Add it with"
            f" `{sys.executable} -m ensurepip`, {elsewhere}"
        )
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--dest", str(folder), f"{wheel.package}=={wheel.version}"]
    done = subprocess.run(  # noqa: S603 - our own interpreter; the arguments passed the recipe's schema
        command,
        stdin=subprocess.DEVNULL,
        stdout=_STDERR,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()][-_SHOWN_LINES:]
        raise FetchError(
            f"{wheel.package} {wheel.version} could not be downloaded: pip ended with {done.returncode}"
            f" and said: {' / '.join(said) or 'nothing'}. Check network, disk and `pip config list`, {elsewhere}"
        )


def _the_wheel(wheel: Wheel, folder: Path) -> Path:
    """Return what pip downloaded, if it is the wheel that the recipe names."""
    found = folder / wheel.file
    if not found.is_file():
        names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise FetchError(f"pip downloaded {names}, and the recipe names {wheel.file}; nothing of it was used")
    checksum = FileSum.of(found)
    if checksum != wheel.checksum:
        raise FetchError(
            f"{wheel.file}: what was downloaded has {checksum}, and the recipe names {wheel.checksum}; nothing of it"
            " was used. The package index that pip is configured for (`pip config list`) serves another file"
        )
    return found
