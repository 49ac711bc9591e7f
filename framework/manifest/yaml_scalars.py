"""What an unquoted YAML scalar means, or why it is refused.

YAML 1.1 and 1.2 read the same characters differently (`no`, `010`, `12:30:45`, a date), and most readers of a manifest
know neither table by heart. So the YAML 1.2 core meaning holds where it is beyond doubt, and everything that one of
the two versions, or a likely author, would read differently is refused: quoting it settles the matter.
"""

from __future__ import annotations

import math
import re

Scalar = str | int | float | bool | None

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_OLD_BOOLEANS = frozenset({"y", "n", "yes", "no", "on", "off"})
_LARGEST_INTEGER = 2**63 - 1

_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_LOOKS_LIKE_A_HASH = re.compile(r"[0-9]+[eE][0-9]+", re.ASCII)
_SHORT_EXPONENT = re.compile(r"[0-9]{1,3}[eE][1-9][0-9]?", re.ASCII)
_NOT_A_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)
_OTHER_BASE = re.compile(r"[-+]?0[xXoObB][0-9a-fA-F_]+", re.ASCII)
_UNDERSCORES = re.compile(r"[-+]?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?", re.ASCII)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?", re.ASCII)


class AmbiguousScalarError(ValueError):
    """An unquoted scalar that is not read; the message says why, without the way out."""


def resolve_plain_scalar(text: str) -> Scalar:
    """Return the value of the unquoted scalar `text`.

    Raises:
        AmbiguousScalarError: `text` has more than one possible meaning, or none that a manifest can hold.
    """
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    first = text[0]
    if first in "0123456789-+.":
        return _resolve_number_like(text)
    if text.lower() in _OLD_BOOLEANS:
        raise AmbiguousScalarError("is a boolean in YAML 1.1 and a string in YAML 1.2")
    if text == "<<":
        raise AmbiguousScalarError("is a merge key in YAML 1.1 and a string in YAML 1.2")
    if text == "=":
        raise AmbiguousScalarError("is a special value in YAML 1.1 and a string in YAML 1.2")
    return text


def _resolve_number_like(text: str) -> Scalar:
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _HEXADECIMAL.fullmatch(text):
        return _bounded(int(text, 16)) if len(text) <= len("0x") + 16 else _too_large()
    if _FLOAT.fullmatch(text):
        return _float(text)
    if _NOT_A_NUMBER.fullmatch(text):
        raise AmbiguousScalarError("is not a finite number")
    if _OTHER_BASE.fullmatch(text):
        raise AmbiguousScalarError("is a number in another base in only one of YAML 1.1 and YAML 1.2")
    if _SEXAGESIMAL.fullmatch(text):
        raise AmbiguousScalarError("is a number of base 60 in YAML 1.1 and a string in YAML 1.2")
    if _UNDERSCORES.fullmatch(text) and "_" in text:
        raise AmbiguousScalarError("is a number in YAML 1.1 and a string in YAML 1.2")
    if _DATE.fullmatch(text):
        raise AmbiguousScalarError("is a date in YAML 1.1 and a string in YAML 1.2")
    return text


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0":
        raise AmbiguousScalarError("is an octal number in YAML 1.1 and a decimal one in YAML 1.2")
    return _bounded(int(text)) if len(digits) <= len(str(_LARGEST_INTEGER)) else _too_large()


def _bounded(value: int) -> int:
    return value if abs(value) <= _LARGEST_INTEGER else _too_large()


def _too_large() -> int:
    raise AmbiguousScalarError("is an integer of more than 64 bits")


def _float(text: str) -> float:
    if _LOOKS_LIKE_A_HASH.fullmatch(text) and not _SHORT_EXPONENT.fullmatch(text):
        raise AmbiguousScalarError("looks like a hash, and reads as a number with an exponent")
    value = float(text)
    if not math.isfinite(value):
        raise AmbiguousScalarError("is a number too large for a 64-bit float")
    return value
