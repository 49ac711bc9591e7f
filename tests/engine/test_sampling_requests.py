"""Sampling through the whole engine on the shipped model: what a request asks for is what it gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.config import InferenceConfig
from engine.engine import Engine
from engine.request import FinishReason, Request, RequestOutput, SamplingParams

MODEL = Path(__file__).parents[2] / "fixtures" / "models" / "storyteller-llama-1m"
STORY = "Once upon a time there lived a person called"


@pytest.fixture(scope="module", params=["async", "legacy"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    subject = Engine.load(MODEL, InferenceConfig(async_sched_mode=request.param, num_threads=1))
    yield subject
    subject.close()


def ask(engine: Engine, *parameters: dict[str, Any], prompt: str = STORY) -> list[RequestOutput]:
    """The outputs of one prompt under several parameters, in one batch."""
    token_ids = tuple(engine.tokenizer.encode(prompt))
    common = {"max_new_tokens": 24, "ignore_eos": True}
    return engine.generate(
        [Request(str(index), token_ids, SamplingParams(**common | own)) for index, own in enumerate(parameters)]
    )


def test_seeds_decide_what_is_drawn_and_nothing_else_does(engine: Engine) -> None:
    first, second, again, greedy, low = ask(
        engine,
        {"temperature": 1.0, "seed": 1},
        {"temperature": 1.0, "seed": 2},
        {"temperature": 1.0, "seed": 1},
        {},
        {"temperature": 0.0, "seed": 1, "top_k": 3},
    )
    assert first.generated_token_ids == again.generated_token_ids
    assert len({output.generated_token_ids for output in (first, second, greedy)}) == 3
    assert low.generated_token_ids == greedy.generated_token_ids


def test_without_a_seed_each_prompt_has_its_own_and_keeps_it(engine: Engine) -> None:
    (first,), (again,) = ask(engine, {"temperature": 1.0}), ask(engine, {"temperature": 1.0})
    assert first.generated_token_ids == again.generated_token_ids
    (seeded,) = ask(engine, {"temperature": 1.0, "seed": Request("0", first.prompt_token_ids).seed})
    assert seeded.generated_token_ids == first.generated_token_ids


def test_drawn_tokens_lie_among_the_best_k(engine: Engine) -> None:
    (output,) = ask(engine, {"temperature": 4.0, "top_k": 3, "top_n": 3, "logprobs": True, "seed": 9})
    assert output.top_n_logprobs is not None
    ranks = [
        [token.token_id for token in top].index(token_id)
        for token_id, top in zip(output.generated_token_ids, output.top_n_logprobs, strict=True)
    ]
    assert set(ranks) == {0, 1, 2}
    logprobs = [top[rank].logprob for rank, top in zip(ranks, output.top_n_logprobs, strict=True)]
    assert logprobs == list(output.generated_logprobs or ())


def test_top_n_is_what_each_request_asks_for(engine: Engine) -> None:
    few, many, none = ask(engine, {"top_n": 2}, {"top_n": 7}, {})
    assert few.top_n_logprobs is not None
    assert many.top_n_logprobs is not None
    assert none.top_n_logprobs is None
    assert [len(top) for top in many.top_n_logprobs] == [7] * 24
    assert few.top_n_logprobs == tuple(top[:2] for top in many.top_n_logprobs)
    assert [top[0].token_id for top in few.top_n_logprobs] == list(few.generated_token_ids)


def test_margins_are_those_of_the_logits_whatever_is_drawn(engine: Engine) -> None:
    drawn, scored = ask(engine, {"temperature": 1.0, "seed": 3, "top_n": 2}, {"max_new_tokens": 0})
    assert drawn.top_n_logprobs is not None
    for margin, (best, second) in zip(drawn.margins, drawn.top_n_logprobs, strict=True):
        assert margin == pytest.approx(best.logprob - second.logprob, abs=1e-4)
    assert scored.margins == ()


def test_prompt_logprobs_are_those_of_generating_the_same_tokens(engine: Engine) -> None:
    (output,) = ask(engine, {"logprobs": True})
    whole = output.prompt_token_ids + output.generated_token_ids
    sampling = SamplingParams(max_new_tokens=0, prompt_logprobs=True)
    (scored,) = engine.generate([Request("0", whole, sampling)])
    assert scored.prompt_logprobs is not None
    assert len(scored.prompt_logprobs) == len(whole) - 1
    assert scored.prompt_logprobs[len(output.prompt_token_ids) - 1 :] == output.generated_logprobs
    assert (scored.generated_token_ids, scored.generated_text) == ((), "")
    assert scored.finish_reason is FinishReason.LENGTH


def test_prompts_are_scored_alike_in_slices_of_any_length(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"max_new_tokens": 1, "prompt_logprobs": True}
    prompt = STORY * 20
    (whole,) = ask(engine, asked, prompt=prompt)
    for rows in (1, 7, 64):
        monkeypatch.setattr("engine.runner._SCORED_AT_A_TIME", 2048 * rows)
        assert ask(engine, asked, prompt=prompt) == [whole]


def test_a_prompt_of_one_token_has_nothing_to_score(engine: Engine) -> None:
    sampling = SamplingParams(max_new_tokens=2, prompt_logprobs=True)
    (output,) = engine.generate([Request("0", (5,), sampling)])
    assert output.prompt_logprobs == ()


@pytest.mark.parametrize(
    ("stop", "is_one_token"), [("ora, a mill", False), (" Nora", True), ("r from L", False), (". She", False)]
)
def test_a_stop_string_ends_the_text_before_it_and_keeps_its_last_token(
    engine: Engine, stop: str, is_one_token: bool
) -> None:
    (free,), (stopped,) = ask(engine, {}), ask(engine, {"stop_strings": ("never", stop)})
    assert stop in free.generated_text
    assert (len(engine.tokenizer.encode(stop)) == 1) is is_one_token
    count = len(stopped.generated_token_ids)
    assert stopped.finish_reason is FinishReason.STOP
    assert stopped.generated_token_ids == free.generated_token_ids[:count]
    assert stopped.generated_text == free.generated_text[: free.generated_text.index(stop)]
    assert stop in engine.tokenizer.decode(free.generated_token_ids[:count])
    assert stop not in engine.tokenizer.decode(free.generated_token_ids[: count - 1])


def test_a_stop_string_that_the_prompt_ends_with_is_not_looked_for_there(engine: Engine) -> None:
    (output,) = ask(engine, {"stop_strings": ("called Nora",)})
    assert output.generated_text.startswith(" Nora,")
    assert output.finish_reason is FinishReason.LENGTH
