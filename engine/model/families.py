"""Model families as data: what a Hugging Face `config.json` means and which tensors belong to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from engine.model.config_file import ConfigFile, ModelError, is_positive_number
from engine.model.expert_tensors import FUSED_EXPERTS, MIXTRAL_EXPERTS, QWEN_EXPERTS, ExpertLayout, MoeShape, Sizes

__all__ = ["FAMILIES", "ModelError", "ModelShape", "is_redundant", "layout_of", "read_shape", "tensor_shapes"]

_MOST_LAYERS = 1024
_MOST_EXPERTS = 1024
"""Beyond what any model has; every layer, and every expert of it, is a name that is looked for in the checkpoint."""


@dataclass(frozen=True, slots=True)
class MoeFamily:
    """How a family with experts says what they are like, in `config.json` and in its tensors.

    Attributes:
        count_keys: keys that may hold the number of experts.
        intermediate_size_key: the key of an expert's inner size.
        renormalise: whether the chosen probabilities are made to add up to 1; `None` means that `norm_topk_prob` says.
        some_layers_are_dense: `decoder_sparse_step` and `mlp_only_layers` say which layers have experts.
        layouts: how checkpoints may store them.
    """

    count_keys: tuple[str, ...]
    intermediate_size_key: str
    renormalise: bool | None
    some_layers_are_dense: bool
    layouts: tuple[ExpertLayout, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """How one architecture differs from the others.

    Attributes:
        qkv_bias: whether q, k and v have a bias; `None` means that the key `attention_bias` says so, and then the
            output projection has one too.
        qk_norm: whether q and k are normalised a head.
        explicit_head_dim: the `head_dim` meant when the key is absent; `None` means hidden size / heads.
        rope_theta, rms_norm_eps: meant when the key is absent.
        window_key: the key that asks for attention within a window, which is not supported.
        moe: how layers with experts are described; `None` where there are none.
    """

    qkv_bias: bool | None
    qk_norm: bool
    explicit_head_dim: int | None = None
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    window_key: str = "use_sliding_window"
    moe: MoeFamily | None = None


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "llama": Family(qkv_bias=None, qk_norm=False),
        "qwen2": Family(qkv_bias=True, qk_norm=False),
        "qwen3": Family(qkv_bias=None, qk_norm=True, explicit_head_dim=128),
        "mixtral": Family(
            qkv_bias=False,
            qk_norm=False,
            rope_theta=1e6,
            rms_norm_eps=1e-5,
            window_key="sliding_window",
            moe=MoeFamily(
                count_keys=("num_local_experts",),
                intermediate_size_key="intermediate_size",
                renormalise=True,
                some_layers_are_dense=False,
                layouts=(MIXTRAL_EXPERTS, FUSED_EXPERTS),
            ),
        ),
        "qwen3_moe": Family(
            qkv_bias=None,
            qk_norm=True,
            moe=MoeFamily(
                count_keys=("num_experts", "num_local_experts"),
                intermediate_size_key="moe_intermediate_size",
                renormalise=None,
                some_layers_are_dense=True,
                layouts=(QWEN_EXPERTS, FUSED_EXPERTS),
            ),
        ),
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
        moe: the layers with experts; `None` for a dense model.
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
    moe: MoeShape | None = None


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
    config = ConfigFile.read(path)
    name = config.text("model_type")
    family = FAMILIES.get(name)
    if family is None:
        raise config.error("model_type", f"is not supported; supported: {', '.join(FAMILIES)}")
    _refuse_unsupported(config, family)
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads")
    kv_heads = config.size("num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise config.error("num_key_value_heads", f"must divide num_attention_heads = {heads}")
    head_dim = config.size("head_dim", default=family.explicit_head_dim or hidden // heads)
    if head_dim % 2:
        raise config.error("head_dim", f"must be even for rotary positions, and is {head_dim}")
    num_layers = config.size("num_hidden_layers", largest=_MOST_LAYERS)
    attention_bias = config.flag("attention_bias")
    return ModelShape(
        family=name,
        num_layers=num_layers,
        hidden_size=hidden,
        num_query_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=config.size("intermediate_size"),
        vocab_size=config.size("vocab_size"),
        max_position_embeddings=config.size("max_position_embeddings"),
        rms_norm_eps=config.number("rms_norm_eps", default=family.rms_norm_eps),
        rope_theta=_rope_theta(config, family.rope_theta),
        tied_embeddings=config.flag("tie_word_embeddings"),
        qkv_bias=attention_bias if family.qkv_bias is None else family.qkv_bias,
        output_bias=attention_bias and family.qkv_bias is None,
        mlp_bias=config.flag("mlp_bias"),
        qk_norm=family.qk_norm,
        eos_token_ids=_eos_token_ids(model_dir, config),
        moe=_moe_shape(config, family.moe, num_layers) if family.moe else None,
    )


def layout_of(shape: ModelShape, names: Iterable[str]) -> ExpertLayout | None:
    """The layout of experts that a checkpoint with these tensors most likely has; `None` for a dense model."""
    layouts = _layouts(shape)
    present = set(names)
    return max(layouts, key=lambda layout: len(present & tensor_shapes(shape, layout).keys()), default=None)


def tensor_shapes(shape: ModelShape, layout: ExpertLayout | None = None) -> Sizes:
    """The name and shape of every tensor that a checkpoint of this shape holds.

    `layout` is how it stores its experts; the family's usual way if `None`.
    """
    hidden = shape.hidden_size
    tensors: Sizes = {"model.embed_tokens.weight": (shape.vocab_size, hidden), "model.norm.weight": (hidden,)}
    if not shape.tied_embeddings:
        tensors["lm_head.weight"] = (shape.vocab_size, hidden)
    mixer, dense = _mixer_sizes(shape), _dense_sizes(shape)
    experts: Sizes = {}
    if shape.moe is not None:
        experts = (layout or _layouts(shape)[0]).sizes(shape.moe, hidden)
    for index in range(shape.num_layers):
        layer = mixer | (experts if shape.moe is not None and index in shape.moe.layers else dense)
        tensors |= {f"model.layers.{index}.{name}": size for name, size in layer.items()}
    return tensors


def _layouts(shape: ModelShape) -> tuple[ExpertLayout, ...]:
    moe = FAMILIES[shape.family].moe
    return moe.layouts if moe is not None else ()


def _mixer_sizes(shape: ModelShape) -> Sizes:
    hidden = shape.hidden_size
    query_width, kv_width = shape.num_query_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    sizes: Sizes = {"input_layernorm.weight": (hidden,), "post_attention_layernorm.weight": (hidden,)}
    sizes |= _projection("self_attn.q_proj", query_width, hidden, bias=shape.qkv_bias)
    sizes |= _projection("self_attn.k_proj", kv_width, hidden, bias=shape.qkv_bias)
    sizes |= _projection("self_attn.v_proj", kv_width, hidden, bias=shape.qkv_bias)
    sizes |= _projection("self_attn.o_proj", hidden, query_width, bias=shape.output_bias)
    if shape.qk_norm:
        sizes |= {"self_attn.q_norm.weight": (shape.head_dim,), "self_attn.k_norm.weight": (shape.head_dim,)}
    return sizes


def _dense_sizes(shape: ModelShape) -> Sizes:
    hidden, inner = shape.hidden_size, shape.intermediate_size
    return {
        **_projection("mlp.gate_proj", inner, hidden, bias=shape.mlp_bias),
        **_projection("mlp.up_proj", inner, hidden, bias=shape.mlp_bias),
        **_projection("mlp.down_proj", hidden, inner, bias=shape.mlp_bias),
    }


def is_redundant(name: str, shape: ModelShape) -> bool:
    """Whether a checkpoint may hold this tensor although nothing reads it: it can be derived from the others."""
    return name.endswith(".rotary_emb.inv_freq") or (name == "lm_head.weight" and shape.tied_embeddings)


def _projection(name: str, rows: int, columns: int, *, bias: bool) -> dict[str, tuple[int, ...]]:
    tensors: dict[str, tuple[int, ...]] = {f"{name}.weight": (rows, columns)}
    if bias:
        tensors[f"{name}.bias"] = (rows,)
    return tensors


def _moe_shape(config: ConfigFile, family: MoeFamily, num_layers: int) -> MoeShape:
    num_experts = _num_experts(config, family)
    experts_per_token = config.size("num_experts_per_tok")
    if experts_per_token > num_experts:
        raise config.error("num_experts_per_tok", f"is more than the {num_experts} experts a layer has")
    step = config.size("decoder_sparse_step", default=1) if family.some_layers_are_dense else 1
    dense = frozenset(config.indices("mlp_only_layers") if family.some_layers_are_dense else ())
    layers = tuple(index for index in range(num_layers) if (index + 1) % step == 0 and index not in dense)
    if not layers:
        raise config.error("mlp_only_layers", f"and decoder_sparse_step = {step} leave no layer with experts")
    return MoeShape(
        layers=layers,
        num_experts=num_experts,
        experts_per_token=experts_per_token,
        intermediate_size=config.size(family.intermediate_size_key),
        renormalise=config.flag("norm_topk_prob") if family.renormalise is None else family.renormalise,
    )


def _num_experts(config: ConfigFile, family: MoeFamily) -> int:
    present = [key for key in family.count_keys if config.values.get(key) is not None] or [family.count_keys[0]]
    counts = [config.size(key, largest=_MOST_EXPERTS) for key in present]
    if counts.count(counts[0]) != len(counts):
        raise config.error(present[0], f"contradicts {present[1]} = {counts[1]}; keep the right one")
    return counts[0]


def _refuse_unsupported(config: ConfigFile, family: Family) -> None:
    """Refuse what would be computed wrongly rather than not at all."""
    no_window = (False, None) if family.window_key == "use_sliding_window" else (None,)
    only = {"hidden_act": ("silu", None), family.window_key: no_window, "quantization_config": (None,)}
    for key, allowed in only.items():
        if config.values.get(key) not in allowed:
            raise config.error(key, f"is not supported; only {json.dumps(allowed[0])} is")
    layer_types = config.values.get("layer_types") or []
    if not isinstance(layer_types, list) or any(kind != "full_attention" for kind in layer_types):
        raise config.error("layer_types", 'is not supported; only "full_attention" layers are')
    if config.values.get("partial_rotary_factor") not in (None, 1, 1.0):
        raise config.error("partial_rotary_factor", "is not supported; only 1.0 is")


def _rope_theta(config: ConfigFile, default: float) -> float:
    """The rotary base: top-level `rope_theta`, or in `rope_parameters` as newer files write it."""
    theta = config.values.get("rope_theta", default)
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


def _eos_token_ids(model_dir: Path, config: ConfigFile) -> tuple[int, ...]:
    """Ids that end a generation: `generation_config.json` first, then `config.json`."""
    path = model_dir / "generation_config.json"
    sources = [ConfigFile.read(path)] if path.is_file() else []
    for source in (*sources, config):
        value = source.values.get("eos_token_id")
        if value is None:
            continue
        ids = value if isinstance(value, list) else [value]
        if not all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in ids):
            raise source.error("eos_token_id", "must be a token id or a list of them")
        return tuple(ids)
    return ()
