"""What every verb that changes goldens asks first: a reason that can be read, no CI, and somebody who says yes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from framework.errors import UsageError
from framework.visible import is_visible

if TYPE_CHECKING:
    import argparse

_NO = ("", "0", "false", "no")


def readable_reason(reason: str, why: str) -> str:
    """Return a reason without its outer blanks; `why` says what it is needed for.

    Raises:
        UsageError: nobody could read it.
    """
    text = reason.strip()
    if not is_visible(text):
        raise UsageError(f"--reason is empty; say {why}, for whoever reads them later")
    return text


def refuse_under_ci(way_out: str) -> None:
    """Refuse to change goldens where nobody looks at them.

    Raises:
        UsageError: the variable CI is set, to anything but a no.
    """
    if os.environ.get("CI", "").strip().lower() not in _NO:
        raise UsageError(f"CI is set, so no golden is written; {way_out}")


def refuse_without_an_answer(arguments: argparse.Namespace) -> None:
    """Refuse to begin what will have to be asked about, where nobody can be asked.

    Raises:
        UsageError: there is neither `--yes` nor a terminal.
    """
    if not arguments.yes and not can_be_asked(arguments):
        raise UsageError("nobody is there to be asked; give `--yes` to go on without asking")


def can_be_asked(arguments: argparse.Namespace) -> bool:
    """Say whether there is a person to ask."""
    return not arguments.json and sys.stdin is not None and sys.stdin.isatty()


def agreed(arguments: argparse.Namespace, question: str) -> bool:
    """Return the answer to a question, or yes where `--yes` has given it."""
    if arguments.yes:
        return True
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
