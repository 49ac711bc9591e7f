"""What a runner is asked to do, what comes back, and the one way an adapter is called."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from framework.compare.finding import FindingClass
from framework.explain.schedule import MalformedScheduleError, Schedule, checked_schedule, renamed
from framework.run.adapter import TracesSchedule
from framework.run.engine_time import EngineTime
from framework.run.returned import MalformedRecordError, checked_record

if TYPE_CHECKING:
    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter

_OUT_OF_MEMORY_WORDS = ("out of memory", "can't allocate memory", "cannot allocate memory")


@dataclass(frozen=True, slots=True)
class Task:
    """One run of one fixture.

    `overrides` are settings laid over the pinned ones. `order` permutes the requests as they are handed to the engine;
    the record names them by their place in the manifest all the same. `arrivals` are the loop calls at which they
    arrive, in the order of the manifest, in place of what the manifest says.
    """

    fixture: Fixture
    model_path: Path
    platform: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[int, ...] | None = None
    arrivals: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The engine did not give a record: it crashed, hung, or ran out of memory."""

    kind: FindingClass
    message: str


@dataclass(frozen=True, slots=True)
class Result:
    """A record or a failure, never both; beside a record the schedule of its run, where the engine tells it."""

    record: dict[str, Any] | None
    failure: Failure | None
    schedule: Schedule = ()


class Runner(Protocol):
    """Runs tasks one after another, all in one thread; only `stop` may be called from another."""

    def start(self) -> None:
        """Get ready without waiting for it, so that the next `run` has less to wait for."""
        ...

    def prepare(self, task: Task) -> Failure | None:
        """Wait for what a task needs besides an engine, such as a device; return why it cannot be had.

        No time of the task is counted before. `run` does it too, where nobody has.
        """
        ...

    def run(self, task: Task, *, time_limit_s: float) -> Result:
        """Run one task; whatever the engine does, a result comes back within the limit."""
        ...

    def rest(self) -> None:
        """Let go of what others wait for, if there is such a thing: nothing is being run now."""
        ...

    def close(self) -> None:
        """Let go of everything held; another `run` starts anew."""
        ...

    def stop(self) -> None:
        """End what is running, at once and for good: whatever is run from now on is a failure."""
        ...


def execute(adapter: Adapter, task: Task, engine_time: EngineTime | None = None) -> Result:
    """Call the adapter in this process and turn whatever happens into a result; `engine_time` counts the call."""
    engine_time = EngineTime() if engine_time is None else engine_time
    try:
        fixture = _arranged(task)
        with engine_time.working():
            returned = adapter.run(
                fixture,
                model_path=task.model_path,
                platform=task.platform,
                overrides=task.overrides,
            )
        record = checked_record(returned, task.fixture)
        schedule = _schedule_of(adapter, task)
    except MemoryError as error:
        return _failed(FindingClass.OUT_OF_MEMORY, error)
    except MalformedRecordError as error:
        return Result(None, Failure(FindingClass.ENGINE_CRASH, f"the adapter's record is malformed: {error}"))
    except MalformedScheduleError as error:
        return Result(None, Failure(FindingClass.ENGINE_CRASH, f"the adapter's schedule is malformed: {error}"))
    except Exception as error:  # noqa: BLE001 - an engine may raise anything
        text = str(error).lower()
        is_memory = any(words in text for words in _OUT_OF_MEMORY_WORDS)
        return _failed(FindingClass.OUT_OF_MEMORY if is_memory else FindingClass.ENGINE_CRASH, error)
    return Result(_out_of_order(record, task.order), None, schedule)


def _failed(kind: FindingClass, error: BaseException) -> Result:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" (at {frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    return Result(None, Failure(kind, f"{type(error).__name__}: {error}{place}"))


def _arranged(task: Task) -> Fixture:
    """Return the task's fixture with its requests in the order, and at the times, that the task asks for."""
    fixture, prompts = task.fixture, task.fixture.workload.prompts
    if task.arrivals is not None:
        prompts = tuple(
            dataclasses.replace(prompt, arrival_step=step) for prompt, step in zip(prompts, task.arrivals, strict=True)
        )
    if task.order is not None:
        prompts = tuple(prompts[index] for index in task.order)
    return dataclasses.replace(fixture, workload=dataclasses.replace(fixture.workload, prompts=prompts))


def _schedule_of(adapter: Adapter, task: Task) -> Schedule:
    """Return the schedule of the run that has just ended, its requests named by their places in the manifest."""
    if not isinstance(adapter, TracesSchedule):
        return ()
    count = len(task.fixture.workload.prompts)
    schedule = checked_schedule(adapter.schedule(), count)
    if task.order is None:
        return schedule
    return renamed(schedule, {str(index): str(task.order[index]) for index in range(count)})


def _out_of_order(record: dict[str, Any], order: tuple[int, ...] | None) -> dict[str, Any]:
    if order is None:
        return record
    requests = record["requests"]
    renamed = {str(order[int(request_id)]): request for request_id, request in requests.items()}
    return record | {"requests": renamed}
