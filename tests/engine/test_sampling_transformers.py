"""Filters, prompt log-probs and top-n against transformers, which knows nothing of this engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.generation import logits_process

from engine.config import InferenceConfig
from engine.engine import Engine
from engine.model import load_decoder
from engine.request import Request, SamplingParams
from engine.sampling import filter_thresholds
from engine.tokenizer import Tokenizer
from tests.engine.drawing import draws_of
from tests.engine.model.driving import random_ids
from tests.engine.model.test_transformers import CASES, save

MODEL = Path(__file__).parents[2] / "fixtures" / "models" / "storyteller-llama-1m"


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    "filters",
    [
        {"top_k": 1},
        {"top_k": 40},
        {"top_p": 0.5},
        {"top_p": 0.95},
        {"min_p": 0.02},
        {"top_k": 30, "top_p": 0.7},
        {"top_k": 200, "top_p": 0.9, "min_p": 0.05},
    ],
)
def test_the_filters_leave_what_those_of_transformers_leave(temperature: float, filters: dict[str, Any]) -> None:
    logits = 4 * torch.randn(30, 700, generator=torch.Generator().manual_seed(4))
    processors = logits_process.LogitsProcessorList([logits_process.TemperatureLogitsWarper(temperature)])
    if "top_k" in filters:
        processors.append(logits_process.TopKLogitsWarper(filters["top_k"]))
    if "top_p" in filters:
        processors.append(logits_process.TopPLogitsWarper(filters["top_p"]))
    if "min_p" in filters:
        processors.append(logits_process.MinPLogitsWarper(filters["min_p"]))
    expected = processors(torch.zeros(30, 1, dtype=torch.int64), logits.double()).isfinite()
    sampling = SamplingParams(temperature=temperature, **filters)
    thresholds = filter_thresholds(logits, draws_of([sampling] * 30, [0] * 30, [0] * 30))
    assert torch.equal(logits >= thresholds[:, None], expected)


def assert_logprobs_agree(oracle: Any, engine: Engine, prompts: list[list[int]]) -> None:
    sampling = SamplingParams(max_new_tokens=8, ignore_eos=True, logprobs=True, prompt_logprobs=True, top_n=6)
    outputs = engine.generate([Request(str(index), tuple(prompt), sampling) for index, prompt in enumerate(prompts)])
    for prompt, output in zip(prompts, outputs, strict=True):
        tokens = [*prompt, *output.generated_token_ids]
        with torch.inference_mode():
            expected = torch.log_softmax(oracle(torch.tensor([tokens])).logits[0], dim=-1)
        own = expected[torch.arange(len(tokens) - 1), tokens[1:]].tolist()
        assert output.prompt_logprobs is not None
        assert output.generated_logprobs is not None
        assert [*output.prompt_logprobs, *output.generated_logprobs] == pytest.approx(own, abs=1e-4)
        for position, top in enumerate(output.top_n_logprobs or (), start=len(prompt) - 1):
            best = expected[position].topk(6)
            assert [token.logprob for token in top] == pytest.approx(best.values.tolist(), abs=1e-4)
            for token in top:
                assert token.logprob == pytest.approx(expected[position, token.token_id].item(), abs=1e-4)


def test_logprobs_of_the_shipped_model_agree() -> None:
    oracle = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    engine = Engine.load(MODEL, InferenceConfig(num_threads=1, enable_chunked_prefill=True, max_tokens=32))
    texts = ("Once upon a time", "The capital of France is", "Zoë was a farmer in Winterton. " * 6)
    assert_logprobs_agree(oracle, engine, [engine.tokenizer.encode(text) for text in texts])
    engine.close()


@pytest.mark.parametrize(
    "case", ["llama grouped by 2", "llama with biases", "qwen2", "qwen3 grouped by 2", "mixtral", "qwen3_moe"]
)
def test_logprobs_of_random_checkpoints_agree(case: str, tmp_path: Path) -> None:
    oracle = save(tmp_path, *CASES[case])
    decoder = load_decoder(tmp_path, dtype=torch.float32, device=torch.device("cpu"))
    config = InferenceConfig(num_threads=1, num_blocks=64, enable_chunked_prefill=True, max_tokens=16)
    engine = Engine(decoder, Tokenizer(MODEL), config)
    lengths = (1, 2, 17, 40)
    prompts = [random_ids(length, decoder.shape.vocab_size, seed=length) for length in lengths]
    assert_logprobs_agree(oracle, engine, prompts)
    engine.close()
