"""GGUF's llama as Hugging Face's: configuration, tensor names, and the order of the rows of q and k.

GGUF rotates neighbouring pairs of a head's dimensions, Hugging Face the first half with the second. Who writes GGUF
reorders the rows of q and k for that; here they get their old order back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from framework.fetch.gguf_file import FloatArray, GgufFile

_ARCHITECTURE: Final = "llama"
_UNDERSTOOD: Final = frozenset(
    {
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.layer_norm_rms_epsilon",
        "rope.dimension_count",
        "rope.freq_base",
        "vocab_size",
    }
)
_LAYER_TENSORS: Final = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_DEFAULT_THETA: Final = 10000.0


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """A tensor by the name Hugging Face has for it; `read` gives its values when they are needed."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[], FloatArray]


def config_of(file: GgufFile) -> dict[str, Any]:
    """Return `config.json` for a GGUF file.

    Raises:
        FetchError: it is no llama, or has something that Hugging Face's llama would compute otherwise.
    """
    architecture = file.value("general.architecture", str)
    if architecture != _ARCHITECTURE:
        raise file.error(f"general.architecture is {architecture!r}, and only {_ARCHITECTURE!r} can be converted")
    prefix = f"{_ARCHITECTURE}."
    unknown = sorted(
        key for key in file.metadata if key.startswith(prefix) and key.removeprefix(prefix) not in _UNDERSTOOD
    )
    if unknown:
        raise file.error(f"{', '.join(unknown)}: not understood, so the model could be computed wrongly")
    hidden, heads = file.value("llama.embedding_length", int), file.value("llama.attention.head_count", int)
    head_dim = file.value("llama.rope.dimension_count", int, hidden // heads)
    if head_dim * heads != hidden:
        raise file.error(f"llama.rope.dimension_count is {head_dim}; only whole heads can be rotated")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "head_dim": head_dim,
        "intermediate_size": file.value("llama.feed_forward_length", int),
        "num_hidden_layers": file.value("llama.block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": file.value("llama.attention.head_count_kv", int, heads),
        "max_position_embeddings": file.value("llama.context_length", int),
        "rms_norm_eps": _shortest(file.value("llama.attention.layer_norm_rms_epsilon", float)),
        "rope_theta": _shortest(file.value("llama.rope.freq_base", float, _DEFAULT_THETA)),
        "vocab_size": file.shape("token_embd.weight")[0],
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "attention_bias": False,
        "mlp_bias": False,
    }


def tensors_of(file: GgufFile, config: dict[str, Any]) -> list[NamedTensor]:
    """Return every tensor of a GGUF file, in the order in which they are used.

    Raises:
        FetchError: one is missing, or there is one that has no name in Hugging Face's llama.
    """
    found = list(_named(file, config))
    names = {gguf_name for gguf_name, _ in found}
    extra = sorted(name for name in file.tensors if name not in names)
    if extra:
        raise file.error(f"holds tensors that cannot be converted: {', '.join(extra[:8])}")
    return [tensor for _, tensor in found]


def _named(file: GgufFile, config: dict[str, Any]) -> Iterator[tuple[str, NamedTensor]]:
    yield _plain(file, "token_embd.weight", "model.embed_tokens.weight")
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for layer in range(config["num_hidden_layers"]):
        for gguf_part, part in _LAYER_TENSORS.items():
            gguf_name, name = f"blk.{layer}.{gguf_part}.weight", f"model.layers.{layer}.{part}.weight"
            if gguf_part in heads:
                yield _unpermuted(file, gguf_name, name, heads[gguf_part])
            else:
                yield _plain(file, gguf_name, name)
    yield _plain(file, "output_norm.weight", "model.norm.weight")
    if not config["tie_word_embeddings"]:
        yield _plain(file, "output.weight", "lm_head.weight")


def _plain(file: GgufFile, gguf_name: str, name: str) -> tuple[str, NamedTensor]:
    return gguf_name, NamedTensor(name, file.shape(gguf_name), lambda: file.tensor(gguf_name))


def _unpermuted(file: GgufFile, gguf_name: str, name: str, heads: int) -> tuple[str, NamedTensor]:
    shape = file.shape(gguf_name)
    if shape[0] % (2 * heads):
        raise file.error(f"tensor {gguf_name} has {shape[0]} rows, which {heads} heads cannot share")
    return gguf_name, NamedTensor(name, shape, lambda: halves_from_pairs(file.tensor(gguf_name), heads))


def halves_from_pairs(weight: FloatArray, heads: int) -> FloatArray:
    """Reorder the rows of a projection `(heads * head_dim, hidden)`: a head's even rows first, then its odd ones."""
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows, columns)


def _shortest(value: float) -> float:
    """Return the number that was meant by one stored with 32 bits: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))
