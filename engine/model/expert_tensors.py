"""How checkpoints name and store the tensors of a mixture-of-experts layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

Sizes: TypeAlias = dict[str, tuple[int, ...]]
Read: TypeAlias = Callable[[str], Tensor]
"""Reads a tensor by its name inside the layer."""


@dataclass(frozen=True, slots=True)
class MoeShape:
    """Everything about a model's mixture-of-experts layers except their numbers.

    Attributes:
        layers: indices of the layers that have experts, ascending; the others have a dense ffn.
        num_experts: experts a layer.
        experts_per_token: how many of them a token is sent to.
        intermediate_size: inner size of one expert.
        renormalise: the chosen experts' probabilities are divided by their sum.
    """

    layers: tuple[int, ...]
    num_experts: int
    experts_per_token: int
    intermediate_size: int
    renormalise: bool


@dataclass(frozen=True, slots=True)
class ExpertWeights:
    """The tensors of one layer, whatever the checkpoint's layout.

    Attributes:
        router: `(num_experts, hidden_size)`.
        gate_up: gate and up projections, stacked in this order: `(num_experts, 2 * intermediate_size, hidden_size)`.
        down: `(num_experts, hidden_size, intermediate_size)`.
    """

    router: Tensor
    gate_up: Tensor
    down: Tensor


class ExpertLayout(Protocol):
    """One way of storing a layer's experts; names are relative to the layer."""

    def sizes(self, moe: MoeShape, hidden_size: int) -> Sizes:
        """The name and shape of every tensor."""

    def read(self, read: Read, moe: MoeShape) -> ExpertWeights:
        """Read them."""


@dataclass(frozen=True, slots=True)
class TensorPerExpert:
    """Three tensors an expert; in their names `{}` stands for its number."""

    router: str
    gate: str
    up: str
    down: str

    def sizes(self, moe: MoeShape, hidden_size: int) -> Sizes:
        """The name and shape of every tensor."""
        sizes: Sizes = {self.router: (moe.num_experts, hidden_size)}
        for expert in range(moe.num_experts):
            sizes[self.gate.format(expert)] = (moe.intermediate_size, hidden_size)
            sizes[self.up.format(expert)] = (moe.intermediate_size, hidden_size)
            sizes[self.down.format(expert)] = (hidden_size, moe.intermediate_size)
        return sizes

    def read(self, read: Read, moe: MoeShape) -> ExpertWeights:
        """Read and stack them."""
        experts = range(moe.num_experts)
        return ExpertWeights(
            router=read(self.router),
            gate_up=torch.stack(
                [torch.cat((read(self.gate.format(index)), read(self.up.format(index)))) for index in experts]
            ),
            down=torch.stack([read(self.down.format(index)) for index in experts]),
        )


@dataclass(frozen=True, slots=True)
class FusedExperts:
    """One tensor for all experts' gate and up projections, and one for their down projections."""

    router: str
    gate_up: str
    down: str

    def sizes(self, moe: MoeShape, hidden_size: int) -> Sizes:
        """The name and shape of every tensor."""
        return {
            self.router: (moe.num_experts, hidden_size),
            self.gate_up: (moe.num_experts, 2 * moe.intermediate_size, hidden_size),
            self.down: (moe.num_experts, hidden_size, moe.intermediate_size),
        }

    def read(self, read: Read, moe: MoeShape) -> ExpertWeights:
        """Read them."""
        del moe
        return ExpertWeights(router=read(self.router), gate_up=read(self.gate_up), down=read(self.down))


MIXTRAL_EXPERTS = TensorPerExpert(
    router="block_sparse_moe.gate.weight",
    gate="block_sparse_moe.experts.{}.w1.weight",
    up="block_sparse_moe.experts.{}.w3.weight",
    down="block_sparse_moe.experts.{}.w2.weight",
)
QWEN_EXPERTS = TensorPerExpert(
    router="mlp.gate.weight",
    gate="mlp.experts.{}.gate_proj.weight",
    up="mlp.experts.{}.up_proj.weight",
    down="mlp.experts.{}.down_proj.weight",
)
FUSED_EXPERTS = FusedExperts(router="mlp.gate.weight", gate_up="mlp.experts.gate_up_proj", down="mlp.experts.down_proj")
"""What transformers 5 holds in memory, and saves when it is told to keep its own format."""
