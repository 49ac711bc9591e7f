"""Products of bf16 numbers by the matrix units of a CPU, on weights that are laid out for them once.

The units (Intel's AMX) multiply bf16 numbers exactly and add the products in fp32, as a widened product does; only the
order of the additions is their own, and the result is rounded once. A product takes a fifth of the widened one's time
and its weights half the memory.

Which CPU has them is a property of the machine, not of a measurement: it decides bits, so it may depend on nothing
that the environment fingerprint does not name. A CPU with bf16 instructions but without such units gains nothing.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

_LIMITS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Environment variables that keep the library from a CPU's best instructions."""

_NO_LIMIT = ("", "ALL", "DEFAULT")


def has_matrix_units() -> bool:
    """Whether this CPU multiplies matrices of bf16 numbers, and torch may let it.

    An environment that keeps torch or its library to older instructions stands for an older CPU.
    """
    limits = [os.environ.get(name, "").upper() for name in _LIMITS]
    return (
        hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and all(limit in _NO_LIMIT or "AMX" in limit for limit in limits)
        and bool(getattr(torch.cpu, "_init_amx", bool)())
    )


def pack(weight: Tensor) -> Tensor:
    """Lay a weight `(out_features, in_features)` bf16 out for `packed_product`; the layout is the library's own."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())  # noqa: SLF001
    return packed


def packed_product(rows: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """`rows @ weight.T + bias` in bf16, added in fp32 and rounded once: `(M, in_features)` to `(M, out_features)`."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(rows, packed, bias, "none", [], "")  # noqa: SLF001
    return result


def packed_product_in_fp32(rows: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """The same product with a result in fp32, good to 17 binary digits, where one rounding to bf16 would leave 8.

    The library rounds what it has summed. A second pass subtracts the rounded result before it rounds, so that it gives
    what the first one lost; both numbers together take half the time of a widened product.
    """
    high = packed_product(rows, packed, bias)
    low: Tensor = torch.ops.mkldnn._linear_pointwise.binary(rows, high, packed, bias, "sub")  # noqa: SLF001
    return high.float().add_(low)
