from __future__ import annotations

import threading

import pytest

from framework.run.lanes import run_in_lanes
from framework.run.place import Affinity, Work
from framework.run.task import Failure, Result, Task


class WaitingRunner:
    """Runs nothing; a caller may wait for `stop`."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.closed = 0

    def start(self) -> None: ...

    def prepare(self, task: Task) -> Failure | None:
        return None

    def run(self, task: Task, *, time_limit_s: float) -> Result:
        raise NotImplementedError

    def rest(self) -> None: ...

    def close(self) -> None:
        self.closed += 1

    def stop(self) -> None:
        self.stopped.set()


def work(name: str, model: str = "m", *, is_timed: bool = False) -> Work:
    return Work(name, Affinity("cpu", model), 10.0, is_timed=is_timed)


def test_lanes_work_at_the_same_time_and_close_their_runners() -> None:
    runners = [WaitingRunner(), WaitingRunner()]
    meeting = threading.Barrier(2, timeout=10.0)

    def meet(_: object, each: Work) -> str:
        meeting.wait()
        return each.name.upper()

    ended = dict(run_in_lanes([work("a", "x"), work("b", "y")], runners, meet))
    assert {each.name: result for each, result in ended.items()} == {"a": "A", "b": "B"}
    assert [runner.closed for runner in runners] == [1, 1]


def test_what_is_timed_runs_last_and_beside_nothing() -> None:
    running: list[str] = []
    order: list[str] = []

    def watched(_: object, each: Work) -> None:
        running.append(each.name)
        order.append(each.name)
        assert not each.is_timed or running == [each.name]
        running.remove(each.name)

    works = [work("t2", is_timed=True), work("t1", is_timed=True), *(work(f"u{number}") for number in range(20))]
    list(run_in_lanes(works, [WaitingRunner() for _ in range(4)], watched))
    assert order[-2:] == ["t1", "t2"]
    assert sorted(order[:-2]) == sorted(f"u{number}" for number in range(20))


def test_one_runner_works_in_the_thread_of_the_caller_and_stays_open() -> None:
    runner = WaitingRunner()
    threads = [each for _, each in run_in_lanes([work("a")], [runner], lambda *_: threading.current_thread())]
    assert threads == [threading.current_thread()]
    assert runner.closed == 0


def test_a_fault_of_a_lane_is_raised_to_the_caller_and_ends_the_others() -> None:
    runners = [WaitingRunner(), WaitingRunner()]

    def fall(runner: WaitingRunner, each: Work) -> None:
        if each.name == "bad":
            raise KeyError("odd")
        assert runner.stopped.wait(10.0), "its engine is ended, or it would wait for ever"

    with pytest.raises(KeyError, match="odd"):
        list(run_in_lanes([work("bad", "x"), work("waits", "y")], runners, fall))
    assert [runner.closed for runner in runners] == [1, 1]


def test_a_caller_that_stops_listening_ends_every_engine_and_thread() -> None:
    runners = [WaitingRunner(), WaitingRunner()]

    def linger(runner: WaitingRunner, each: Work) -> str:
        if each.name == "waits":
            assert runner.stopped.wait(10.0)
        return each.name

    ended = run_in_lanes([work("quick", "x"), work("waits", "y")], runners, linger)
    assert next(ended)[1] == "quick"
    ended.close()
    assert [runner.closed for runner in runners] == [1, 1]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lane ")]
