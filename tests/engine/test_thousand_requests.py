"""A thousand requests of every kind against a cache that holds a twentieth of them: each ends as its lone run does."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from engine.config import InferenceConfig
from engine.engine import Engine
from engine.request import FinishReason, Request, RequestOutput, SamplingParams

MODELS = Path(__file__).parents[2] / "fixtures" / "models"
COUNT = 1000
BLOCK_SIZE = 1  # so that every token needs a block, and a full cache evicts
SEED = 20250211


def dice() -> random.Random:
    return random.Random(SEED)  # noqa: S311 - a test's, not a secret's


def random_requests(chance: random.Random) -> list[Request]:
    def sampling() -> SamplingParams:
        is_long = chance.random() < 0.1  # these fill the cache while the others come and go
        return SamplingParams(
            max_new_tokens=50 if is_long else chance.choice([0, 1, 2, 4]),
            temperature=chance.choice([0.0, 0.7, 1.0, 3.0]),
            top_k=chance.choice([0, 0, 1, 40]),
            top_p=chance.choice([1.0, 0.9, 0.4]),
            min_p=chance.choice([0.0, 0.0, 0.05]),
            seed=chance.choice([None, 1, 1 << 62]),
            stop_strings=() if is_long else chance.choice([(), (), ("ed a", ". "), ("e",)]),
            ignore_eos=is_long or chance.random() < 0.5,
            logprobs=True,
            prompt_logprobs=chance.random() < 0.3,
            top_n=chance.choice([0, 0, 0, 4]),
        )

    return [
        Request(
            str(index),
            tuple(chance.randrange(2048) for _ in range(chance.choice([1, 2, 5, 12, 30]))),
            sampling(),
            arrival_step=chance.randrange(COUNT // 25),
        )
        for index in range(COUNT)
    ]


@dataclasses.dataclass(frozen=True)
class Subject:
    engine: Engine
    requests: list[Request]
    lone: dict[str, RequestOutput]


@pytest.fixture(scope="module", params=["llama", "moe"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    config = InferenceConfig(num_threads=1, async_sched_mode="legacy")
    engine = Engine.load(MODELS / f"storyteller-{request.param}-1m", config)
    requests = random_requests(dice())
    alone = (engine.generate([dataclasses.replace(each, arrival_step=0)])[0] for each in requests)
    yield Subject(engine, requests, {output.request_id: output for output in alone})
    engine.close()


def run(engine: Engine, requests: list[Request], cancelled: dict[int, str]) -> dict[str, RequestOutput]:
    outputs: dict[str, RequestOutput] = {}
    for step, events in enumerate(engine.stream(requests)):
        for output in events.finished:
            assert output.request_id not in outputs, "a request ends once"
            outputs[output.request_id] = output
        if step in cancelled:
            engine._loop.cancel(cancelled[step])
    return outputs


def assert_beginning(part: RequestOutput, whole: RequestOutput) -> None:
    for name in ("generated_token_ids", "generated_logprobs", "margins", "prompt_logprobs", "top_n_logprobs"):
        values, expected = getattr(part, name), getattr(whole, name)
        assert values == (expected if values is None else expected[: len(values)])


@pytest.mark.slow
def test_each_ends_as_its_lone_run_does_in_both_modes_and_the_cache_is_whole_afterwards(subject: Subject) -> None:
    assert_as_alone(subject, "async")
    assert_as_alone(subject, "legacy")


def assert_as_alone(subject: Subject, mode: Literal["async", "legacy"]) -> None:
    lengths = (len(each.prompt_token_ids) + each.sampling.max_new_tokens for each in subject.requests)
    blocks = sum(-(-length // BLOCK_SIZE) for length in lengths) // 20
    config = dataclasses.replace(
        subject.engine.config,
        async_sched_mode=mode,
        enable_chunked_prefill=True,
        num_blocks=blocks,
        block_size_tokens=BLOCK_SIZE,
        max_tokens=128,
    )
    engine = subject.engine.with_config(config)
    chance = dice()
    cancelled = {step: str(chance.randrange(COUNT)) for step in range(0, 120, 3)}
    outputs = run(engine, subject.requests, cancelled)
    counters, pool = engine.counters, engine._loop.scheduler.pool
    engine.close()
    assert outputs.keys() == subject.lone.keys()
    ended_by_hand = {name for name, output in outputs.items() if output.finish_reason is FinishReason.CANCELLED}
    assert ended_by_hand
    assert ended_by_hand <= set(cancelled.values())
    for name, output in outputs.items():
        if name in ended_by_hand:
            assert_beginning(output, subject.lone[name])
        else:
            assert output == subject.lone[name]
    assert counters.preemption_count > 0
    assert counters.chunked_prefill_step_count > 0
    assert (counters.dropped_row_count > 0) or mode == "legacy"
    assert sorted(pool.take(pool.num_blocks)) == list(range(1, pool.num_blocks + 1))
