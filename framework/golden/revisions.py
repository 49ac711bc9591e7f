"""Goldens as they were at a git revision, read from git's own objects; the checkout is not touched."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from framework.errors import UsageError

FOLDER = "goldens"


@dataclass(frozen=True, slots=True)
class Revision:
    """The goldens of one revision, or of the working tree where `name` is None.

    `files` maps a path below `goldens/` to what tells its content: the object's name in git.
    """

    root: Path
    name: str | None
    files: dict[str, str]

    @property
    def title(self) -> str:
        """What a reader calls it."""
        return self.name or "the working tree"

    def read(self, path: str) -> bytes:
        """Return the bytes of one golden."""
        if self.name is None:
            return (self.root / FOLDER / path).read_bytes()
        return _git(self.root, "cat-file", "blob", self.files[path])


def goldens_at(root: Path, name: str | None) -> Revision:
    """List the goldens of a revision, or of the working tree where `name` is None.

    Raises:
        UsageError: the root is in no git repository, or has no such revision.
    """
    if name is None:
        return Revision(root, None, _in_working_tree(root))
    listed = _git(root, "ls-tree", "-r", "-z", "--full-tree", f"{_commit(root, name)}:{_prefix(root)}{FOLDER}")
    files = {}
    for entry in listed.decode("utf-8", "surrogateescape").split("\0"):
        if entry:
            description, _, path = entry.partition("\t")
            files[path] = description.split()[2]
    return Revision(root, name, {path: blob for path, blob in files.items() if path.endswith(".json")})


def _in_working_tree(root: Path) -> dict[str, str]:
    folder = root / FOLDER
    paths = sorted(path for path in folder.rglob("*.json") if path.is_file())
    if not paths:
        return {}
    names = _git(root, "hash-object", "--", *(str(path) for path in paths)).decode().split()
    return {path.relative_to(folder).as_posix(): name for path, name in zip(paths, names, strict=True)}


def _commit(root: Path, name: str) -> str:
    if name.startswith("-"):
        raise UsageError(f"revision {name!r}: a revision does not start with a dash")
    return _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", what=name).decode().strip()


def _prefix(root: Path) -> str:
    return _git(root, "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").strip()


def _git(root: Path, *arguments: str, what: str = "") -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)  # noqa: S603, S607
    except FileNotFoundError:
        raise UsageError("git is not installed; `golden diff` reads goldens from git") from None
    if done.returncode:
        detail = done.stderr.decode("utf-8", "replace").strip() or f"there is no revision {what!r}"
        raise UsageError(f"{root}: git {arguments[0]}: {detail}; name two revisions that hold goldens/, as BASE..HEAD")
    return done.stdout
