"""Files that a user asks a verb to write: refused before any engine starts, if they could not be written at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import UsageError
from framework.golden.store import why_not_writable

if TYPE_CHECKING:
    from pathlib import Path

    from framework.workspace import Workspace


def refuse_output(option: str, path: Path, workspace: Workspace) -> None:
    """Refuse a file that could not be written, or that a link inside the workspace would carry out of it.

    Raises:
        UsageError: it cannot be written there; the message names `option`.
    """
    if why := why_not_writable(path, workspace.root):
        raise UsageError(f"{option} {path}: it cannot be written: {why}; choose another file")
