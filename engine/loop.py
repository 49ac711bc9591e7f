"""The step loop: one path for both scheduling modes, which differ in a depth alone (legacy 0, async 1).

A step plans and launches, then resolves the oldest plan in flight once more than `depth` are in flight or nothing could
be launched. What a request sampled is known in `_resolve` only, so in async mode the end of a request is known one step
late: the row that was launched meanwhile is dropped. No torch here.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.config import InferenceConfig
from engine.counters import Counters
from engine.limits import Limits
from engine.plan import Plan, StepOutput
from engine.request import FinishReason, Request, RequestOutput, RequestState, Sample
from engine.scheduler import Scheduler
from engine.stop_strings import TextStream
from engine.timing import Timing
from engine.trace import ScheduleTrace

DEPTH = {"legacy": 0, "async": 1}


class Pending(Protocol):
    """A launched plan."""

    def wait(self) -> StepOutput:
        """Return what the plan brought back, once it has run."""
        ...


class Launcher(Protocol):
    """Runs plans, in the order in which they are launched."""

    def launch(self, plan: Plan) -> Pending:
        """Start a plan and return without waiting for it."""
        ...


@dataclass(frozen=True, slots=True)
class StepEvents:
    """What became known in one call of the step loop."""

    samples: tuple[tuple[str, Sample], ...]
    finished: tuple[RequestOutput, ...]


class StepLoop:
    """Queues requests as they arrive and steps until all have ended."""

    def __init__(
        self,
        config: InferenceConfig,
        limits: Limits,
        launcher: Launcher,
        eos_token_ids: frozenset[int],
        text_stream: Callable[[], TextStream] | None = None,
    ) -> None:
        """Start empty, with counters at zero; requests with stop strings each need a `text_stream`."""
        self._records_routing = config.moe_enable_routing_replay
        self.counters = Counters.of_routing() if self._records_routing else Counters()
        self.timing = Timing()
        self.trace = ScheduleTrace()
        self.scheduler = Scheduler(config)
        self._asynchronous = config.async_sched_mode == "async"
        self._depth = DEPTH[config.async_sched_mode]
        self._limits = limits
        self._launcher = launcher
        self._eos_token_ids = eos_token_ids
        self._text_stream = text_stream
        self._clock = 0
        self._arrivals: list[tuple[int, int, Request]] = []  # a heap by arrival step, then by order of submission
        self._submissions = itertools.count()
        self._expected: set[str] = set()  # ids of the arrivals
        self._live: dict[str, RequestState] = {}
        self._in_flight: deque[tuple[Plan, Pending]] = deque()
        self._unreported: list[RequestOutput] = []

    @property
    def busy(self) -> bool:
        """Whether a step could still make anything known."""
        return bool(self._arrivals or self._live or self._in_flight or self._unreported)

    def submit(self, request: Request) -> None:
        """Take a request; one that can never run ends with an error in the next step.

        Raises:
            ValueError: if another request with the same id has not ended.
        """
        if request.request_id in self._live or request.request_id in self._expected:
            raise ValueError(f"request id {request.request_id!r} is in use; ids of live requests are unique")
        self._expected.add(request.request_id)
        heapq.heappush(self._arrivals, (request.arrival_step, next(self._submissions), request))

    def cancel(self, request_id: str) -> None:
        """End a live or expected request with what it has generated; an id that is not live is ignored."""
        if (state := self._live.get(request_id)) is not None:
            self.scheduler.cancel(state)
            self._end(state)
        elif request_id in self._expected:
            self._expected.remove(request_id)
            position = next(i for i, (*_, request) in enumerate(self._arrivals) if request.request_id == request_id)
            *_, request = self._arrivals.pop(position)
            heapq.heapify(self._arrivals)
            self._report(RequestOutput.cancelled(request))

    def step(self) -> StepEvents:
        """Launch what can be launched, resolve what is due, and return what became known."""
        started = time.perf_counter()
        self._queue_arrivals()
        evictions = self.scheduler.preemption_count
        plan = self.scheduler.plan()
        if plan is not None:
            self._in_flight.append((plan, self._launcher.launch(plan)))
            self.trace.add(self._clock - 1, plan)
        resolved: Plan | None = None
        samples: tuple[tuple[str, Sample], ...] = ()
        if self._in_flight and (plan is None or len(self._in_flight) > self._depth):
            resolved, pending = self._in_flight.popleft()
            samples = self._resolve(resolved, pending.wait())
        elif plan is None and self.scheduler.preemption_count == evictions and (lost := self.scheduler.give_up()):
            self._end(lost)
        finished = tuple(self._unreported)
        self._unreported.clear()
        self._count(plan, resolved, finished)
        seconds = time.perf_counter() - started
        self.timing.add_step(seconds, resolved=resolved is not None, has_prefill=plan is not None and plan.has_prefill)
        return StepEvents(samples=samples, finished=finished)

    def _queue_arrivals(self) -> None:
        while self._arrivals and self._arrivals[0][0] <= self._clock:
            *_, request = heapq.heappop(self._arrivals)
            self._expected.remove(request.request_id)
            reason = self._limits.refusal(request)
            if reason is None:
                state = self._start(request)
                self._live[request.request_id] = state
                self.scheduler.add(state)
            else:
                self._report(RequestOutput.failed(request, reason))
        self._clock += 1

    def _start(self, request: Request) -> RequestState:
        text_stream = self._text_stream() if self._text_stream and request.sampling.stop_strings else None
        state = RequestState.start(request, self._eos_token_ids, text_stream)
        if self._records_routing:
            state.routing = []
        return state

    def _resolve(self, plan: Plan, output: StepOutput) -> tuple[tuple[str, Sample], ...]:
        samples = []
        prompt_logprobs = iter(output.prompt_logprobs)
        self.counters.padded_row_count += output.padded_row_count
        routing = output.routing or ((),) * len(plan.rows)
        for row, sample, experts in zip(plan.rows, output.samples, routing, strict=True):
            state = row.state
            state.prompt_logprobs.extend(itertools.islice(prompt_logprobs, len(row.scored_token_ids)))
            if self._records_routing and not state.finished:
                state.record_routing(row.start, experts)
            if state.finished:
                self.counters.dropped_row_count += 1
            elif row.samples:
                samples.append((state.request.request_id, sample))
                self.timing.generated_token_count += 1
                if state.accept(sample) or self._is_outgrown(state):
                    self._end(state)
            elif row.is_last:
                state.complete_without_tokens()
                self._end(state)
            self.scheduler.resolved(state)
        return tuple(samples)

    def _is_outgrown(self, state: RequestState) -> bool:
        state.error = self._limits.outgrown(state.request, len(state.token_ids))
        if state.error is not None:
            state.finish_reason = FinishReason.ERROR
        return state.finished

    def _end(self, state: RequestState) -> None:
        del self._live[state.request.request_id]
        self._report(state.output())

    def _report(self, output: RequestOutput) -> None:
        if self._records_routing:
            rows = output.routing_indices or ()
            output = dataclasses.replace(output, routing_indices=rows)
            self.counters.add_routing(len(rows), replayed=self._limits.recording is not None)
        self._unreported.append(output)

    def _count(self, plan: Plan | None, resolved: Plan | None, finished: tuple[RequestOutput, ...]) -> None:
        counters, scheduler = self.counters, self.scheduler
        counters.step_count += plan is not None or resolved is not None
        if plan is not None:
            counters.prefill_step_count += plan.has_prefill
            counters.decode_step_count += not plan.has_prefill
            counters.chunked_prefill_step_count += plan.has_chunk
            counters.lifetime_prefill_token_count += plan.prefill_token_count
        if self._asynchronous:
            counters.async_sched_step_count += resolved is not None
            counters.primer_step_count += plan is not None and resolved is None
            counters.async_sched_compaction_step_count += resolved is not None and any(
                output.finish_reason in {FinishReason.STOP, FinishReason.LENGTH} for output in finished
            )
        counters.preemption_count = scheduler.preemption_count
        counters.evicted_block_count = scheduler.evicted_block_count
        counters.paused_request_count_peak = scheduler.paused_request_count_peak
        counters.kv_blocks_peak = scheduler.pool.peak_in_use
