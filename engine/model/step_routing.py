"""Which experts the tokens of one step go to: what the layers chose, and what they were told to choose."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.expert_tensors import MoeShape
from engine.numerics.gemm import pad_rows


@dataclass(frozen=True, slots=True)
class StepRouting:
    """Expert ids of a step's tokens, padded as `pad_rows` says.

    Attributes:
        chosen: `(rows, moe_layers, experts_per_token)` int64, written by the layers.
        forced: the same shape; the layers take these instead of their own choice. `None` leaves them free.
    """

    chosen: Tensor
    forced: Tensor | None

    @classmethod
    def begin(cls, moe: MoeShape, count: int, forced: Tensor | None, device: torch.device) -> StepRouting:
        """Make room for a step of `count` tokens; `forced` is `(count, moe_layers, experts_per_token)` or `None`."""
        rows, size = pad_rows(count), (len(moe.layers), moe.experts_per_token)
        chosen = torch.zeros(rows, *size, dtype=torch.int64, device=device)
        if forced is None:
            return cls(chosen, None)
        # Rows of padding need experts too, each of them another.
        padding = torch.arange(moe.experts_per_token, device=device).expand(rows - count, *size)
        return cls(chosen, torch.cat((forced, padding)))
