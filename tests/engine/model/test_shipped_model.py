"""The shipped models compute what transformers computes with the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.config import InferenceConfig
from engine.engine import Engine
from engine.model import load_decoder
from engine.request import Request, SamplingParams
from engine.tokenizer import Tokenizer
from tests.engine.model.driving import prefill

MODELS = Path(__file__).parents[3] / "fixtures" / "models"
PROMPTS = ("Once upon a time", "How to make soup", "The capital of France is", "Zoë was a farmer in")
NEW_TOKENS = 32

each_model = pytest.mark.parametrize("name", ["storyteller-llama-1m", "storyteller-moe-1m"])


@each_model
def test_logits_equal_transformers_at_every_position(name: str) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is the oracle; install the test extra")
    oracle = transformers.AutoModelForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32)
    decoder = load_decoder(MODELS / name, dtype=torch.float32, device=torch.device("cpu"))
    tokenizer = Tokenizer(MODELS / name)
    for prompt in (*PROMPTS, " ".join(PROMPTS * 8)):
        tokens = tokenizer.encode(prompt)
        with torch.inference_mode():
            expected = oracle(torch.tensor([tokens])).logits[0]
            logits = decoder.logits(prefill(decoder, tokens))
        assert logits.shape == expected.shape
        assert (logits - expected).abs().max() <= 1e-4


@each_model
def test_greedy_tokens_and_log_probs_equal_transformers(name: str) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is the oracle; install the test extra")
    oracle = transformers.AutoModelForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32)
    engine = Engine.load(MODELS / name, InferenceConfig(num_threads=1))
    sampling = SamplingParams(max_new_tokens=NEW_TOKENS, ignore_eos=True, logprobs=True)
    prompts = [tuple(engine.tokenizer.encode(prompt)) for prompt in PROMPTS]
    outputs = engine.generate([Request(str(index), prompt, sampling) for index, prompt in enumerate(prompts)])
    engine.close()
    for prompt, output in zip(prompts, outputs, strict=True):
        tokens = torch.tensor([prompt + output.generated_token_ids])
        with torch.inference_mode():
            logits = oracle(tokens).logits[0, len(prompt) - 1 : -1]
        assert tuple(logits.argmax(-1).tolist()) == output.generated_token_ids
        expected = logits.log_softmax(-1).amax(-1)
        assert torch.allclose(expected, torch.tensor(output.generated_logprobs), rtol=0, atol=1e-4)
        best = logits.topk(2).values
        assert torch.allclose(best[:, 0] - best[:, 1], torch.tensor(output.margins), rtol=0, atol=2e-4)
