"""The process an engine runs in: `python -m framework.run.worker`, started by `framework.run.subprocess_runner`.

Requests and answers are JSON lines on two file descriptors of their own, so whatever an engine prints on its standard
output cannot corrupt them. The process ends when its parent does, even while the engine computes.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock

from framework.compare.finding import FindingClass
from framework.errors import GoldenInferenceError
from framework.manifest.load import load_manifest
from framework.run.adapter import Prepares
from framework.run.engine_time import EngineTime
from framework.run.reach import reach_teller
from framework.run.task import Failure, Result, Task, execute
from framework.workspace import Workspace, load_adapter

if TYPE_CHECKING:
    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter

_ORPHAN_GRACE_S = 60.0
"""A process that hangs in native code sees no parent die; so long after its time limit it ends by itself."""

_LONGEST_S = 1e6


def main() -> None:
    """Answer requests until the parent closes its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--adapter", required=True)
    parser.add_argument("--requests-fd", type=int, required=True)
    parser.add_argument("--answers-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--device-lock", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    locks = [filelock.FileLock(path, thread_local=False) for path in arguments.device_lock]
    for lock in locks:  # held until this process ends, so that nobody takes a device on which its engine still is
        lock.acquire(blocking=False)
    if os.getppid() != arguments.parent:  # it died before the locks were held: the devices may be another's by now
        return
    tell_reach = reach_teller(os.environ)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
    workspace = Workspace(root=arguments.root, adapter_spec=arguments.adapter)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(arguments.requests_fd, requests), daemon=True).start()
    engine_time = EngineTime()
    fixtures: dict[Path, Fixture] = {}
    with os.fdopen(arguments.answers_fd, "w", encoding="utf-8") as answers:
        try:
            with engine_time.working():
                adapter = load_adapter(workspace)
                _prepare(adapter)
        except GoldenInferenceError as error:
            failure = {"class": FindingClass.ENGINE_CRASH.value, "message": str(error)}
            _send(answers, {"failure": failure, "engine_time": engine_time.take()})
            return
        _send(answers, {"ready": True, "engine_time": engine_time.take()})
        while True:
            result = _run(adapter, workspace, fixtures, json.loads(requests.get()), engine_time)
            tell_reach()
            _send(answers, _answer(result) | {"engine_time": engine_time.take()})


def _prepare(adapter: Adapter) -> None:
    """Let the adapter get ready; a fault of it is found again, and told, by the first run."""
    if isinstance(adapter, Prepares):
        with contextlib.suppress(Exception):
            adapter.prepare()


def _receive(descriptor: int, requests: queue.SimpleQueue[str]) -> None:
    with os.fdopen(descriptor, encoding="utf-8") as lines:
        for line in lines:
            requests.put(line)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)  # whatever the engine has started too
    os._exit(0)


def _send(answers: Any, message: dict[str, Any]) -> None:
    """Answer, once everything that was printed before is out of this process: it may be killed for its answer."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # an engine may have closed it
            stream.flush()
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _answer(result: Result) -> dict[str, Any]:
    if result.failure is not None:
        return {"failure": {"class": result.failure.kind.value, "message": result.failure.message}}
    return {"record": result.record, "schedule": result.schedule}


def _run(
    adapter: Adapter,
    workspace: Workspace,
    fixtures: dict[Path, Fixture],
    request: dict[str, Any],
    engine_time: EngineTime,
) -> Result:
    """Run what is requested; `fixtures` keeps the manifests that were read, since one may be run many times."""
    path = Path(request["manifest"])
    try:
        fixture = fixtures.get(path) or load_manifest(path, fixtures_root=workspace.fixtures_root)
    except GoldenInferenceError as error:
        return Result(None, Failure(FindingClass.ENGINE_CRASH, f"the manifest changed during the run: {error}"))
    if fixture.manifest_sha256 != request["manifest_sha256"]:
        return Result(None, Failure(FindingClass.ENGINE_CRASH, f"{path}: the manifest changed during the run"))
    fixtures[path] = fixture
    order, arrivals = request["order"], request["arrivals"]
    task = Task(
        fixture=fixture,
        model_path=Path(request["model_path"]),
        platform=request["platform"],
        overrides=request["overrides"],
        order=None if order is None else tuple(order),
        arrivals=None if arrivals is None else tuple(arrivals),
    )
    faulthandler.dump_traceback_later(min(request["time_limit_s"] + _ORPHAN_GRACE_S, _LONGEST_S), exit=True)
    try:
        return execute(adapter, task, engine_time)
    finally:
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
