"""Logits and greedy tokens against transformers, which knows nothing of this engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors import safe_open

from engine.model import load_decoder
from tests.engine.model.driving import PagedDecoder, prefill, random_ids

COMMON = {
    "num_hidden_layers": 2,
    "hidden_size": 96,
    "intermediate_size": 176,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 259,
    "max_position_embeddings": 512,
    "initializer_range": 0.1,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama grouped by 2": ("Llama", {"head_dim": 16}),
    "llama not grouped, tied": ("Llama", {"num_key_value_heads": 4, "tie_word_embeddings": True}),
    "llama grouped by 4, odd sizes": (
        "Llama",
        {"num_key_value_heads": 1, "hidden_size": 100, "intermediate_size": 130, "head_dim": 32, "vocab_size": 101},
    ),
    "llama with biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama with another rope base": ("Llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
    "qwen2": ("Qwen2", {"hidden_size": 128}),
    "qwen2 grouped by 4, tied": ("Qwen2", {"num_key_value_heads": 1, "tie_word_embeddings": True}),
    "qwen3 grouped by 2": ("Qwen3", {"head_dim": 64}),
    "qwen3 grouped by 4, with biases": ("Qwen3", {"num_key_value_heads": 1, "head_dim": 32, "attention_bias": True}),
    "mixtral": ("Mixtral", {"num_local_experts": 8, "num_experts_per_tok": 2}),
    "mixtral with odd sizes, tied": (
        "Mixtral",
        {
            "hidden_size": 100,
            "intermediate_size": 70,
            "head_dim": 16,
            "num_local_experts": 5,
            "num_experts_per_tok": 3,
            "tie_word_embeddings": True,
        },
    ),
    "mixtral with one expert a token": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 1}),
    "qwen3_moe": ("Qwen3Moe", {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 48}),
    "qwen3_moe renormalised, some layers dense, with biases": (
        "Qwen3Moe",
        {
            "num_hidden_layers": 6,
            "num_experts": 8,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 24,
            "norm_topk_prob": True,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [3],
            "attention_bias": True,
        },
    ),
}


def save(directory: Path, kind: str, changes: dict[str, Any], **settings: Any) -> Any:
    torch.manual_seed(3)
    model = getattr(transformers, f"{kind}ForCausalLM")(
        getattr(transformers, f"{kind}Config")(**(COMMON | changes))
    ).eval()
    if hasattr(model.config, "num_local_experts"):
        model.set_experts_implementation("eager")  # its grouped product refuses odd sizes
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(directory, **settings)
    return model


@pytest.mark.parametrize("case", CASES)
def test_logits_and_greedy_tokens_equal_transformers(case: str, tmp_path: Path) -> None:
    model = save(tmp_path, *CASES[case])
    decoder = load_decoder(tmp_path, dtype=torch.float32, device=torch.device("cpu"))
    prompt = random_ids(75, decoder.shape.vocab_size, seed=1)
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0]
        tokens = model.generate(torch.tensor([prompt]), max_new_tokens=20, do_sample=False, eos_token_id=None)[0]
    logits = decoder.logits(prefill(decoder, prompt))
    assert (logits - expected).abs().max() <= 1e-4

    sequence = [*prompt, *[0] * 20]
    paged = PagedDecoder(decoder, [sequence])
    last = paged.step([(0, 0, len(prompt))])[0][-1:]
    for position in range(len(prompt), len(sequence)):
        sequence[position] = int(decoder.logits(last).argmax())
        last = paged.step([(0, position, position + 1)])[0]
    assert sequence == tokens.tolist()


@pytest.mark.parametrize("case", ["mixtral", "qwen3_moe renormalised, some layers dense, with biases"])
def test_experts_stored_together_give_the_bits_of_experts_stored_one_by_one(case: str, tmp_path: Path) -> None:
    save(tmp_path / "apart", *CASES[case])
    save(tmp_path / "together", *CASES[case], save_original_format=False)
    for name, fused in (("apart", False), ("together", True)):
        with safe_open(tmp_path / name / "model.safetensors", framework="pt") as file:
            assert any("experts.gate_up_proj" in key for key in file.keys()) is fused  # noqa: SIM118, not a mapping
    apart, together = (
        prefill(load_decoder(tmp_path / name, dtype=torch.float32, device=torch.device("cpu")), [1, 2, 3, 4, 5])
        for name in ("apart", "together")
    )
    assert torch.equal(apart, together)


def test_a_sharded_checkpoint_gives_the_bits_of_a_single_file(tmp_path: Path) -> None:
    save(tmp_path / "single", "Llama", {})
    save(tmp_path / "sharded", "Llama", {}, max_shard_size="300KB")
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 1
    single, sharded = (
        prefill(load_decoder(tmp_path / name, dtype=torch.float32, device=torch.device("cpu")), [1, 2, 3, 4, 5])
        for name in ("single", "sharded")
    )
    assert torch.equal(single, sharded)


@pytest.mark.parametrize(
    "kind", [("Qwen3", {"head_dim": 32}), ("Mixtral", {"num_local_experts": 8})], ids=["qwen3", "mixtral"]
)
def test_bf16_logits_are_as_near_to_fp32_as_those_of_transformers(
    kind: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    model = save(tmp_path, *kind)
    decoder = load_decoder(tmp_path, dtype=torch.bfloat16, device=torch.device("cpu"))
    prompt = random_ids(60, decoder.shape.vocab_size, seed=2)
    with torch.no_grad():
        exact = model(torch.tensor([prompt])).logits[0]
        rounded = model.bfloat16()(torch.tensor([prompt])).logits[0].float()
    error = (decoder.logits(prefill(decoder, prompt)) - exact).square().mean().sqrt()
    assert error <= 1.2 * (rounded - exact).square().mean().sqrt()
