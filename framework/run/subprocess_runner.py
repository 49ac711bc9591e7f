"""Runs tasks in a worker process that lives across fixtures, so that a model and its libraries load once.

An engine that crashes, hangs or is killed takes only its worker with it: the task gets a failure that says what was
seen, and the next task gets a fresh worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.compare.finding import FindingClass
from framework.redact import redacted
from framework.run.claim import Claim, engine_locks, engine_variables
from framework.run.devices import may_have_devices
from framework.run.engine_environment import engine_environment
from framework.run.engine_time import EngineTime
from framework.run.output import Output
from framework.run.place import needs_device
from framework.run.task import Failure, Result, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from framework.run.lease import Lease
    from framework.workspace import Workspace

START_LIMIT_S = 120.0
_LAST_WORDS_S = 1.0
_READ_BYTES = 1 << 20
_STOPPED = "the run was stopped before this engine began"


class SubprocessRunner:
    """A runner that owns at most one worker process, and what that process may use.

    `environment` is laid over what an engine gets of this process's own, for runs under another instruction set.
    `engine_time` counts when the engine loads and runs; several runners may share one. So may they a `claim` on
    devices, if they are run in turn and not beside each other.
    """

    def __init__(
        self,
        workspace: Workspace,
        environment: Mapping[str, str] | None = None,
        engine_time: EngineTime | None = None,
        claim: Claim | None = None,
    ) -> None:
        self._workspace = workspace
        self._environment = dict(environment or {})
        self._engine_time = EngineTime() if engine_time is None else engine_time
        self._claim = Claim() if claim is None else claim
        self._worker: _Worker | None = None
        self._is_stopped = threading.Event()

    def start(self) -> None:
        """Start the worker without waiting for it, so that its imports overlap with other work.

        Where there may be devices, which one it gets has to be known first.
        """
        if not may_have_devices(os.environ):
            self._start_on(None)

    def prepare(self, task: Task) -> Failure | None:
        """Wait for a device, if the task needs one, and for its memory; return why it cannot be had.

        Raises:
            UsageError: the environment says something about devices that makes no sense.
        """
        if self._is_stopped.is_set():
            return Failure(FindingClass.ENGINE_CRASH, _STOPPED)
        platform, ranks = task.platform, task.fixture.ranks
        on_device = self._worker is not None and self._worker.lease is not None
        if not needs_device(platform):
            if on_device:
                self.close()
            return None
        if not on_device or not self._claim.fits(platform, ranks):
            self.close()
        failure = self._claim.take(id(self), platform, ranks, task.fixture.name, self._is_stopped.is_set)
        if failure is None and self._worker is None:
            failure = self._claim.wait_for_memory(id(self), self._is_stopped.is_set)
        if failure is not None:
            self.close()
        return failure

    def run(self, task: Task, *, time_limit_s: float) -> Result:
        """Run one task; the worker is killed when the limit is over. Its start is not counted."""
        failure = self.prepare(task)
        if failure is not None:
            return Result(None, failure)
        worker = self._start_on(self._claim.lease if needs_device(task.platform) else None)
        result = worker.run(task, time_limit_s)
        if result.failure is not None:
            self.close()
        self._claim.has_run()
        return result

    def rest(self) -> None:
        """Pass the device on, and end the engine on it, if others wait and had to for long enough."""
        on_device = self._worker is not None and self._worker.lease is not None
        if on_device and self._claim.should_pass_on():
            self.close()

    def close(self) -> None:
        """Kill the worker, if there is one, and let go of its devices."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None
        self._claim.leave(id(self))

    def stop(self) -> None:
        """Kill the worker, so that a run in another thread ends at once; there will be no other worker."""
        self._is_stopped.set()
        worker = self._worker
        if worker is not None:
            worker.end_processes()

    def _start_on(self, lease: Lease | None) -> _Worker:
        if self._worker is None:
            self._worker = _Worker(self._workspace, self._environment, self._engine_time, lease)
            if self._is_stopped.is_set():  # by another thread, while there was no worker to end
                self._worker.end_processes()
        return self._worker


class _Worker:
    def __init__(
        self,
        workspace: Workspace,
        environment: Mapping[str, str],
        engine_time: EngineTime,
        lease: Lease | None,
    ) -> None:
        self.lease = lease
        self._engine_time = engine_time
        self._started = time.monotonic()
        requests_read, self._requests = os.pipe()
        self._answers, answers_write = os.pipe()
        command = [sys.executable, "-P", "-m", "framework.run.worker"]
        command += ["--root", str(workspace.root), "--adapter", workspace.adapter_spec]
        command += ["--requests-fd", str(requests_read), "--answers-fd", str(answers_write)]
        command += ["--parent", str(os.getpid())]
        command += [word for path in engine_locks(lease) for word in ("--device-lock", str(path))]
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(requests_read, answers_write),
            env={
                "OMP_WAIT_POLICY": "passive",  # threads that spin while they wait take the cores of other workers
                **engine_environment(os.environ, workspace.engine_environment),
                "PYTHONHASHSEED": "0",
                "PYTHONPATH": _python_path(),
                **environment,
                **engine_variables(lease),
            },
            start_new_session=True,
        )
        os.close(requests_read)
        os.close(answers_write)
        self._buffer = bytearray()
        self._ready = False
        self._killed = False
        assert self._process.stdout is not None
        self._output = Output(self._process.stdout)

    def run(self, task: Task, time_limit_s: float) -> Result:
        if not self._ready:
            hello = self._receive(START_LIMIT_S, f"the engine's process did not start within {START_LIMIT_S:g} s")
            if "failure" in hello:
                return _result(hello)
            self._ready = True
        request = {
            "manifest": str(task.fixture.path),
            "manifest_sha256": task.fixture.manifest_sha256,
            "model_path": str(task.model_path),
            "platform": task.platform,
            "overrides": dict(task.overrides),
            "order": task.order,
            "arrivals": task.arrivals,
            "time_limit_s": time_limit_s,
        }
        with contextlib.suppress(BrokenPipeError):  # a dead worker is told by its answer, which never comes
            _write_all(self._requests, json.dumps(request).encode() + b"\n")
        late = f"no record within the fixture's time limit of {task.fixture.time_limit_s:g} s"
        return _result(self._receive(time_limit_s, late))

    def _receive(self, limit_s: float, late: str) -> dict[str, Any]:
        """Return the next answer; a worker that dies or is too slow gives a failure in its stead."""
        asked = time.monotonic()
        deadline = asked + limit_s
        while (end := self._buffer.find(b"\n")) < 0:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([self._answers], [], [], remaining)[0]:
                self._count_since(asked)
                return self._too_slow(late)
            data = os.read(self._answers, _READ_BYTES)
            if not data:
                self._count_since(asked)
                return self._died()
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        answer = json.loads(line)
        assert isinstance(answer, dict), "a worker answers with objects"
        self._engine_time.add(answer.pop("engine_time"), after=self._started)
        if "failure" in answer:
            # A process that failed is used no more, and what it printed last has arrived only when it is gone.
            self.end_processes()
            self._output.wait(_LAST_WORDS_S)
            answer["failure"]["message"] += self._output.last_lines()
        return answer

    def _count_since(self, asked: float) -> None:
        """Count the time of an engine that gave no answer: it had it all."""
        self._engine_time.add([(asked, time.monotonic())], after=asked)

    def _too_slow(self, late: str) -> dict[str, Any]:
        before = self._output.count
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGUSR1)
        stacks = self._output.stacks(before)
        self.kill()
        return _failure(FindingClass.TIME_LIMIT, f"{late}; the worker was stopped. Its last lines and stacks:{stacks}")

    def _died(self) -> dict[str, Any]:
        status = self._process.wait()
        self._output.wait(_LAST_WORDS_S)
        output = self._output.last_lines()
        if status == -signal.SIGKILL:
            message = f"the engine's process was killed by signal 9 (SIGKILL), perhaps out of memory{output}"
            return _failure(FindingClass.OUT_OF_MEMORY, message)
        how = f"killed by {_signal_name(-status)}" if status < 0 else f"ended with status {status}"
        return _failure(FindingClass.ENGINE_CRASH, f"the engine's process was {how}{output}")

    def end_processes(self) -> None:
        """Kill the worker and whatever it has started; its pipes stay open, since another thread may wait for them."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        if self._killed:
            return
        self._killed = True
        self.end_processes()
        self._process.wait()
        self._output.wait(_LAST_WORDS_S)
        for descriptor in (self._requests, self._answers):
            os.close(descriptor)


def _result(answer: dict[str, Any]) -> Result:
    if "failure" in answer:
        failure = answer["failure"]
        return Result(None, Failure(FindingClass(failure["class"]), redacted(failure["message"])))
    return Result(answer["record"], None, answer["schedule"])


def _failure(kind: FindingClass, message: str) -> dict[str, Any]:
    return {"failure": {"class": kind.value, "message": message}}


def _signal_name(number: int) -> str:
    """Return a signal's name; those for real-time use have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _python_path() -> str:
    """Let the worker find every module where this process finds it, so that both speak of the same engine."""
    return os.pathsep.join(dict.fromkeys(str(Path(folder).absolute()) for folder in sys.path))


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
