"""Runs tasks in this very process: for debugging an engine, and for tests of what lies above."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.run.task import Failure, Result, Task, execute

if TYPE_CHECKING:
    from framework.run.adapter import Adapter
    from framework.run.engine_time import EngineTime


class InProcessRunner:
    """A runner without a process of its own; it cannot stop an engine that hangs."""

    def __init__(self, adapter: Adapter, engine_time: EngineTime | None = None) -> None:
        self._adapter = adapter
        self._engine_time = engine_time

    def start(self) -> None:
        """Be ready at once."""

    def prepare(self, task: Task) -> Failure | None:  # noqa: ARG002
        """Need nothing besides."""
        return None

    def run(self, task: Task, *, time_limit_s: float) -> Result:
        """Run one task; the limit cannot be enforced here."""
        del time_limit_s
        return execute(self._adapter, task, self._engine_time)

    def rest(self) -> None:
        """Hold nothing that others wait for."""

    def close(self) -> None:
        """Hold nothing."""

    def stop(self) -> None:
        """Leave what is running to its end: it is this process."""
