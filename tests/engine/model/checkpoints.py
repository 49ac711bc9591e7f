"""Small random checkpoints: written directly, or by transformers as the independent oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from engine.model.families import read_shape, tensor_shapes

TINY: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 259,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "eos_token_id": 2,
}

TINY_MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "intermediate_size": 48,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}
TINY_QWEN3_MOE: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 4,
    "num_experts": 6,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 40,
    "norm_topk_prob": True,
    "mlp_only_layers": [2],
}
"""What turns `TINY` into a model with experts."""


def write_config(directory: Path, **changes: Any) -> Path:
    """Write `config.json` of `TINY` with changes; a change to `None` leaves the key out."""
    config = {key: value for key, value in (TINY | changes).items() if value is not None}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory


def random_tensors(directory: Path) -> dict[str, torch.Tensor]:
    """Random tensors for the `config.json` of a directory."""
    generator = torch.Generator().manual_seed(11)
    tensors = {}
    for name, size in tensor_shapes(read_shape(directory)).items():
        noise = torch.randn(size, generator=generator)
        tensors[name] = 1 + 0.2 * noise if "norm" in name else noise * size[-1] ** -0.5
    return tensors


def write_checkpoint(directory: Path, **changes: Any) -> Path:
    """Write `config.json` and one safetensors file of random weights."""
    write_config(directory, **changes)
    save_file(random_tensors(directory), directory / "model.safetensors")
    return directory
