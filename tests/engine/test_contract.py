"""The determinism contract, line by line and bit by bit, on the shipped models, dense and with experts.

A token's bits depend on the weights, the dtype, the request's own tokens and seed, and the environment, and on nothing
else. The requests choose and record tokens in every way there is.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.config import InferenceConfig
from engine.counters import Counters
from engine.engine import Engine
from engine.request import Request, RequestOutput, SamplingParams

MODELS = Path(__file__).parents[2] / "fixtures" / "models"
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
# Every way of choosing tokens and everything that is recorded; greedy rows stand among drawn ones.
SAMPLING: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 1.0, "seed": 5, "prompt_logprobs": True},
    {"temperature": 1.4, "top_p": 0.8, "top_n": 3},
    {"prompt_logprobs": True, "top_n": 5},
    {"temperature": 0.8, "top_k": 20, "min_p": 0.01, "seed": 5},
    {"temperature": 2.0, "top_k": 5, "top_p": 0.6},
    {"max_new_tokens": 0, "prompt_logprobs": True},
    {"stop_strings": ("s ", ". T", "e a"), "temperature": 0.7, "seed": 1},
    {"temperature": 3.0, "seed": 2, "prompt_logprobs": True},
)
Bits = dict[str, dict[str, Any]]


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


def bits(output: RequestOutput) -> dict[str, Any]:
    assert output.error is None
    assert output.generated_logprobs is not None
    return {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}


@pytest.fixture(scope="module", params=itertools.product(("llama", "moe"), ("fp32", "bf16")), ids="-".join)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    kind, dtype = request.param
    engine = Engine.load(MODELS / f"storyteller-{kind}-1m", InferenceConfig(dtype=dtype, num_threads=1))
    yield Subject(engine)
    engine.close()


@pytest.fixture(scope="module")
def requests(subject: Subject) -> list[Request]:
    common = {"max_new_tokens": 24, "ignore_eos": True, "logprobs": True}
    encode: Callable[[str], list[int]] = subject.engine.tokenizer.encode
    prompts = [tuple(encode(prompt)) for prompt in PROMPTS]
    prompts.append(tuple(7 + 31 * place % 2000 for place in range(310)))
    sampling = [SamplingParams(**common | own) for own in SAMPLING]
    return [Request(str(index), *both) for index, both in enumerate(zip(prompts, sampling, strict=True))]


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
