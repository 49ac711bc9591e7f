"""Mixture of experts: a layer's ffn that sends each token to a few of many small gated networks.

A token's bits depend on the token alone: experts multiply rows that do not know each other (`engine.numerics.grouped`),
and what a token's experts give is added in the order in which they were chosen, never as it happens to arrive.

The router is that of Mixtral (Jiang et al. 2024, arXiv:2401.04088): softmax over all experts, then the best few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.step_routing import StepRouting
from engine.numerics.gemm import ROW_BUCKETS, LinearWeight, linear
from engine.numerics.grouped import GroupedWeight, grouped_linear, place_in_groups
from engine.numerics.rowwise import silu


@dataclass(frozen=True, slots=True)
class MixtureOfExperts:
    """The experts of one layer and their router.

    Attributes:
        index: its place among the layers with experts.
        experts_per_token: k, the experts a token is sent to.
        renormalise: the probabilities of these are divided by their sum.
        router: scores the experts, in fp32 for every dtype: rounded scores would tie.
        gate_up: gate and up projections of every expert, stacked in this order.
        down: down projections.
        buckets: from `bucket_table`.
    """

    index: int
    experts_per_token: int
    renormalise: bool
    router: LinearWeight
    gate_up: GroupedWeight
    down: GroupedWeight
    buckets: Tensor

    def __call__(self, x: Tensor, routing: StepRouting | None) -> Tensor:
        """Transform tokens `(T, hidden_size)` one by one; `routing` is told, or tells, which experts they go to."""
        probabilities = route(linear(x, self.router))
        if routing is not None and routing.forced is not None:
            experts = routing.forced[:, self.index]
        else:
            experts = best_experts(probabilities, self.experts_per_token)
        if routing is not None:
            routing.chosen[:, self.index] = experts
        shares = self._shares(probabilities.gather(1, experts))
        # An expert gets no more rows than there are tokens: so many at a time are one proven product.
        pieces = (torch.split(part, ROW_BUCKETS[-1]) for part in (x, experts, shares))
        return torch.cat([self._mix(*piece) for piece in zip(*pieces, strict=True)])

    def weights(self) -> Iterator[LinearWeight | GroupedWeight]:
        """The layer's products."""
        yield self.router
        yield self.gate_up
        yield self.down

    def _shares(self, probabilities: Tensor) -> Tensor:
        """What each of the chosen experts contributes, `(T, k)` fp32."""
        if not self.renormalise:
            return probabilities
        return probabilities / _ordered_sum(probabilities.unbind(1))[:, None]

    def _mix(self, x: Tensor, experts: Tensor, shares: Tensor) -> Tensor:
        """Send up to 256 tokens through their experts, and add up what these give."""
        placed = place_in_groups(experts.reshape(-1), self.gate_up.matrix.shape[0], x.shape[0], self.buckets)
        tokens = torch.arange(x.shape[0], device=x.device).repeat_interleave(self.experts_per_token)
        # Rows of padding repeat the first token: any finite numbers will do.
        sources = tokens.new_zeros(placed.capacity).index_copy_(0, placed.rows, tokens)
        gate, up = grouped_linear(x.index_select(0, sources), self.gate_up, placed.ends).chunk(2, dim=1)
        results = grouped_linear(silu(gate).mul_(up), self.down, placed.ends)
        by_choice = results.index_select(0, placed.rows).view(*experts.shape, -1).float()
        return _ordered_sum((by_choice * shares[..., None]).unbind(1)).to(x.dtype)


def route(scores: Tensor) -> Tensor:
    """Probabilities of the experts `(T, experts)` fp32, from their scores."""
    return torch.softmax(scores.float().contiguous(), dim=-1)


def best_experts(probabilities: Tensor, count: int) -> Tensor:
    """The most probable experts of each token, `(T, count)` int64, best first; of equals the lowest id first."""
    order = probabilities.sort(dim=-1, descending=True, stable=True).indices
    return order[:, :count].contiguous()


def _ordered_sum(parts: tuple[Tensor, ...]) -> Tensor:
    """Add tensors one after another; a library's sum may choose its order by their number of rows."""
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total
