"""What a hostile pull request can put into a repository, as functions that put it there."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

Make = Callable[[Path], object]
"""Puts something hostile at a path."""

TWO_GIGABYTES = 2 * 1024**3


def sparse(size: int) -> Make:
    """A file that has so many bytes and takes none."""

    def make(path: Path) -> None:
        with path.open("wb") as stream:
            stream.truncate(size)

    return make


def text(content: str) -> Make:
    return lambda path: path.write_text(content)


def data(content: bytes) -> Make:
    return lambda path: path.write_bytes(content)


def link_to(target: str) -> Make:
    """A link; `outside` in the target is the folder beside the root."""

    def make(path: Path) -> None:
        path.symlink_to(target.replace("OUTSIDE", str(outside_of(path))))

    return make


def outside_of(path: Path) -> Path:
    """The folder of things that nothing may touch, beside the root that `path` lies in."""
    return next(folder for folder in path.parents if (folder / "outside").is_dir()) / "outside"


def unix_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's whole name must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


pipe: Make = os.mkfifo
folder: Make = Path.mkdir


def moved_outside(path: Path) -> None:
    """What lies there is outside now, and a link leads to it."""
    target = outside_of(path) / "moved"
    path.rename(target)
    path.symlink_to(target)


def instead(make: Make) -> Make:
    """The same in place of whatever lies there."""

    def replace(path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)

    return replace


YAML_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)
YAML_ALIASES = f"a: &a [{', '.join('x' * 1000)}]\nb: [{', '.join(['*a'] * 200)}]\n"
YAML_DEEP = "x: " + "[" * 100_000
YAML_LONG = "x: " + "a" * 2_000_000
YAML_TAG = "x: !!python/object/apply:os.system ['touch ../outside/executed']\n"
YAML_KEYS = "".join(f"key{index}: 1\n" for index in range(60_000))
JSON_DEEP = "[" * 100_000
JSON_DIGITS = '{"schema": ' + "9" * 1_000_000 + "}"
JSON_TWICE = '{"schema": "golden.golden/1", "schema": "golden.record/1"}'
