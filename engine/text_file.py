"""Reading the text of a file that somebody else made: a regular file, and never more than is useful. No torch here."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_text_file(path: Path, limit: int) -> str:
    """Return the text of a file of at most `limit` bytes.

    A pipe would block for ever and a device would never end, so what it is, and how large, is asked before a byte is
    read.

    Raises:
        OSError: it is no regular file, larger, or cannot be read; `strerror` says so in words.
        UnicodeDecodeError: it is not UTF-8.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        if status.st_size > limit:
            raise OSError(
                errno.EFBIG, f"it has {status.st_size:,} bytes, more than the {limit:,} that are read", str(path)
            )
        return stream.read(limit).decode("utf-8")
