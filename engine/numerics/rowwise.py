"""Functions of single rows or elements, built only from operations whose bits do not depend on the place.

A vectorised loop ends in a scalar tail, and where the two use different approximations (SiLU and sigmoid do), an
element's bits depend on where the threads' borders fall. Multiplication, division and the square root are exact
roundings everywhere; `exp` and `log` are not, and `self_check` looks at them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.numerics.threads import run

_SINGLE_THREAD_EXPONENTIALS = 1 << 17


def exp_(x: Tensor) -> Tensor:
    """`exp`, in place, of contiguous fp32 numbers."""
    return run(torch.exp_, x, is_small=x.numel() <= _SINGLE_THREAD_EXPONENTIALS)


def silu(x: Tensor) -> Tensor:
    """`x / (1 + exp(-x))`, computed in fp32 and rounded once to the dtype of `x`."""
    wide = x.float()
    denominator = exp_(wide.neg()).add_(1.0)
    # Into memory that is in the caches already: new memory costs a small operation several times what it computes.
    return torch.div(wide, denominator, out=denominator).to(x.dtype)


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Root-mean-square norm over the last dimension, in fp32, rounded before the weight is applied.

    Args:
        x: `(..., D)` with at least `ROW_MULTIPLE` rows.
        weight: broadcasts to `x`, same dtype.
        epsilon: added to the mean square.
    """
    wide = x.float()
    squares = wide.square()
    scale = squares.mean(-1, keepdim=True).add_(epsilon).rsqrt_()
    return torch.mul(wide, scale, out=squares).to(x.dtype).mul_(weight)
