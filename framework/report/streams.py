"""Results go to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from typing import Any, TextIO

from framework.redact import Redactor, redacted
from framework.report.neutral import OLD_COMMAND, neutral


def prepare_streams() -> None:
    """Make stdout and stderr take any text, and exist: a process may be started with either of them closed.

    What is missing is opened on the null device, at its own descriptor, so that no file of ours takes its number.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def out(text: str, end: str = "\n") -> None:
    """Print a line of a result, without secrets; it controls neither the terminal nor a pipeline that reads the log."""
    _write(f"{neutral(redacted(text))}{end}")


def out_drawn(text: str) -> None:
    """Print what is drawn already, with its colours; whoever drew it has made the texts of others harmless."""
    _write(redacted(text))


def _write(text: str) -> None:
    """Write to stdout.

    A reader that left, or a full disk, ends the output and not the command: what it found still ends in its exit code.
    """
    try:
        sys.stdout.write(text)
    except OSError as error:
        _give_up(sys.stdout, error)


def flush_out() -> None:
    """Send out what was printed, with the same patience."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _give_up(sys.stdout, error)


def log(text: str) -> None:
    """Print a line that is not part of a result, as harmless as one that is."""
    tell_pipeline(neutral(redacted(text)))


def tell_pipeline(text: str) -> None:
    """Print a line for the pipeline that reads the log, as it stands but for secrets."""
    try:
        sys.stderr.write(f"{redacted(text)}\n")
        sys.stderr.flush()
    except OSError as error:
        _give_up(sys.stderr, error)


def _give_up(stream: TextIO, error: OSError) -> None:
    """Send the rest of a stream nowhere; say so, unless its reader chose to leave."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    if stream is sys.stdout and not isinstance(error, BrokenPipeError):
        log(f"golden: the output could not be written: {error.strerror or error}")


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    _write(f"{json_text(document)}\n")


def json_text(document: Any) -> str:
    """Return strict JSON without secrets; NaN and infinities, which it has not, become the strings "NaN" and so on.

    It is ASCII without controls, and no line of it is a command to a pipeline: what would be one is written as an
    escape of JSON, so a machine reads the same texts.
    """
    text = json.dumps(_finite(Redactor.of(os.environ).value(document)), indent=2, allow_nan=False)
    return OLD_COMMAND.sub(r"\\u0023#", text.replace("\x7f", r"\u007f"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(child) for child in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
