"""Running what a gate selected: one worker a model, what it came to use by then, and which device it had leased."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from framework.run.claim import Claim
from framework.run.reach import REACH_FILE, read_reach
from framework.run.subprocess_runner import SubprocessRunner

if TYPE_CHECKING:
    from collections.abc import Callable

    from framework.run.reach import Reach
    from framework.run.task import Result, Task
    from framework.workspace import Workspace


class ReachRunner(SubprocessRunner):
    """A runner that remembers, for every fixture, what its worker had used when it was done, and which devices it had.

    A model begins in a fresh worker, so that what another model needed does not count for its fixtures.
    """

    def __init__(self, workspace: Workspace, say: Callable[[str], None]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="golden-reach-")
        self._file = Path(self._folder.name) / "reach.json"
        self._model: Path | None = None
        self.reaches: dict[str, Reach | None] = {}
        self.leased: dict[str, tuple[str, ...]] = {}
        super().__init__(workspace, {REACH_FILE: str(self._file)}, claim=Claim(say))

    def run(self, task: Task, *, time_limit_s: float) -> Result:
        """Run one task."""
        if self._model not in (None, task.model_path):
            self.close()
        self._model = task.model_path
        self._file.unlink(missing_ok=True)  # what an earlier run used says nothing of one that dies
        result = super().run(task, time_limit_s=time_limit_s)
        self.reaches[task.fixture.name] = read_reach(self._file)
        devices = self._claim.lease.devices if self._claim.lease else ()
        self.leased[task.fixture.name] = tuple(f"{device.name} {device.identity}".strip() for device in devices)
        return result
