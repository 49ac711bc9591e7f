"""What the gate asks of git: which commit is which, what a commit holds, and whether the working tree is exactly it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.errors import UsageError
from framework.golden.revisions import blobs, commit_named, git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_FETCH_ALL = "fetch the whole history (`fetch-depth: 0` of actions/checkout, or `git fetch --unshallow`)"
_SHOWN = 3
_IMPORTABLE = (".py", ".so", ".pyd", ".pth")
_GUARDED = ("fixtures", "goldens")
"""Folders in which a file that is not in the commit could be run or judged with."""


@dataclass(frozen=True, slots=True)
class Range:
    """What is validated: `head`, as a change of `since`, which is where it parted from `base` (or `base` itself)."""

    base: str
    head: str
    since: str

    @property
    def contains_base(self) -> bool:
        """Whether the head holds everything that the base holds."""
        return self.since == self.base


def resolve(root: Path, base: str, head: str) -> Range:
    """Return the commits that base and head stand for, and where they parted.

    Raises:
        UsageError: one of them is unknown here, or they share no history.
    """
    commits = []
    for flag, name in (("--base", base), ("--head", head)):
        try:
            commits.append(commit_named(root, name))
        except UsageError as error:
            raise UsageError(f"{flag} {name}: {error}. If the commit exists elsewhere, {_FETCH_ALL}") from None
    try:
        since = git(root, "merge-base", *commits).decode().split()[0]
    except UsageError:
        raise UsageError(
            f"--base {base} and --head {head} share no history that is here, so nothing says what changed; {_FETCH_ALL}"
        ) from None
    return Range(commits[0], commits[1], since)


def files_at(root: Path, commit: str, *folders: str) -> dict[str, str]:
    """Return the files of a commit below the root, or below folders of it: path from the root, and name of content."""
    files = {}
    for entry in _texts(git(root, "ls-tree", "-r", "-z", commit, "--", *folders)):
        description, _, path = entry.partition("\t")
        files[path] = description.split()[2]
    return files


def contents(root: Path, files: Mapping[str, str], paths: Iterable[str]) -> dict[str, bytes]:
    """Return the bytes of some of a commit's `files` (`files_at`); a path that it has not is left out."""
    wanted = [path for path in paths if path in files]
    return dict(zip(wanted, blobs(root, [files[path] for path in wanted]), strict=True)) if wanted else {}


def steps(root: Path, since: str, head: str) -> tuple[tuple[str, ...], ...]:
    """Return the commits from `since` to `head` along first parents, the oldest first, each with its parents."""
    listed = git(root, "rev-list", "--first-parent", "--reverse", "--parents", f"{since}..{head}").decode()
    return tuple(tuple(line.split()) for line in listed.splitlines())


def common_ancestor(root: Path, one: str, other: str) -> str | None:
    """Return where two commits parted, None if they share nothing."""
    try:
        return git(root, "merge-base", one, other).decode().split()[0]
    except UsageError:
        return None


def versions(root: Path, commit: str, path: str, most: int = 50) -> tuple[str, ...]:
    """Return the names of a file's contents in the history of a commit, the latest first."""
    listed = git(root, "log", f"-{most}", "--format=", "--raw", "--no-abbrev", "--no-renames", commit, "--", path)
    return tuple(line.split()[3] for line in listed.decode().splitlines() if line.startswith(":"))


def why_not_exactly(root: Path, head: str) -> str:
    """Return why the working tree is not exactly the commit `head`, or an empty string.

    What would be run and judged otherwise is not what is being validated.
    """
    here = commit_named(root, "HEAD")
    if here != head:
        return f"the working tree is at {here[:12]}, not at the head {head[:12]}; `git checkout {head[:12]}` first"
    changed, untracked = _status(root)
    if changed:
        return f"{_some(changed)}: not as in {head[:12]}; commit it and validate that commit, or undo it"
    stray = [path for path in untracked if path.split("/")[0] in _GUARDED]
    stray += _unknown_modules(root)
    if stray:
        return f"{_some(sorted(set(stray)))}: not in {head[:12]} at all; commit it, or remove it"
    hidden = _hidden(root)
    way_out = "`git update-index --no-assume-unchanged --no-skip-worktree` undoes that"
    return f"{_some(hidden)}: git was told not to look at it; {way_out}" if hidden else ""


def _status(root: Path) -> tuple[list[str], list[str]]:
    """Return the tracked files that are not as committed, and the files that git does not know."""
    changed: list[str] = []
    untracked: list[str] = []
    entries = iter(_texts(git(root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--", ".")))
    prefix = git(root, "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").strip()
    for entry in entries:
        code, path = entry[:2], entry[3:].removeprefix(prefix)
        if code[0] in "RC":
            next(entries, "")
        (untracked if code == "??" else changed).append(path)
    return changed, untracked


def _unknown_modules(root: Path) -> list[str]:
    """Return what Python could import and git does not know, ignored files too, beside files that git knows."""
    tracked = _texts(git(root, "ls-files", "-z"))
    packages = sorted({path.split("/")[0] for path in tracked if path.endswith(".py") and "/" in path})
    found = _texts(git(root, "ls-files", "--others", "-z", "--", *packages, ":(glob)*"))
    return [path for path in found if path.endswith(_IMPORTABLE) and "__pycache__" not in path.split("/")]


def _hidden(root: Path) -> list[str]:
    entries = _texts(git(root, "ls-files", "-v", "-z"))
    return [entry[2:] for entry in entries if entry[0].islower() or entry[0] == "S"]


def _texts(data: bytes) -> Iterator[str]:
    return (entry for entry in data.decode("utf-8", "surrogateescape").split("\0") if entry)


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(paths[:_SHOWN])}{more}"
