"""Grouped-query attention: a layer's mixer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.kernels import AttentionStep
from engine.model.rope import Rotation
from engine.numerics.gemm import LinearWeight, linear
from engine.numerics.rowwise import rms_norm


@dataclass(frozen=True, slots=True)
class GroupedQueryAttention:
    """Attention of one layer.

    Attributes:
        layer: its index in the cache.
        num_query_heads, num_kv_heads, head_dim: sizes.
        qkv: q, k and v projections, stacked in this order.
        output: output projection.
        qk_norm: weights of the norms of q and k heads `(num_query_heads + num_kv_heads, head_dim)`, or `None`.
        epsilon: of these norms.
    """

    layer: int
    num_query_heads: int
    num_kv_heads: int
    head_dim: int
    qkv: LinearWeight
    output: LinearWeight
    qk_norm: Tensor | None
    epsilon: float

    def __call__(self, x: Tensor, rotation: Rotation, attention: AttentionStep) -> Tensor:
        """Mix tokens `(T, hidden_size)` along their sequences."""
        heads = linear(x, self.qkv).view(x.shape[0], -1, self.head_dim)
        qk, v = torch.split(heads, [self.num_query_heads + self.num_kv_heads, self.num_kv_heads], dim=1)
        if self.qk_norm is not None:
            qk = rms_norm(qk, self.qk_norm, self.epsilon)
        q, k = torch.split(rotation.apply(qk), [self.num_query_heads, self.num_kv_heads], dim=1)
        attention.write(self.layer, k, v)
        return linear(attention.attend(self.layer, q), self.output)

    def weights(self) -> Iterator[LinearWeight]:
        """The layer's projections."""
        yield self.qkv
        yield self.output
