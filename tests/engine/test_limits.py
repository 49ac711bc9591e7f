from __future__ import annotations

import pytest

from engine.config import InferenceConfig
from engine.limits import Limits
from engine.request import Request, SamplingParams


def limits(**values: int | bool) -> Limits:
    return Limits.of(InferenceConfig.from_mapping(values), vocab_size=100, max_position_embeddings=64)


def request(prompt: int, new: int, token: int = 1) -> Request:
    return Request("0", (token,) * prompt, SamplingParams(max_new_tokens=new))


@pytest.mark.parametrize(
    ("subject", "asked", "words"),
    [
        (limits(), request(0, 4), "the prompt is empty"),
        (limits(), request(3, 4, token=100), "token id 100 is outside the vocabulary of 100"),
        (limits(), request(3, 4, token=-1), "token id -1"),
        (limits(), Request("0", (1,), SamplingParams(top_n=101)), "top_n is 101, but the vocabulary has 100 tokens"),
        (limits(), request(60, 5), "over max_sequence_length 64"),
        (limits(max_sequence_length=16), request(12, 5), "over max_sequence_length 16"),
        (limits(max_sequence_length=500), request(60, 5), "over max_sequence_length 64"),
        (limits(max_tokens=8), request(9, 4), "set enable_chunked_prefill"),
        (limits(num_blocks=1, block_size_tokens=8), request(5, 5), "needs 2 KV blocks, but num_blocks is 1"),
        (limits(num_blocks=1, block_size_tokens=8), request(9, 0), "needs 2 KV blocks, but num_blocks is 1"),
    ],
)
def test_a_request_that_can_never_run_is_refused_with_its_reason(subject: Limits, asked: Request, words: str) -> None:
    assert words in (subject.refusal(asked) or "")


@pytest.mark.parametrize(
    ("subject", "asked"),
    [
        (limits(), request(60, 4)),
        (limits(max_tokens=8), request(8, 4)),
        (limits(max_tokens=8, enable_chunked_prefill=True), request(9, 4)),
        (limits(num_blocks=1, block_size_tokens=8), request(5, 4)),
        (limits(num_blocks=1, block_size_tokens=8), request(8, 0)),
        (limits(), request(64, 0)),
        (limits(), Request("0", (1,), SamplingParams(1, top_n=100))),
        (limits(), request(1, 1, token=0)),
        (limits(), request(1, 1, token=99)),
    ],
)
def test_a_request_that_fits_exactly_is_taken(subject: Limits, asked: Request) -> None:
    assert subject.refusal(asked) is None
