"""From a model directory to a `Decoder`: weights read one by one, fused, and laid out for row-invariant products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from engine.kernels import KV_TILE
from engine.kernels.tiled import TiledAttention
from engine.kernels.tiling import row_counts
from engine.memory import memory_bytes
from engine.model.config_file import ModelError
from engine.model.decoder import Decoder, Layer
from engine.model.families import ModelShape, read_shape, tensor_shapes
from engine.model.gqa import GroupedQueryAttention
from engine.model.mlp import GatedMlp
from engine.model.moe import MixtureOfExperts
from engine.model.rope import rotary_table
from engine.model.weights import Checkpoint
from engine.numerics.gemm import (
    LinearWeight,
    Strategy,
    batch_strategy,
    compute_dtype,
    linear_strategy,
    prepare_linear,
)
from engine.numerics.grouped import GroupedWeight, bucket_table, grouped_strategy, prepare_grouped

_TABLE_BYTES = 24
"""Bytes that a number of the rotary table takes while the table is made: fp64 angles, cosines and sines beside it."""


def load_decoder(
    model_dir: Path, *, dtype: torch.dtype, device: torch.device, max_positions: int | None = None
) -> Decoder:
    """Load a model.

    Args:
        model_dir: directory in Hugging Face layout.
        dtype: of the residual stream and the cache, fp32 or bf16; weights are rounded to it.
        device: where it runs.
        max_positions: longest sequence in tokens; the model's own limit if `None`.

    Raises:
        ModelError: the directory cannot be used.
    """
    shape = read_shape(model_dir)
    with Checkpoint(model_dir, shape) as checkpoint, torch.inference_mode():
        _require_memory(checkpoint, shape, dtype, device, max_positions or shape.max_position_embeddings)
        return _Loader(checkpoint, shape, dtype, device).decoder(max_positions or shape.max_position_embeddings)


def _require_memory(
    checkpoint: Checkpoint, shape: ModelShape, dtype: torch.dtype, device: torch.device, max_positions: int
) -> None:
    """Refuse a model that cannot fit, before an allocator promises memory that is not there."""
    there = memory_bytes(device)
    numbers = sum(map(math.prod, tensor_shapes(shape, checkpoint.expert_layout).values()))
    parts = {
        "its weights": numbers * dtype.itemsize,
        f"a table of max_position_embeddings = {max_positions} positions": max_positions
        * shape.head_dim
        * _TABLE_BYTES,
    }
    for what, needed in parts.items():
        if needed > there:
            raise ModelError(
                f"{checkpoint.model_dir}: {what} take {needed / 1e9:.1f} GB, but {device} has {there / 1e9:.1f} GB; use"
                " a smaller model, or a machine with more memory"
            )


class _Loader:
    """Builds the parts; proves each product's shape once."""

    def __init__(self, checkpoint: Checkpoint, shape: ModelShape, dtype: torch.dtype, device: torch.device) -> None:
        self._checkpoint = checkpoint
        self._shape = shape
        self._dtype = dtype
        self._device = device
        self._proven: dict[tuple[torch.dtype, torch.dtype, torch.Size, bool], Strategy] = {}

    def decoder(self, max_positions: int) -> Decoder:
        shape = self._shape
        embedding = self._tensor("model.embed_tokens.weight")
        head = embedding if shape.tied_embeddings else self._tensor("lm_head.weight")
        layers = tuple(self._layer(index) for index in range(shape.num_layers))
        return Decoder(
            shape=shape,
            dtype=self._dtype,
            device=self._device,
            embedding=embedding,
            layers=layers,
            norm=self._tensor("model.norm.weight"),
            head=self._prepare(head, None, result=torch.float32, compute=self._head_dtype()),
            rotary=rotary_table(
                head_dim=shape.head_dim,
                theta=shape.rope_theta,
                max_positions=max_positions,
                device=self._device,
            ),
            attention=TiledAttention(
                num_query_heads=shape.num_query_heads,
                scale=torch.tensor(shape.head_dim**-0.5, device=self._device),
                strategy=batch_strategy(
                    head_dim=shape.head_dim,
                    kv_tile=KV_TILE,
                    row_counts=row_counts(shape.num_query_heads // shape.num_kv_heads),
                    device=self._device,
                ),
            ),
            directory=self._checkpoint.model_dir,
        )

    def _head_dtype(self) -> torch.dtype:
        """What logits are computed in, whose fp32 result must not be one rounding to bf16."""
        return compute_dtype(self._dtype, self._device) if self._device.type == "cpu" else torch.float32

    def _layer(self, index: int) -> Layer:
        shape, prefix = self._shape, f"model.layers.{index}."
        attention = prefix + "self_attn."
        mixer = GroupedQueryAttention(
            layer=index,
            num_query_heads=shape.num_query_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
            qkv=self._projection(attention, ("q_proj", "k_proj", "v_proj"), bias=shape.qkv_bias),
            output=self._projection(attention, ("o_proj",), bias=shape.output_bias),
            qk_norm=self._head_norms(attention) if shape.qk_norm else None,
            epsilon=shape.rms_norm_eps,
        )
        return Layer(
            mixer_norm=self._tensor(prefix + "input_layernorm.weight"),
            mixer=mixer,
            ffn_norm=self._tensor(prefix + "post_attention_layernorm.weight"),
            ffn=self._experts(index) if shape.moe and index in shape.moe.layers else self._mlp(prefix + "mlp."),
        )

    def _mlp(self, prefix: str) -> GatedMlp:
        bias = self._shape.mlp_bias
        return GatedMlp(
            gate_up=self._projection(prefix, ("gate_proj", "up_proj"), bias=bias),
            down=self._projection(prefix, ("down_proj",), bias=bias),
        )

    def _experts(self, index: int) -> MixtureOfExperts:
        moe, layout = self._shape.moe, self._checkpoint.expert_layout
        assert moe is not None and layout is not None, "a layer with experts belongs to a model that has them"  # noqa: PT018
        tensors = layout.read(lambda name: self._tensor(f"model.layers.{index}.{name}"), moe)
        return MixtureOfExperts(
            index=moe.layers.index(index),
            experts_per_token=moe.experts_per_token,
            renormalise=moe.renormalise,
            router=self._prepare(tensors.router, None, result=torch.float32, compute=torch.float32),
            gate_up=self._prepare_grouped(tensors.gate_up),
            down=self._prepare_grouped(tensors.down),
            buckets=bucket_table(self._device),
        )

    def _head_norms(self, prefix: str) -> Tensor:
        """The weights of the q and k norms, one row a head: `(query heads + kv heads, head_dim)`."""
        q = self._tensor(prefix + "q_norm.weight").expand(self._shape.num_query_heads, -1)
        k = self._tensor(prefix + "k_norm.weight").expand(self._shape.num_kv_heads, -1)
        return torch.cat((q, k))

    def _projection(self, prefix: str, names: Sequence[str], *, bias: bool) -> LinearWeight:
        """Stack projections of the same input into one product."""
        weight = torch.cat([self._tensor(f"{prefix}{name}.weight") for name in names])
        stacked = torch.cat([self._tensor(f"{prefix}{name}.bias") for name in names]) if bias else None
        return self._prepare(weight, stacked, result=self._dtype, compute=compute_dtype(self._dtype, self._device))

    def _prepare(
        self, weight: Tensor, bias: Tensor | None, *, result: torch.dtype, compute: torch.dtype
    ) -> LinearWeight:
        prepared = prepare_linear(weight, bias, result_dtype=result, compute=compute)
        key = (compute, result, weight.shape, bias is not None)
        if key not in self._proven:
            self._proven[key] = linear_strategy(prepared)
        return prepared.with_strategy(self._proven[key])

    def _prepare_grouped(self, weight: Tensor) -> GroupedWeight:
        compute = torch.float32 if self._device.type == "cpu" else self._dtype
        prepared = prepare_grouped(weight, result_dtype=self._dtype, compute=compute)
        key = (compute, self._dtype, weight.shape, False)
        if key not in self._proven:
            self._proven[key] = grouped_strategy(prepared)
        return prepared.with_strategy(self._proven[key])

    def _tensor(self, name: str) -> Tensor:
        return self._checkpoint.read(name).to(dtype=self._dtype, device=self._device)
