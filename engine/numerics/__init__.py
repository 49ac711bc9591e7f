"""Numerics that make a token's bits depend on its own sequence alone."""

from engine.numerics.check import NumericsError, SelfCheck, self_check
from engine.numerics.fingerprint import environment_fingerprint
from engine.numerics.gemm import ROW_MULTIPLE, Strategy, linear, pad_rows

__all__ = [
    "ROW_MULTIPLE",
    "NumericsError",
    "SelfCheck",
    "Strategy",
    "environment_fingerprint",
    "linear",
    "pad_rows",
    "self_check",
]
