"""Rotary positions: tables computed once, the rotation built from exact roundings."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.numerics.threads import one_thread


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and signed sines `(T, 1, head_dim)` fp32, of the angles of T tokens."""

    cosine: Tensor
    signed_sine: Tensor

    def apply(self, x: Tensor) -> Tensor:
        """Rotate heads `(T, H, head_dim)`; computed in fp32 and rounded once to the dtype of `x`."""
        wide = x.float()
        half = x.shape[-1] // 2
        swapped = torch.cat((wide[..., half:], wide[..., :half]), dim=-1)
        return (wide * self.cosine).add_(swapped.mul_(self.signed_sine)).to(x.dtype)


@dataclass(frozen=True, slots=True)
class RotaryTable:
    """Rotations of every position `(max_positions, 1, head_dim)`."""

    cosine: Tensor
    signed_sine: Tensor

    @property
    def max_positions(self) -> int:
        """Positions the table has."""
        return self.cosine.shape[0]

    def at(self, positions: Tensor) -> Rotation:
        """The rotations of T positions `(T,)` int64."""
        return Rotation(self.cosine.index_select(0, positions), self.signed_sine.index_select(0, positions))


def rotary_table(*, head_dim: int, theta: float, max_positions: int, device: torch.device) -> RotaryTable:
    """Compute the table: fp32 frequencies and fp32 angles, as transformers has them.

    The cosines and sines are taken in fp64 and rounded, so that they do not depend on which fp32 approximation the
    instruction set has; one thread, so that no border between threads falls into the table.
    """
    frequencies = torch.tensor([1.0 / theta ** (index / head_dim) for index in range(0, head_dim, 2)])
    with one_thread():
        angles = (torch.arange(max_positions, dtype=torch.float32)[:, None] * frequencies).double()
        cosine, sine = angles.cos().float(), angles.sin().float()
    return RotaryTable(
        cosine=torch.cat((cosine, cosine), dim=-1)[:, None].to(device),
        signed_sine=torch.cat((-sine, sine), dim=-1)[:, None].to(device),
    )
