"""Reading a file whose path or content somebody else chose: regular files only, and never more than is useful.

A pipe would block for ever, a device would never end, and a large file would fill the memory before its content could
be found wanting; so what it is, and how large, is asked before a byte is read.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class TooLargeError(OSError):
    """A file has more bytes than are read."""

    def __init__(self, path: Path, size: int, limit: int) -> None:
        super().__init__(errno.EFBIG, f"it has {size:,} bytes, more than the {limit:,} that are read", str(path))


def read_regular_file(path: Path, limit: int) -> bytes:
    """Return the whole content of a file of at most `limit` bytes.

    Links are followed: where they may lead is for the caller to decide.

    Raises:
        FileNotFoundError: there is none.
        TooLargeError: it is larger.
        OSError: it is no regular file, or cannot be read; `strerror` says so in words.
        ValueError: the path holds a NUL.
    """
    _require_regular(path, path.stat())
    # What is there may have been exchanged meanwhile: opening must not block, and the answer is asked again.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        _require_regular(path, status)
        if status.st_size > limit:
            raise TooLargeError(path, status.st_size, limit)
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise TooLargeError(path, len(data), limit)
    return data


def _require_regular(path: Path, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        number = errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL
        raise OSError(number, f"it is {_KINDS.get(kind, 'something else')}, not a file", str(path))
