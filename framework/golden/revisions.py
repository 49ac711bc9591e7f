"""Files as they were at a git revision, read from git's own objects; the checkout is not touched."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framework.errors import UsageError
from framework.golden.codec import MAX_BYTES
from framework.regular_file import read_regular_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_READ_AT_A_TIME = 64
_COMPARE_THEM = "name two revisions that hold goldens/, as BASE..HEAD"
_REGULAR_FILE = "100"
"""What the mode of a file begins with; links and nested repositories have others."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The files below one folder of the root at a revision, or in the working tree where `revision` is None.

    `files` maps a path below the folder to what tells its content: the object's name in git.
    """

    root: Path
    folder: str
    revision: str | None
    files: dict[str, str]

    def read(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield path and bytes of each of these files.

        Raises:
            UsageError: one of them cannot be read.
        """
        if self.revision is None:
            for path in paths:
                yield path, _bytes_of(self.root / self.folder / path)
        else:
            wanted = list(paths)
            for first in range(0, len(wanted), _READ_AT_A_TIME):
                some = wanted[first : first + _READ_AT_A_TIME]
                yield from zip(some, blobs(self.root, [self.files[path] for path in some]), strict=True)


def resolve_range(root: Path, text: str) -> tuple[str, str | None]:
    """Return base and head of `BASE..HEAD`, of `BASE...HEAD` (from where the two parted), or of `BASE` alone.

    The head is None for the working tree; a side left empty is HEAD.

    Raises:
        UsageError: the root is in no git repository, or has no such revision.
    """
    base, dots, head = text.partition("..")
    since_parting = head.startswith(".")
    head = head.removeprefix(".")
    base, head = base or "HEAD", head or "HEAD"
    commits = [commit_named(root, name) for name in (base, head)]
    if since_parting:
        base = git(root, "merge-base", *commits).decode().strip()
    return base, head if dots else None


def tree_at(root: Path, revision: str | None, folder: str, suffix: str) -> Tree:
    """List the files below a folder of the root whose names end in `suffix`; a folder that is not there has none.

    Raises:
        UsageError: the root is in no git repository, or has no such revision.
    """
    listed = _in_working_tree(root, folder, suffix) if revision is None else _in_commit(root, revision, folder)
    return Tree(root, folder, revision, {path: name for path, name in listed.items() if path.endswith(suffix)})


def file_at(root: Path, revision: str | None, name: str) -> bytes | None:
    """Return the bytes of a file in the root at a revision, in the working tree where that is None; None without one.

    Raises:
        UsageError: it cannot be read, or there is no such revision.
    """
    if revision is None:
        path = root / name
        return _bytes_of(path) if path.is_file() and not path.is_symlink() else None
    prefix = git(root, "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").strip()
    listed = git(root, "ls-tree", "-z", "--full-tree", commit_named(root, revision), "--", f"{prefix}{name}").decode()
    description = listed.partition("\t")[0]
    if not description.startswith(_REGULAR_FILE):
        return None
    return next(blobs(root, [description.split()[2]]))


def _in_commit(root: Path, revision: str, folder: str) -> dict[str, str]:
    prefix = f"{git(root, 'rev-parse', '--show-prefix').decode('utf-8', 'surrogateescape').strip()}{folder}/"
    listed = git(root, "ls-tree", "-r", "-z", "--full-tree", commit_named(root, revision), "--", prefix)
    files = {}
    for entry in listed.decode("utf-8", "surrogateescape").split("\0"):
        description, _, path = entry.partition("\t")
        if description.startswith(_REGULAR_FILE):
            files[path.removeprefix(prefix)] = description.split()[2]
    return files


def _in_working_tree(root: Path, folder: str, suffix: str) -> dict[str, str]:
    top = root / folder
    paths = sorted(path for path in top.rglob(f"*{suffix}") if path.is_file() and not path.is_symlink())
    for path in paths:
        _refuse_unreadable(path)
    names = git(root, "hash-object", "--stdin-paths", given="\n".join(map(str, [*paths, ""])).encode()).decode()
    return {path.relative_to(top).as_posix(): name for path, name in zip(paths, names.split(), strict=True)}


def _refuse_unreadable(path: Path) -> None:
    """Refuse what git would read for long, or would not find by its name, which stands on a line of its own."""
    if not str(path).isprintable():
        raise UsageError(f"{str(path)!r}: its name holds a control character; rename it")
    if path.stat().st_size > MAX_BYTES:
        raise UsageError(f"{path}: larger than {MAX_BYTES // 2**20} MB, the most that is read; it is no golden")


def _bytes_of(path: Path) -> bytes:
    try:
        return read_regular_file(path, MAX_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}; run `golden diff` again") from None


def blobs(root: Path, names: list[str]) -> Iterator[bytes]:
    """Yield the content of objects by their names, all read by one process of git.

    Raises:
        UsageError: git has no such object.
    """
    answer = git(root, "cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode())
    place = 0
    for name in names:
        end = answer.index(b"\n", place)
        words = answer[place:end].split()
        if words[1:2] != [b"blob"]:
            raise UsageError(f"{root}: git has lost the object {name}; fetch it, or check the repository with git fsck")
        place = end + 1 + int(words[2])
        yield answer[end + 1 : place]
        place += 1


def commit_named(root: Path, name: str) -> str:
    """Return the full name of the commit that a revision stands for.

    Raises:
        UsageError: the root is in no git repository, or has no such revision.
    """
    if name.startswith("-"):
        raise UsageError(f"revision {name!r}: a revision does not start with a dash")
    return git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", what=name).decode().strip()


def git(root: Path, *arguments: str, what: str = "", given: bytes = b"", way_out: str = _COMPARE_THEM) -> bytes:
    """Return what git prints; no shell is involved.

    `what` is the revision that is asked about, for errors; `given` is its standard input.

    Raises:
        UsageError: git is not installed, or refuses; `way_out` says what a user can do.
    """
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(root), *arguments],  # noqa: S607
            input=given,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError("git is not installed, and revisions are read from git; install it") from None
    except ValueError as error:
        raise UsageError(f"revision {what!r}: {error}") from None
    if done.returncode:
        detail = done.stderr.decode("utf-8", "replace").strip() or f"there is no revision {what!r}"
        raise UsageError(f"{root}: git {arguments[0]}: {detail}; {way_out}")
    return done.stdout
