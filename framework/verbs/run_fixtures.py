"""`golden run`: the engine's process is started first, and gets ready while this one imports and reads the rest."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from framework.report.streams import log
from framework.run.claim import Claim
from framework.run.engine_time import EngineTime
from framework.run.subprocess_runner import SubprocessRunner
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse

    from framework.errors import ExitCode


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run what was selected and print its report; the engine's process ends with it, whatever happens."""
    workspace = open_workspace(arguments.root, arguments.adapter)
    engine_time = EngineTime()
    with contextlib.closing(SubprocessRunner(workspace, engine_time=engine_time, claim=Claim(log))) as runner:
        runner.start()
        from framework.verbs import judged_run  # noqa: PLC0415 - imported while the engine's process starts

        return judged_run.run(arguments, workspace, runner, engine_time)
