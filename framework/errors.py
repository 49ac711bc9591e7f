"""What can go wrong for a user, and the exit code each kind ends with.

Every error says where (file, line, setting), what (the value), why, and the way out. They are printed as they are:
no traceback reaches a user.
"""

from __future__ import annotations

import traceback
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """The exit codes of every verb of the command line."""

    GOOD = 0
    REGRESSION = 1
    USAGE = 2
    MALFORMED = 10
    ENGINE = 11
    GOLDEN = 12
    NOTHING_SELECTED = 13


_MIXED_ORDER = (
    ExitCode.USAGE,
    ExitCode.MALFORMED,
    ExitCode.GOLDEN,
    ExitCode.ENGINE,
    ExitCode.REGRESSION,
    ExitCode.NOTHING_SELECTED,
)


def worst_exit_code(codes: list[ExitCode]) -> ExitCode:
    """Return the one exit code of a run whose parts ended with `codes`: the gravest kind wins."""
    for code in _MIXED_ORDER:
        if code in codes:
            return code
    return ExitCode.GOOD


def place_of(error: BaseException) -> str:
    """Return file and line that an exception came from, with the line's fault if it is one of syntax."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def in_words(error: BaseException) -> str:
    """Return an exception as one line: its type, what it says, and where it came from."""
    says = error.msg if isinstance(error, SyntaxError) else str(error)
    said = f"{type(error).__name__}: {' '.join(str(says).split())}"
    place = place_of(error)
    return f"{said} (at {place})" if place else said


def internal_error(error: BaseException) -> str:
    """Return the line for a fault of this project's own."""
    return f"internal error: {in_words(error)}; please report it, with what `GOLDEN_DEBUG=1` adds"


class GoldenInferenceError(Exception):
    """Base of all errors that are meant for the user."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class UsageError(GoldenInferenceError):
    """The command was called in a way that makes no sense."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class ManifestError(GoldenInferenceError):
    """A manifest, a rules file or a lint rule: nothing was run."""

    exit_code: ClassVar[ExitCode] = ExitCode.MALFORMED


class GoldenError(GoldenInferenceError):
    """A golden or a record that is missing, stale, unreadable, or whose seal is broken."""

    exit_code: ClassVar[ExitCode] = ExitCode.GOLDEN


class MissingGoldenError(GoldenError):
    """A golden or a record that is not there at all."""


class SealError(GoldenError):
    """A golden whose bytes are not those that were sealed."""


class EngineError(GoldenInferenceError):
    """The engine crashed, ran out of memory, or exceeded its time limit."""

    exit_code: ClassVar[ExitCode] = ExitCode.ENGINE


class FetchError(GoldenInferenceError):
    """A model could not be fetched: the network, the disk, or a checksum."""

    exit_code: ClassVar[ExitCode] = ExitCode.ENGINE


class NothingSelectedError(GoldenInferenceError):
    """No fixture was selected, or every selected one was skipped."""

    exit_code: ClassVar[ExitCode] = ExitCode.NOTHING_SELECTED
