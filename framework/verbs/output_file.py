"""Files that a user asks a verb to write: refused before any engine starts, if they could not be written at its end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from framework.errors import UsageError
from framework.golden.store import why_not_writable

if TYPE_CHECKING:
    from framework.workspace import Workspace


def refuse_output(option: str, path: Path, workspace: Workspace) -> None:
    """Refuse a file that could not be written, or that a link inside the workspace would carry out of it.

    A path elsewhere is its user's choice; a link in the repository is whoever wrote the repository's.

    Raises:
        UsageError: it cannot be written there; the message names `option`.
    """
    why = why_not_writable(path) or _why_carried_out(path, workspace.root)
    if why:
        raise UsageError(f"{option} {path}: it cannot be written: {why}; choose another file")


def _why_carried_out(path: Path, root: Path) -> str:
    written = Path(os.path.normpath(path.absolute()))
    for top in (root, root.resolve()):
        if written.is_relative_to(top) and not written.parent.resolve().is_relative_to(root.resolve()):
            return f"a link leads out of {root}"
    return ""
