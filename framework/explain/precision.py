"""How fine a number format is: the unit in the last place (ULP), against which a margin means something."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIGNIFICAND_BITS: Final = {"fp32": 24, "float32": 24, "bf16": 8, "bfloat16": 8, "fp16": 11, "float16": 11}


def dtype_of(record: Mapping[str, Any]) -> str | None:
    """Return the number format a record or a golden was computed in, where it says so and the format is known."""
    for section in ("settings", "environment"):
        found = record.get(section)
        value = found.get("dtype") if isinstance(found, dict) else None
        name = value.get("value") if isinstance(value, dict) else value
        if isinstance(name, str) and name in _SIGNIFICAND_BITS:
            return name
    return None


def unit_in_the_last_place(value: float, dtype: str) -> float:
    """Return the distance between neighbouring numbers of a format at `value`, which is finite and not zero.

    Subnormal numbers are none of a logit's; where the distance is too small for a double it is 0.
    """
    _, exponent = math.frexp(abs(value))
    return math.ldexp(1.0, exponent - _SIGNIFICAND_BITS[dtype])


def margin_in_ulps(margin: float, logprob: float | None, dtype: str | None) -> tuple[float, float] | None:
    """Return a margin in ULPs, and the magnitude of the logit at which the ULP was taken.

    Logits mean something up to a constant only, and a golden stores none. They are taken in their normalised form, as
    log-probabilities: the magnitude is that of the runner-up, `|logprob| + margin`. None where that is not known.
    """
    if logprob is None or dtype is None:
        return None
    magnitude = abs(logprob) + abs(margin)
    unit = unit_in_the_last_place(magnitude, dtype) if math.isfinite(magnitude) and magnitude else 0.0
    return (margin / unit, magnitude) if unit else None
