"""The decoder: embedding, layers of a mixer and an ffn, vocabulary projection. One forward for prefill and decode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from engine.kernels import AttentionBackend, AttentionMetadata, AttentionStep, PagedKVCache
from engine.model.families import ModelShape
from engine.model.rope import RotaryTable, Rotation
from engine.model.step_routing import StepRouting
from engine.numerics.gemm import LinearWeight, linear, pad_rows
from engine.numerics.grouped import GroupedWeight
from engine.numerics.rowwise import rms_norm


class Mixer(Protocol):
    """What mixes tokens along their sequences."""

    def __call__(self, x: Tensor, rotation: Rotation, attention: AttentionStep) -> Tensor:
        """`(T, hidden_size)` to `(T, hidden_size)`."""

    def weights(self) -> Iterator[LinearWeight]:
        """Its projections."""


class FeedForward(Protocol):
    """What transforms tokens one by one."""

    def __call__(self, x: Tensor, routing: StepRouting | None) -> Tensor:
        """`(T, hidden_size)` to `(T, hidden_size)`."""

    def weights(self) -> Iterator[LinearWeight | GroupedWeight]:
        """Its projections."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: a mixer and an ffn, each behind its norm and added to the residual stream."""

    mixer_norm: Tensor
    mixer: Mixer
    ffn_norm: Tensor
    ffn: FeedForward


@dataclass(frozen=True, slots=True)
class Decoder:
    """A model ready to run.

    The residual stream and the cache are in `dtype`; norms, rotation, attention and logits are computed in fp32.
    Logits stay fp32 also in bf16, where rounding them would make ties out of near misses; bf16 matrix units of a CPU
    give 17 binary digits of them. `directory` is where the weights were read.
    """

    shape: ModelShape
    dtype: torch.dtype
    device: torch.device
    embedding: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    head: LinearWeight
    rotary: RotaryTable
    attention: AttentionBackend
    directory: Path

    @torch.inference_mode()
    def forward(
        self,
        token_ids: Tensor,
        positions: Tensor,
        cache: PagedKVCache,
        metadata: AttentionMetadata,
        routing: StepRouting | None = None,
    ) -> Tensor:
        """Run a step.

        Args:
            token_ids: `(T,)` int64; rows in no span are padding.
            positions: `(T,)` int64, each token's position in its sequence, below the table's length.
            cache: written at the step's slots, read through the block tables.
            metadata: where the tokens go and what they see.
            routing: where the experts that tokens go to are written down, or prescribed; of interest to nobody if
                `None`.

        Returns:
            Normalised hidden states `(T, hidden_size)` in `dtype`.
        """
        count = token_ids.shape[0]
        padding = pad_rows(count) - count
        attention = self.attention.begin(cache, metadata)
        rotation = self.rotary.at(functional.pad(positions, (0, padding)))
        x = self.embedding.index_select(0, functional.pad(token_ids, (0, padding)))
        epsilon = self.shape.rms_norm_eps
        for layer in self.layers:
            x = x + layer.mixer(rms_norm(x, layer.mixer_norm, epsilon), rotation, attention)
            x = x + layer.ffn(rms_norm(x, layer.ffn_norm, epsilon), routing)
        return rms_norm(x, self.norm, epsilon)[:count]

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Project hidden states `(R, hidden_size)` to logits `(R, vocab_size)` fp32."""
        count = hidden.shape[0]
        padded = functional.pad(hidden, (0, 0, 0, pad_rows(count) - count))
        return linear(padded, self.head)[:count].contiguous()

    @property
    def product_dtype(self) -> torch.dtype:
        """What the layers' products are computed in."""
        return next(self.weights()).matrix.dtype

    def weights(self) -> Iterator[LinearWeight | GroupedWeight]:
        """All projections."""
        for layer in self.layers:
            yield from layer.mixer.weights()
            yield from layer.ffn.weights()
        yield self.head
