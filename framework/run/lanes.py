"""Runs work in several lanes, each with a runner of its own, and hands back what came of it in the caller's thread.

What is timed runs after all else, alone. A caller that stops listening, whatever the reason, ends every engine process.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from framework.run.place import Affinity, Work, in_order, next_work

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from framework.run.task import Runner

T = TypeVar("T")
RunnerT = TypeVar("RunnerT", bound="Runner")


def run_in_lanes(
    works: Sequence[Work],
    runners: Sequence[RunnerT],
    run_one: Callable[[RunnerT, Work], T],
    *,
    devices: int = 0,
) -> Generator[tuple[Work, T]]:
    """Yield every work with what `run_one` returned for it, in the order in which they end.

    `run_one` is called in the thread of a lane, with that lane's runner; what it raises is raised here. With one runner
    everything happens in the caller's thread.
    """
    untimed = [work for work in works if not work.is_timed]
    if len(runners) == 1:
        yield from _one_after_another(untimed, runners[0], run_one, devices)
    else:
        yield from _beside_each_other(untimed, runners, run_one, devices)
    for work in in_order([work for work in works if work.is_timed]):
        yield work, run_one(runners[0], work)


def _one_after_another(
    works: Sequence[Work], runner: RunnerT, run_one: Callable[[RunnerT, Work], T], devices: int
) -> Generator[tuple[Work, T]]:
    lanes: _Lanes[T] = _Lanes(list(works), 1, devices)
    while (work := lanes.take(0)) is not None:
        yield work, run_one(runner, work)


def _beside_each_other(
    works: Sequence[Work], runners: Sequence[RunnerT], run_one: Callable[[RunnerT, Work], T], devices: int
) -> Generator[tuple[Work, T]]:
    lanes: _Lanes[T] = _Lanes(list(works), len(runners), devices)
    threads = [
        threading.Thread(target=lanes.run, args=(number, runner, run_one), name=f"lane {number}", daemon=True)
        for number, runner in enumerate(runners)
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in works:
            yield lanes.next_ended()
    except BaseException:
        lanes.stop()
        for runner in runners:
            runner.stop()
        raise
    finally:
        for thread in threads:
            thread.join()


@dataclass(slots=True)
class _Lanes(Generic[T]):
    """The work that waits, what is loaded where, and what has ended."""

    waiting: list[Work]
    count: int
    devices: int
    loaded: dict[int, Affinity] = field(default_factory=dict)
    ended: queue.SimpleQueue[tuple[Work, T] | BaseException] = field(default_factory=queue.SimpleQueue)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, lane: int) -> Work | None:
        """Return the next work of a lane, which is taken from those that wait."""
        with self._lock:
            work = next_work(self.waiting, self.loaded, lane, lanes=self.count, devices=self.devices)
            if work is None:
                self.loaded.pop(lane, None)
            else:
                self.waiting.remove(work)
                self.loaded[lane] = work.affinity
            return work

    def next_ended(self) -> tuple[Work, T]:
        """Wait for the next work that ends; raise what a lane has met instead."""
        ended = self.ended.get()
        if isinstance(ended, BaseException):
            raise ended
        return ended

    def stop(self) -> None:
        """Let no lane take more."""
        with self._lock:
            self.waiting.clear()

    def run(self, lane: int, runner: RunnerT, run_one: Callable[[RunnerT, Work], T]) -> None:
        """Work until there is nothing left for this lane; its engine ends with it."""
        try:
            while (work := self.take(lane)) is not None:
                self.ended.put((work, run_one(runner, work)))
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody listens
            self.ended.put(error)
        finally:
            runner.close()
