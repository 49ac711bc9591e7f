"""What verbs that run nothing open: the selection, and a session that knows which golden is in force here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.run.in_process import InProcessRunner
from framework.run.session import Session
from framework.verbs.opened import Opened, open_selection

if TYPE_CHECKING:
    import argparse


def open_offline(arguments: argparse.Namespace) -> tuple[Opened, Session]:
    """Load what the command line asks for, with a session that is there to be asked, not to run.

    Raises:
        GoldenInferenceError: no root, a broken manifest, an adapter that cannot be imported, or nothing selected.
    """
    opened = open_selection(arguments)
    runner = InProcessRunner(opened.adapter)
    return opened, Session(opened.workspace, opened.adapter, runner, opened.fixtures, arguments.platform)
