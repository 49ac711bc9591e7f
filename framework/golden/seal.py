"""The seal: SHA-256 over a golden's bytes without the line that holds it.

A golden is believed as a whole or not at all. Two valid goldens merged line by line are valid JSON and mean nothing;
only the seal tells. It is checked on bytes, before anything is parsed. A checkout that turned LF into CRLF is turned
back first: canonical bytes hold no carriage return of their own, so nothing else can hide behind that.
"""

from __future__ import annotations

import hashlib
from typing import Any

from framework.golden.codec import canonical_bytes

_LINE_START = b'\n  "seal": "'
_PLACEHOLDER = b"0" * 64


def sealed_bytes(document: dict[str, Any]) -> bytes:
    """Return the canonical bytes of a document with its `seal` in place.

    Raises:
        ValueError: the document has no canonical form.
    """
    blank = canonical_bytes(document | {"seal": _PLACEHOLDER.decode()})
    start, end = _seal_line(blank)
    assert start >= 0, "the canonical form holds exactly one seal line"
    return blank.replace(_LINE_START + _PLACEHOLDER, _LINE_START + _digest(blank, start, end), 1)


def with_lf(data: bytes) -> bytes:
    """Return the bytes with the line ends they were written with."""
    return data.replace(b"\r\n", b"\n")


def seal_holds(data: bytes) -> bool:
    """Say whether LF-only bytes carry exactly one seal line, and it is theirs."""
    start, end = _seal_line(data)
    if start < 0:
        return False
    expected = _LINE_START + _digest(data, start, end) + b'"'
    return data[start:end] in (expected, expected + b",")


def holds_several_seals(data: bytes) -> bool:
    """Say whether LF-only bytes carry more than one seal line, as only a merge by lines leaves them."""
    return data.count(_LINE_START) > 1


def _seal_line(data: bytes) -> tuple[int, int]:
    """Return where the only seal line starts (at its preceding LF) and ends, or (-1, -1)."""
    start = data.find(_LINE_START)
    end = data.find(b"\n", start + 1)
    if start < 0 or end < 0 or data.find(_LINE_START, end) >= 0:
        return -1, -1
    return start, end


def _digest(data: bytes, start: int, end: int) -> bytes:
    digest = hashlib.sha256(memoryview(data)[:start])
    digest.update(memoryview(data)[end:])
    return digest.hexdigest().encode()
