"""Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import math
import sys
from typing import Any


def out(text: str) -> None:
    """Print a line of a result."""
    sys.stdout.write(f"{text}\n")


def log(text: str) -> None:
    """Print a line that is not part of a result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    out(json_text(document))


def json_text(document: Any) -> str:
    """Return strict JSON; NaN and infinities, which it has not, become the strings "NaN" and "Infinity"."""
    return json.dumps(_finite(document), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(child) for child in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
