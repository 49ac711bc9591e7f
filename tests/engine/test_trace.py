from __future__ import annotations

from engine.config import InferenceConfig
from engine.limits import Limits
from engine.loop import StepLoop
from engine.request import Request, SamplingParams
from tests.engine.simulated_device import EOS, VOCAB_SIZE, Letters, SimulatedDevice


def traced(config: InferenceConfig, *requests: Request) -> list[tuple[int, list[tuple[str, int, int]]]]:
    """Run requests on a simulated device and return the plans that were traced."""
    limits = Limits.of(config, vocab_size=VOCAB_SIZE, max_position_embeddings=96)
    loop = StepLoop(config, limits, SimulatedDevice(config), frozenset({EOS}), Letters)
    for request in requests:
        loop.submit(request)
    while loop.busy:
        loop.step()
    return [(plan["step"], [tuple(row) for row in plan["rows"]]) for plan in loop.trace.as_json()]


def request(request_id: str, length: int, new: int, arrival_step: int = 0) -> Request:
    sampling = SamplingParams(max_new_tokens=new, ignore_eos=True)
    return Request(request_id, tuple(range(1, length + 1)), sampling, arrival_step=arrival_step)


def test_every_plan_is_kept_with_the_step_that_launched_it() -> None:
    config = InferenceConfig(async_sched_mode="legacy")
    assert traced(config, request("a", 4, 3), request("b", 5, 2, arrival_step=1)) == [
        (0, [("a", 0, 4)]),
        (1, [("a", 4, 1), ("b", 0, 5)]),
        (2, [("a", 5, 1), ("b", 5, 1)]),
    ]


def test_steps_are_those_that_requests_arrive_in_idle_ones_included() -> None:
    config = InferenceConfig(async_sched_mode="legacy")
    assert traced(config, request("a", 2, 1), request("b", 2, 1, arrival_step=5)) == [
        (0, [("a", 0, 2)]),
        (5, [("b", 0, 2)]),
    ]


def test_chunks_are_seen() -> None:
    config = InferenceConfig(async_sched_mode="async", enable_chunked_prefill=True, max_tokens=4)
    assert traced(config, request("a", 6, 2)) == [(0, [("a", 0, 4)]), (1, [("a", 4, 2)]), (2, [("a", 6, 1)])]


def test_what_an_eviction_makes_anew_is_seen_from_its_first_position() -> None:
    config = InferenceConfig(async_sched_mode="legacy", block_size_tokens=4, num_blocks=4)
    plans = traced(config, request("a", 4, 8), request("b", 4, 8))
    assert sum((key, start) == ("b", 0) for _, rows in plans for key, start, _ in rows) > 1


def test_every_position_of_an_output_was_computed() -> None:
    config = InferenceConfig(async_sched_mode="async", block_size_tokens=4, num_blocks=8, max_requests=3)
    plans = traced(config, *(request(str(index), 3 + index, 6) for index in range(5)))
    for index in range(5):
        computed = {
            position
            for _, rows in plans
            for key, start, count in rows
            if key == str(index)
            for position in range(start, start + count)
        }
        assert computed == set(range(3 + index + 6 - 1))
