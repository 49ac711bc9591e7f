from __future__ import annotations

from typing import Any

import pytest

from engine.config import ConfigError
from engine.request import (
    FinishReason,
    Request,
    RequestOutput,
    RequestState,
    Sample,
    SamplingParams,
    sampling_parameters,
)
from tests.engine.simulated_device import Letters


def token(token_id: int) -> Sample:
    return Sample(token_id=token_id, logprob=-1.0, margin=1.0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"temperature": -0.1}, "sampling temperature: -0.1 is below its minimum 0"),
        ({"temperature": float("nan")}, "sampling temperature: nan is not a finite number"),
        ({"temperature": float("inf")}, "sampling temperature: inf is above its maximum 1000"),
        ({"temperature": "1"}, "sampling temperature: '1' is a str, but it takes a number"),
        ({"temperature": True}, "sampling temperature: True is a bool"),
        ({"top_k": -1}, "sampling top_k: -1 is below its minimum 0"),
        ({"top_k": 2.0}, "sampling top_k: 2.0 is a float, but it takes a whole number"),
        ({"top_p": 0.0}, "sampling top_p: 0.0 is not above 0; take a greater number"),
        ({"top_p": 1.01}, "sampling top_p: 1.01 is above its maximum 1"),
        ({"min_p": 1.01}, "sampling min_p: 1.01 is above its maximum 1"),
        ({"seed": -1}, "sampling seed: -1 is below its minimum 0"),
        ({"seed": 1 << 63}, "sampling seed: 9223372036854775808 is above its maximum"),
        ({"max_new_tokens": -1}, "sampling max_new_tokens: -1 is below its minimum 0"),
        ({"top_n": 1001}, "sampling top_n: 1001 is above its maximum 1000"),
        ({"logprobs": 1}, "sampling logprobs: 1 is a int, but it takes true or false"),
        ({"stop_token_ids": frozenset({-1})}, "sampling stop_token_ids: -1 is no token id"),
        ({"stop_token_ids": [1]}, "sampling stop_token_ids: [1] is a list; give it as a frozenset"),
        ({"stop_strings": "end"}, "sampling stop_strings: 'end' is a str; give it as a tuple"),
        ({"stop_strings": ("",)}, "sampling stop_strings: '' is not a text that could occur; leave it out"),
        ({"stop_strings": (3,)}, "sampling stop_strings: 3 is not a text"),
    ],
)
def test_a_wrong_value_is_named_with_its_reason(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        SamplingParams(**values)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "values",
    [
        {"max_new_tokens": 0, "temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 0, "top_n": 0},
        {"temperature": 1000, "top_k": (1 << 31) - 1, "top_p": 1e-9, "min_p": 1.0, "seed": (1 << 63) - 1},
    ],
)
def test_the_ends_of_each_range_are_allowed(values: dict[str, Any]) -> None:
    SamplingParams(**values)


def test_every_parameter_that_holds_one_value_is_described() -> None:
    assert sampling_parameters().keys() == SamplingParams.__dataclass_fields__.keys() - {
        "stop_token_ids",
        "stop_strings",
    }


def test_a_request_without_a_seed_has_one_of_its_prompt() -> None:
    first, second = Request("0", (1, 2)), Request("1", (1, 2), SamplingParams(temperature=0.5))
    assert first.seed == second.seed == 8902715409692478996
    assert Request("0", (12,)).seed != first.seed
    assert Request("0", (1, 2), SamplingParams(seed=0)).seed == 0


def test_a_stop_string_ends_a_request_and_the_token_that_completes_it_is_kept() -> None:
    sampling = SamplingParams(max_new_tokens=9, stop_strings=("ca",))
    state = RequestState.start(Request("0", (1,), sampling), frozenset(), Letters())
    # "bca" and "bda" are written by no single token: the string begins in one and ends in the next.
    ids = [17, 10, 8]
    for token_id in ids[:-1]:
        state.promised += 1
        assert not state.accept(token(token_id))
    state.promised += 1
    assert state.accept(token(ids[-1]))
    output = state.output()
    assert output.finish_reason is FinishReason.STOP
    assert output.generated_token_ids == tuple(ids)
    assert output.stop_string_at == 2


def test_a_stop_string_that_the_last_token_completes_is_a_stop() -> None:
    state = RequestState.start(
        Request("0", (1,), SamplingParams(max_new_tokens=1, stop_strings=("a",))), frozenset(), Letters()
    )
    state.promised = 1
    assert state.accept(token(8))
    assert state.finish_reason is FinishReason.STOP


def test_a_refused_request_has_an_empty_list_of_what_it_asked_for_and_nothing_else() -> None:
    asking = SamplingParams(logprobs=True, prompt_logprobs=True, top_n=2)
    refused = RequestOutput.failed(Request("0", (), asking), "it is empty")
    assert (refused.generated_logprobs, refused.prompt_logprobs, refused.top_n_logprobs) == ((), (), ())
    silent = RequestOutput.failed(Request("0", ()), "it is empty")
    assert (silent.generated_logprobs, silent.prompt_logprobs, silent.top_n_logprobs) == (None, None, None)
