"""The determinism contract, line by line and bit by bit, on the shipped model.

A token's bits depend on the weights, the dtype, the request's own tokens and the environment, and on nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.config import InferenceConfig
from engine.counters import Counters
from engine.engine import Engine
from engine.request import Request, RequestOutput, SamplingParams

MODEL = Path(__file__).parents[2] / "fixtures" / "models" / "storyteller-llama-1m"
PROMPTS = (
    "Once upon a time",
    "In Fenn there lived a baker who",
    "Dear Mira, yesterday I walked to the river and saw a heron. It stood so still that",
    "How to make soup",
    "Six sums: 4 + 5 =",
    "A note about the owl.",
    "The capital of France is",
    "Zoë",
)
Bits = dict[str, tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]]


@dataclasses.dataclass(frozen=True)
class Subject:
    """One set of weights, run under any settings."""

    engine: Engine

    def run(self, requests: list[Request], **settings: Any) -> tuple[Bits, Counters]:
        engine = self.engine.with_config(dataclasses.replace(self.engine.config, **settings))
        try:
            outputs = engine.generate(requests)
            return {output.request_id: bits(output) for output in outputs}, engine.counters
        finally:
            engine.close()


def bits(output: RequestOutput) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
    assert output.error is None
    assert output.generated_logprobs is not None
    return output.generated_token_ids, output.generated_logprobs, output.margins


@pytest.fixture(scope="module", params=["fp32", "bf16"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    engine = Engine.load(MODEL, InferenceConfig(dtype=request.param, num_threads=1))
    yield Subject(engine)
    engine.close()


@pytest.fixture(scope="module")
def requests(subject: Subject) -> list[Request]:
    sampling = SamplingParams(max_new_tokens=24, ignore_eos=True, logprobs=True)
    encode: Callable[[str], list[int]] = subject.engine.tokenizer.encode
    prompts = [tuple(encode(prompt)) for prompt in PROMPTS]
    prompts.append(tuple(7 + 31 * place % 2000 for place in range(310)))
    return [Request(str(index), prompt, sampling) for index, prompt in enumerate(prompts)]


@pytest.fixture(scope="module")
def undisturbed(subject: Subject, requests: list[Request]) -> Bits:
    """Every request alone, whole, in legacy mode."""
    alone: Bits = {}
    for request in requests:
        alone |= subject.run([request], async_sched_mode="legacy")[0]
    return alone


def test_alone_equals_batched(subject: Subject, requests: list[Request], undisturbed: Bits) -> None:
    assert subject.run(requests)[0] == undisturbed


def test_batched_equals_reordered_and_arriving_one_by_one(
    subject: Subject, requests: list[Request], undisturbed: Bits
) -> None:
    assert subject.run(requests[::-1])[0] == undisturbed
    late = [dataclasses.replace(request, arrival_step=3 * index) for index, request in enumerate(requests)]
    assert subject.run(late)[0] == undisturbed


def test_async_equals_legacy(subject: Subject, requests: list[Request]) -> None:
    asynchronous, async_counters = subject.run(requests, async_sched_mode="async")
    legacy, legacy_counters = subject.run(requests, async_sched_mode="legacy")
    assert asynchronous == legacy
    assert async_counters.async_sched_step_count > 0
    assert legacy_counters.async_sched_step_count == 0


@pytest.mark.parametrize("max_tokens", [10, 37, 128])
def test_chunked_equals_whole(subject: Subject, requests: list[Request], undisturbed: Bits, max_tokens: int) -> None:
    chunked, counters = subject.run(requests, enable_chunked_prefill=True, max_tokens=max_tokens)
    assert counters.chunked_prefill_step_count > 0
    assert chunked == undisturbed


@pytest.mark.parametrize("mode", ["async", "legacy"])
def test_evicted_and_recomputed_equals_undisturbed(
    subject: Subject, requests: list[Request], undisturbed: Bits, mode: str
) -> None:
    short = requests[:-1]
    pressed, counters = subject.run(short, num_blocks=12, block_size_tokens=8, async_sched_mode=mode)
    assert counters.preemption_count > 0
    assert counters.paused_request_count_peak > 0
    assert pressed == {request.request_id: undisturbed[request.request_id] for request in short}


@pytest.mark.parametrize("block_size_tokens", [1, 8, 256])
def test_the_layout_of_the_cache_changes_nothing(
    subject: Subject, requests: list[Request], undisturbed: Bits, block_size_tokens: int
) -> None:
    assert subject.run(requests, block_size_tokens=block_size_tokens)[0] == undisturbed


@pytest.mark.parametrize("num_threads", [2, 3, 4])
def test_one_thread_equals_several(
    subject: Subject, requests: list[Request], undisturbed: Bits, num_threads: int
) -> None:
    assert subject.run(requests, num_threads=num_threads)[0] == undisturbed


def test_a_second_run_of_the_same_engine_equals_the_first(subject: Subject, requests: list[Request]) -> None:
    first = [bits(output) for output in subject.engine.generate(requests)]
    assert [bits(output) for output in subject.engine.generate(requests)] == first
