"""`exp` and `log` in fp64 from operations that IEEE 754 rounds exactly, so that their bits are the same everywhere.

A library's functions are right to the last digit or the one before it, which depends on the instruction set, the
device, and on whether an element falls into a vector or into its rest. These are right to about 13 digits only, but
they are made of additions, products, quotients and shifts of the exponent, one kernel each, which leave no choice.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_LN_2 = 0.6931471805599453
_LOG2_E = 1.4426950408889634
_SQRT_HALF = 0.7071067811865476
_LEAST_EXPONENT = -700.0
_EXP_DEGREE = 12
_ATANH_TERMS = 9
_EXPONENT_BIAS = 1023
_MANTISSA_BITS = 52


def exp_of_negative(x: Tensor) -> Tensor:
    """`exp` of float64 numbers that are 0 or less; what lies below e⁻⁷⁰⁰ counts as that.

    The argument is split into a multiple of ln 2, which becomes the exponent, and a rest of at most half of it, for
    which the Taylor series is summed.
    """
    clamped = x.clamp(min=_LEAST_EXPONENT)
    halvings = clamped.mul(_LOG2_E).round_()
    rest = clamped.sub_(halvings.mul(_LN_2))
    series = torch.full_like(rest, 1.0 / math.factorial(_EXP_DEGREE))
    for degree in range(_EXP_DEGREE - 1, -1, -1):
        series.mul_(rest).add_(1.0 / math.factorial(degree))
    power = halvings.long().add_(_EXPONENT_BIAS).mul_(1 << _MANTISSA_BITS).view(torch.float64)
    return series.mul_(power)


def log(x: Tensor) -> Tensor:
    """`log` of positive float64 numbers.

    The number is split into a power of two and a factor m between √½ and √2, whose logarithm is twice the area tangent
    of (m − 1) / (m + 1), of which the series is summed.
    """
    factor, exponent = torch.frexp(x)
    is_small = factor < _SQRT_HALF
    factor = torch.where(is_small, factor * 2.0, factor)
    exponent = exponent.double() - is_small.double()
    ratio = (factor - 1.0) / (factor + 1.0)
    square = ratio * ratio
    series = torch.full_like(square, 1.0 / (2 * _ATANH_TERMS + 1))
    for term in range(_ATANH_TERMS - 1, -1, -1):
        series.mul_(square).add_(1.0 / (2 * term + 1))
    return series.mul_(ratio).mul_(2.0).add_(exponent.mul_(_LN_2))
