from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import InferenceConfig
from engine.limits import Limits
from engine.loop import StepLoop
from engine.request import FinishReason, Request, RequestOutput, SamplingParams
from tests.engine.simulated_device import EOS, VOCAB_SIZE, Letters, SimulatedDevice, lone_run, score_after, text_of

MAX_LENGTH = 96


@dataclass(frozen=True)
class Workload:
    config: InferenceConfig
    requests: tuple[Request, ...]
    cancellations: dict[int, str] = field(default_factory=dict)


@dataclass
class Run:
    loop: StepLoop
    device: SimulatedDevice
    outputs: dict[str, RequestOutput]


def run(workload: Workload, mode: Literal["async", "legacy"]) -> Run:
    config = replace(workload.config, async_sched_mode=mode)
    device = SimulatedDevice(config)
    limits = Limits.of(config, vocab_size=VOCAB_SIZE, max_position_embeddings=MAX_LENGTH)
    loop = StepLoop(config, limits, device, frozenset({EOS}), Letters)
    for request in workload.requests:
        loop.submit(request)
    outputs: dict[str, RequestOutput] = {}
    # Every call computes a token, evicts once, or waits for an arrival; recomputation after evictions is the reserve.
    bound = 200 + 40 * sum(len(r.prompt_token_ids) + r.sampling.max_new_tokens for r in workload.requests)
    for call in range(bound):
        if not loop.busy:
            break
        if call in workload.cancellations:
            loop.cancel(workload.cancellations[call])
        for output in loop.step().finished:
            assert output.request_id not in outputs, "a request ends once"
            outputs[output.request_id] = output
    assert not loop.busy, "every request ends"
    return Run(loop, device, outputs)


# Seed of the prompt, its length, new tokens, arrival step, whether it has a stop token, whether it ignores the end.
REQUEST = st.tuples(
    st.integers(0, 200), st.integers(0, 40), st.integers(0, 24), st.integers(0, 12), st.booleans(), st.booleans()
)
REQUESTS = st.lists(REQUEST, min_size=1, max_size=10)


STOP_STRINGS: tuple[tuple[str, ...], ...] = ((), (), ("cab",), ("abab", "dd"), ("bca", "ca", "abda"))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    config = InferenceConfig(
        max_tokens=draw(st.integers(2, 48)),
        max_requests=draw(st.integers(1, 6)),
        block_size_tokens=draw(st.sampled_from([1, 2, 4, 8])),
        num_blocks=draw(st.integers(1, 24)),
        enable_chunked_prefill=draw(st.booleans()),
    )
    requests = tuple(
        Request(
            request_id=str(index),
            prompt_token_ids=tuple((seed + place * place) % (VOCAB_SIZE + (seed == 0)) for place in range(length)),
            sampling=SamplingParams(
                max_new_tokens=new_tokens,
                stop_token_ids=frozenset({seed % VOCAB_SIZE} if stops else ()),
                ignore_eos=ignore_eos,
                stop_strings=STOP_STRINGS[seed % len(STOP_STRINGS)],
                logprobs=index % 2 == 0,
                prompt_logprobs=index % 3 == 0,
            ),
            arrival_step=arrival_step,
        )
        for index, (seed, length, new_tokens, arrival_step, stops, ignore_eos) in enumerate(draw(REQUESTS))
    )
    calls = draw(st.lists(st.integers(0, 40), max_size=3, unique=True))
    return Workload(config, requests, {call: str(draw(st.integers(0, len(requests) - 1))) for call in calls})


def prompt_scores(request: Request) -> tuple[float, ...]:
    prompt = request.prompt_token_ids
    return tuple(score_after(prompt[:end], prompt[end]) for end in range(1, len(prompt)))


def first_stop_string(output: RequestOutput, request: Request) -> int | None:
    text = "".join(map(text_of, output.generated_token_ids))
    return min((text.find(stop) for stop in request.sampling.stop_strings if stop in text), default=None)


def ended_early(output: RequestOutput, request: Request) -> bool:
    ends = request.sampling.stop_token_ids | (set() if request.sampling.ignore_eos else {EOS})
    return output.stop_string_at is not None or bool(ends & set(output.generated_token_ids[-1:]))


def assert_whole(run: Run) -> None:
    scheduler = run.loop.scheduler
    assert scheduler.pool.num_free == run.loop.scheduler.pool.num_blocks, "no block is lost"
    assert sorted(scheduler.pool.take(scheduler.pool.num_blocks)) == list(range(1, scheduler.pool.num_blocks + 1))
    assert run.device.executed == len(run.device.launched), "every launched plan was resolved"


def assert_counters(run: Run, mode: str) -> None:
    counters = run.loop.counters
    plans = run.device.launched
    assert counters.prefill_step_count + counters.decode_step_count == len(plans)
    assert counters.lifetime_prefill_token_count == sum(plan.prefill_token_count for plan in plans)
    if mode == "async":
        assert counters.async_sched_step_count == len(plans), "each forward is resolved by one async step"
        assert counters.step_count == counters.async_sched_step_count + counters.primer_step_count
    else:
        assert counters.step_count == len(plans)
        assert counters.async_sched_step_count == counters.primer_step_count == 0
        assert counters.async_sched_compaction_step_count == 0
        assert counters.dropped_row_count == 0
    assert (counters.preemption_count == 0) == (counters.evicted_block_count == 0)


@settings(max_examples=3000, deadline=None)
@given(workloads())
def test_every_request_ends_as_its_lone_run_does_in_both_modes_and_the_pool_is_whole(workload: Workload) -> None:
    cancelled = set(workload.cancellations.values())
    runs = {"async": run(workload, "async"), "legacy": run(workload, "legacy")}
    for mode, result in runs.items():
        assert result.outputs.keys() == {request.request_id for request in workload.requests}
        for request in workload.requests:
            output = result.outputs[request.request_id]
            if output.finish_reason is FinishReason.ERROR:
                assert output.error
                assert output.generated_token_ids == ()
                assert not output.prompt_logprobs
                continue
            lone = lone_run(request)
            count = len(output.generated_token_ids)
            assert output.generated_token_ids == tuple(sample.token_id for sample in lone[:count])
            assert output.margins == tuple(sample.margin for sample in lone[:count])
            if request.sampling.logprobs:
                assert output.generated_logprobs == tuple(sample.logprob for sample in lone[:count])
            scores = prompt_scores(request)
            if output.finish_reason is FinishReason.CANCELLED:
                assert request.request_id in cancelled
                assert output.prompt_logprobs is None or output.prompt_logprobs == scores[: len(output.prompt_logprobs)]
            else:
                assert count == len(lone)
                assert output.prompt_logprobs == (scores if request.sampling.prompt_logprobs else None)
                assert output.stop_string_at == first_stop_string(output, request)
                assert (output.finish_reason is FinishReason.STOP) == ended_early(output, request)
        assert_whole(result)
        assert_counters(result, mode)
    for request_id in runs["async"].outputs.keys() - cancelled:
        assert runs["async"].outputs[request_id] == runs["legacy"].outputs[request_id]


def test_a_request_that_waits_for_blocks_which_the_engine_lost_fails_alone() -> None:
    config = InferenceConfig(num_blocks=4, block_size_tokens=4)
    limits = Limits.of(config, vocab_size=VOCAB_SIZE, max_position_embeddings=MAX_LENGTH)
    loop = StepLoop(config, limits, SimulatedDevice(config), frozenset({EOS}))
    loop.scheduler.pool.take(2)
    for index, length in enumerate((12, 5)):
        loop.submit(Request(str(index), (1,) * length, SamplingParams(max_new_tokens=2, ignore_eos=True)))
    outputs = {output.request_id: output for _ in range(20) for output in loop.step().finished}
    assert not loop.busy
    assert "the engine has lost blocks" in (outputs["0"].error or "")
    assert outputs["1"].finish_reason is FinishReason.LENGTH


def test_ids_of_live_requests_are_unique_and_may_be_used_again_later() -> None:
    config = InferenceConfig()
    limits = Limits.of(config, vocab_size=VOCAB_SIZE, max_position_embeddings=MAX_LENGTH)
    loop = StepLoop(config, limits, SimulatedDevice(config), frozenset({EOS}))
    request = Request("a", (1, 2), SamplingParams(max_new_tokens=2), arrival_step=1)
    loop.submit(request)
    with pytest.raises(ValueError, match="'a' is in use"):
        loop.submit(request)
    while loop.busy:
        loop.step()
    loop.submit(request)
    assert loop.busy


def test_idle_calls_are_not_counted() -> None:
    result = run(Workload(InferenceConfig(), (Request("0", (1,), SamplingParams(1), arrival_step=5),)), "legacy")
    assert result.loop.counters.step_count == 1


def test_requests_that_are_due_at_a_step_are_queued_before_it_plans_in_order_of_submission() -> None:
    requests = tuple(
        Request(str(index), (1,), SamplingParams(max_new_tokens=3), arrival_step=step)
        for index, step in enumerate((1, 0, 1))
    )
    result = run(Workload(InferenceConfig(), requests), "legacy")
    ids = [[row.state.request.request_id for row in plan.rows] for plan in result.device.launched[:2]]
    assert ids == [["1"], ["1", "0", "2"]]


def test_a_request_that_was_cancelled_before_it_arrived_ends_without_tokens() -> None:
    request = Request("0", (1, 2), SamplingParams(max_new_tokens=2), arrival_step=3)
    result = run(Workload(InferenceConfig(), (request,), cancellations={1: "0"}), "async")
    assert result.outputs["0"].finish_reason is FinishReason.CANCELLED
    assert result.device.launched == []


def test_async_drops_the_row_that_was_launched_before_the_end_was_known() -> None:
    request = next(
        candidate
        for token in range(1, VOCAB_SIZE)
        if len(lone_run(candidate := Request("0", (token,), SamplingParams(max_new_tokens=50)))) in range(2, 40)
    )
    counters = run(Workload(InferenceConfig(), (request,)), "async").loop.counters
    assert counters.dropped_row_count == 1
    assert counters.async_sched_step_count == len(lone_run(request)) + 1


@pytest.mark.parametrize(("mode", "steps", "primers"), [("async", 2, 1), ("legacy", 1, 0)])
@pytest.mark.parametrize("scores", [True, False])
def test_a_request_of_no_new_tokens_ends_when_its_prompt_is_computed(
    mode: Literal["async", "legacy"], steps: int, primers: int, scores: bool
) -> None:
    sampling = SamplingParams(max_new_tokens=0, logprobs=True, prompt_logprobs=scores)
    request = Request("0", (5, 6, 7, 8), sampling)
    result = run(Workload(InferenceConfig(block_size_tokens=4, num_blocks=1), (request,)), mode)
    output, counters = result.outputs["0"], result.loop.counters
    assert (output.finish_reason, output.generated_token_ids, output.margins) == (FinishReason.LENGTH, (), ())
    assert output.generated_logprobs == ()
    assert output.prompt_logprobs == (prompt_scores(request) if scores else None)
    assert (counters.step_count, counters.primer_step_count) == (steps, primers)
    assert (counters.lifetime_prefill_token_count, counters.chunked_prefill_step_count) == (4, 0)
    assert (counters.dropped_row_count, counters.kv_blocks_peak) == (0, 1)
    assert result.loop.timing.generated_token_count == 0


def test_a_prompt_is_scored_once_although_it_is_computed_twice() -> None:
    config = InferenceConfig(num_blocks=5, block_size_tokens=4, max_tokens=8, enable_chunked_prefill=True)
    sampling = SamplingParams(max_new_tokens=8, ignore_eos=True, prompt_logprobs=True)
    requests = tuple(Request(str(index), tuple(range(1, 9)), sampling) for index in range(2))
    result = run(Workload(config, requests), "async")
    assert result.loop.counters.preemption_count > 0
    assert all(output.prompt_logprobs == prompt_scores(requests[0]) for output in result.outputs.values())
    scored = sum(len(row.scored_token_ids) for plan in result.device.launched for row in plan.rows)
    assert scored == 2 * 7


def test_an_end_by_stop_string_costs_async_one_row_that_is_dropped() -> None:
    request = next(
        candidate
        for token in range(1, VOCAB_SIZE)
        if lone_run(candidate := Request("0", (token,), SamplingParams(50, ignore_eos=True, stop_strings=("cab",))))
        and len(lone_run(candidate)) in range(2, 40)
    )
    runs = {mode: run(Workload(InferenceConfig(), (request,)), mode) for mode in ("async", "legacy")}
    assert runs["async"].outputs == runs["legacy"].outputs
    assert runs["async"].outputs["0"].finish_reason is FinishReason.STOP
    assert [result.loop.counters.dropped_row_count for result in runs.values()] == [1, 0]
