"""Gated feed-forward network: a layer's ffn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.step_routing import StepRouting
from engine.numerics.gemm import ROW_BUCKETS, LinearWeight, linear
from engine.numerics.rowwise import silu


@dataclass(frozen=True, slots=True)
class GatedMlp:
    """`down(silu(gate(x)) * up(x))`.

    Attributes:
        gate_up: gate and up projections, stacked in this order.
        down: down projection.
    """

    gate_up: LinearWeight
    down: LinearWeight

    def __call__(self, x: Tensor, routing: StepRouting | None = None) -> Tensor:
        """Transform tokens `(T, hidden_size)` one by one; there is nothing to route."""
        del routing
        if x.shape[0] <= ROW_BUCKETS[-1] or x.device.type != "cpu":
            return self._transform(x)
        # As many rows at a time as a product has: what lies between the products then stays in a CPU's caches.
        return torch.cat([self._transform(piece) for piece in torch.split(x, ROW_BUCKETS[-1])])

    def _transform(self, x: Tensor) -> Tensor:
        gate, up = linear(x, self.gate_up).chunk(2, dim=1)
        return linear(silu(gate).mul_(up), self.down)

    def weights(self) -> Iterator[LinearWeight]:
        """The layer's projections."""
        yield self.gate_up
        yield self.down
