"""One writer of goldens at a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import filelock

from framework.errors import GoldenError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_TIMEOUT_S = 30.0


@contextmanager
def writer_lock(state_folder: Path, name: str = "lock") -> Iterator[None]:
    """Hold the lock of the one writer of goldens, or of what `name` stands for; `state_folder` is `.golden/`.

    The lock ends with the process, so a killed writer blocks nobody.

    Raises:
        GoldenError: another writer holds it for longer than `LOCK_TIMEOUT_S`, or it cannot be made.
    """
    lock = filelock.FileLock(state_folder / name)
    try:
        state_folder.mkdir(exist_ok=True)
        lock.acquire(timeout=LOCK_TIMEOUT_S)
    except filelock.Timeout:
        raise GoldenError(f"{state_folder / name}: another process is writing goldens; wait for it to end") from None
    except OSError as error:
        raise GoldenError(
            f"{error.filename or state_folder}: the writer's lock cannot be taken: {error.strerror or error}; nothing"
            " was written. Move away what lies there",
        ) from None
    try:
        yield
    finally:
        lock.release()
