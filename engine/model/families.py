"""Model families as data: what a Hugging Face `config.json` means and which tensors belong to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

_LARGEST_SIZE = 1 << 24
_LARGEST_NUMBER = 1e30


class ModelError(ValueError):
    """A model directory cannot be used; the message says which file, which setting, why, and the way out."""


@dataclass(frozen=True, slots=True)
class Family:
    """How one architecture differs from the others.

    Attributes:
        qkv_bias: whether q, k and v have a bias; `None` means that the key `attention_bias` says so, and then the
            output projection has one too.
        qk_norm: whether q and k are normalised a head.
        explicit_head_dim: the `head_dim` meant when the key is absent; `None` means hidden size / heads.
    """

    qkv_bias: bool | None
    qk_norm: bool
    explicit_head_dim: int | None = None


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "llama": Family(qkv_bias=None, qk_norm=False),
        "qwen2": Family(qkv_bias=True, qk_norm=False),
        "qwen3": Family(qkv_bias=None, qk_norm=True, explicit_head_dim=128),
    }
)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Everything about a model except its numbers.

    Attributes:
        family: key of `FAMILIES`.
        num_layers, hidden_size, num_query_heads, num_kv_heads, head_dim, intermediate_size, vocab_size: sizes.
        max_position_embeddings: the longest sequence the model was made for, in tokens.
        rms_norm_eps: added to the mean square in norms.
        rope_theta: base of the rotary frequencies.
        tied_embeddings: the vocabulary projection is the embedding.
        qkv_bias, output_bias, mlp_bias: which projections have a bias.
        qk_norm: q and k are normalised a head before rotation.
        eos_token_ids: ids that end a generation; may be empty.
    """

    family: str
    num_layers: int
    hidden_size: int
    num_query_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    tied_embeddings: bool
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    qk_norm: bool
    eos_token_ids: tuple[int, ...]


def read_shape(model_dir: Path) -> ModelShape:
    """Read `config.json` and `generation_config.json`; no weights.

    Raises:
        ModelError: a file is missing or malformed, or the model is of a kind that is not supported.
    """
    path = model_dir / "config.json"
    if not path.is_file():
        raise ModelError(
            f"{path}: no such file; a model is a directory in Hugging Face layout with config.json, "
            "tokenizer.json and *.safetensors"
        )
    config = _Config(path, read_json_object(path))
    name = config.text("model_type")
    family = FAMILIES.get(name)
    if family is None:
        raise config.error("model_type", f"is not supported; supported: {', '.join(FAMILIES)}")
    _refuse_unsupported(config)
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads")
    kv_heads = config.size("num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise config.error("num_key_value_heads", f"must divide num_attention_heads = {heads}")
    head_dim = config.size("head_dim", default=family.explicit_head_dim or hidden // heads)
    if head_dim % 2:
        raise config.error("head_dim", f"must be even for rotary positions, and is {head_dim}")
    attention_bias = config.flag("attention_bias")
    return ModelShape(
        family=name,
        num_layers=config.size("num_hidden_layers"),
        hidden_size=hidden,
        num_query_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=config.size("intermediate_size"),
        vocab_size=config.size("vocab_size"),
        max_position_embeddings=config.size("max_position_embeddings"),
        rms_norm_eps=config.number("rms_norm_eps", default=1e-6),
        rope_theta=_rope_theta(config),
        tied_embeddings=config.flag("tie_word_embeddings"),
        qkv_bias=attention_bias if family.qkv_bias is None else family.qkv_bias,
        output_bias=attention_bias and family.qkv_bias is None,
        mlp_bias=config.flag("mlp_bias"),
        qk_norm=family.qk_norm,
        eos_token_ids=_eos_token_ids(model_dir, config),
    )


def tensor_shapes(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    """The name and shape of every tensor that a checkpoint of this shape holds."""
    hidden, inner = shape.hidden_size, shape.intermediate_size
    query_width, kv_width = shape.num_query_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    tensors: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (shape.vocab_size, hidden),
        "model.norm.weight": (hidden,),
    }
    if not shape.tied_embeddings:
        tensors["lm_head.weight"] = (shape.vocab_size, hidden)
    layer: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
    }
    layer |= _projection("self_attn.q_proj", query_width, hidden, bias=shape.qkv_bias)
    layer |= _projection("self_attn.k_proj", kv_width, hidden, bias=shape.qkv_bias)
    layer |= _projection("self_attn.v_proj", kv_width, hidden, bias=shape.qkv_bias)
    layer |= _projection("self_attn.o_proj", hidden, query_width, bias=shape.output_bias)
    layer |= _projection("mlp.gate_proj", inner, hidden, bias=shape.mlp_bias)
    layer |= _projection("mlp.up_proj", inner, hidden, bias=shape.mlp_bias)
    layer |= _projection("mlp.down_proj", hidden, inner, bias=shape.mlp_bias)
    if shape.qk_norm:
        layer |= {"self_attn.q_norm.weight": (shape.head_dim,), "self_attn.k_norm.weight": (shape.head_dim,)}
    for index in range(shape.num_layers):
        tensors |= {f"model.layers.{index}.{name}": size for name, size in layer.items()}
    return tensors


def is_redundant(name: str, shape: ModelShape) -> bool:
    """Whether a checkpoint may hold this tensor although nothing reads it: it can be derived from the others."""
    return name.endswith(".rotary_emb.inv_freq") or (name == "lm_head.weight" and shape.tied_embeddings)


def read_json_object(path: Path) -> JsonObject:
    """Read a JSON file whose top level is an object.

    Raises:
        ModelError: unreadable, malformed, or something else at the top.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ModelError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path}: the top level must be an object")
    return value


def is_positive_number(value: object) -> bool:
    """Whether a JSON value is a number that is finite and above zero."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LARGEST_NUMBER


def _projection(name: str, rows: int, columns: int, *, bias: bool) -> dict[str, tuple[int, ...]]:
    tensors: dict[str, tuple[int, ...]] = {f"{name}.weight": (rows, columns)}
    if bias:
        tensors[f"{name}.bias"] = (rows,)
    return tensors


@dataclass(frozen=True, slots=True)
class _Config:
    """`config.json` with typed access; every complaint names the file, the key and its value."""

    path: Path
    values: JsonObject

    def error(self, key: str, why: str) -> ModelError:
        return ModelError(f"{self.path}: {key} = {json.dumps(self.values.get(key))} {why}")

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.error(key, "must be a string")
        return value

    def size(self, key: str, *, default: int | None = None) -> int:
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST_SIZE:
            raise self.error(key, f"must be an integer from 1 to {_LARGEST_SIZE}")
        return value

    def number(self, key: str, *, default: float) -> float:
        value = self.values.get(key, default)
        if not is_positive_number(value):
            raise self.error(key, "must be a positive number")
        return float(value)

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value


def _refuse_unsupported(config: _Config) -> None:
    """Refuse what would be computed wrongly rather than not at all."""
    only = {"hidden_act": ("silu", None), "use_sliding_window": (False, None), "quantization_config": (None,)}
    for key, allowed in only.items():
        if config.values.get(key) not in allowed:
            raise config.error(key, f"is not supported; only {json.dumps(allowed[0])} is")
    layer_types = config.values.get("layer_types") or []
    if not isinstance(layer_types, list) or any(kind != "full_attention" for kind in layer_types):
        raise config.error("layer_types", 'is not supported; only "full_attention" layers are')
    if config.values.get("partial_rotary_factor") not in (None, 1, 1.0):
        raise config.error("partial_rotary_factor", "is not supported; only 1.0 is")


def _rope_theta(config: _Config) -> float:
    """The rotary base: top-level `rope_theta`, or in `rope_parameters` as newer files write it."""
    theta = config.values.get("rope_theta", 10000.0)
    for key in ("rope_scaling", "rope_parameters"):
        rope = config.values.get(key)
        if rope is None:
            continue
        if not isinstance(rope, dict):
            raise config.error(key, "must be an object or null")
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind != "default" or rope.get("partial_rotary_factor", 1.0) != 1.0:
            raise config.error(key, 'is not supported; only rope_type "default" is')
        theta = rope.get("rope_theta", theta)
    if not is_positive_number(theta):
        raise config.error("rope_theta", f"must be a positive number, and is {theta!r}")
    return float(theta)


def _eos_token_ids(model_dir: Path, config: _Config) -> tuple[int, ...]:
    """Ids that end a generation: `generation_config.json` first, then `config.json`."""
    path = model_dir / "generation_config.json"
    sources = [_Config(path, read_json_object(path))] if path.is_file() else []
    for source in (*sources, config):
        value = source.values.get("eos_token_id")
        if value is None:
            continue
        ids = value if isinstance(value, list) else [value]
        if not all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in ids):
            raise source.error("eos_token_id", "must be a token id or a list of them")
        return tuple(ids)
    return ()
