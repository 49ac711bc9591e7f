"""How small a change of a performance figure its samples could show at all: the minimum detectable effect.

Samples are ratios or rates, so they are looked at by their logarithms. With s their standard deviation and n their
number, the median of them is uncertain by about sqrt(pi / 2) * s / sqrt(n). A change is detectable if a test at the 5 %
level would find it four times in five: the uncertainty times the sum of the two quantiles of Student's t (Bloom,
Minimum Detectable Effects, Evaluation Review 19, 1995).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, Final

_MEDIAN_OVER_MEAN: Final = math.sqrt(math.pi / 2.0)
_TWO_SIDED_5_PERCENT: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_ONE_SIDED_20_PERCENT: Final = (1.376, 1.061, 0.978, 0.941, 0.920, 0.906, 0.896, 0.889, 0.883, 0.879)
"""Student's t for 1 to 10 degrees of freedom; those of 10 are kept beyond, which errs on the safe side."""
_LARGEST_EXPONENT: Final = 700.0
_FEWEST: Final = 2


def minimum_detectable_effect(*sides: Any) -> float | None:
    """Return the smallest relative change that could be told from noise, such as 0.1 for 10 %.

    `sides` are the samples on each side of a comparison; one that is no list of at least two positive finite numbers
    adds no uncertainty that is known. None if there is no side that does.
    """
    uncertainties = [found for side in sides if (found := _uncertainty(side)) is not None]
    if not uncertainties:
        return None
    squares = sum(error * error for error, _ in uncertainties)
    freedom = min(count for _, count in uncertainties) - 1
    place = min(freedom, len(_TWO_SIDED_5_PERCENT)) - 1
    multiple = _TWO_SIDED_5_PERCENT[place] + _ONE_SIDED_20_PERCENT[place]
    return math.expm1(min(multiple * math.sqrt(squares), _LARGEST_EXPONENT))


def relative_error_of_median(samples: Sequence[float]) -> float:
    """Return the standard error of the median of positive samples, relative to it; infinite for fewer than two."""
    found = _uncertainty(list(samples))
    return math.inf if found is None else found[0]


def _uncertainty(side: Any) -> tuple[float, int] | None:
    """Return the standard error of the median of the samples' logarithms, and how many there are."""
    if type(side) is not list or len(side) < _FEWEST:
        return None
    if not all(type(value) in (int, float) and 0 < value < math.inf for value in side):
        return None
    spread = statistics.stdev(map(math.log, side))
    return _MEDIAN_OVER_MEAN * spread / math.sqrt(len(side)), len(side)
