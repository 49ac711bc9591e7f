"""Why a gate refuses a change, whatever its fixtures say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from framework.errors import ExitCode


class RefusalClass(StrEnum):
    """The kinds of refusals; the names are part of the machine-readable interface."""

    NOT_THE_HEAD = "NOT_THE_HEAD"
    NOTHING_SELECTED = "NOTHING_SELECTED"
    NOT_RUN = "NOT_RUN"
    LANE_SHRUNK = "LANE_SHRUNK"
    JUDGES_LESS = "JUDGES_LESS"
    NO_REASON = "NO_REASON"
    NOT_PROVEN = "NOT_PROVEN"
    OUT_OF_SCOPE = "OUT_OF_SCOPE"
    STALE_REGEN = "STALE_REGEN"
    SIBLING = "SIBLING"
    MALFORMED = "MALFORMED"
    SHARD = "SHARD"
    UNFINISHED = "UNFINISHED"
    ERROR = "ERROR"


EXIT_CODES = {
    RefusalClass.NOT_THE_HEAD: ExitCode.USAGE,
    RefusalClass.NOTHING_SELECTED: ExitCode.NOTHING_SELECTED,
    RefusalClass.NOT_RUN: ExitCode.NOTHING_SELECTED,
    RefusalClass.LANE_SHRUNK: ExitCode.REGRESSION,
    RefusalClass.JUDGES_LESS: ExitCode.REGRESSION,
    RefusalClass.NO_REASON: ExitCode.GOLDEN,
    RefusalClass.NOT_PROVEN: ExitCode.GOLDEN,
    RefusalClass.OUT_OF_SCOPE: ExitCode.REGRESSION,
    RefusalClass.STALE_REGEN: ExitCode.GOLDEN,
    RefusalClass.SIBLING: ExitCode.GOLDEN,
    RefusalClass.MALFORMED: ExitCode.MALFORMED,
    RefusalClass.SHARD: ExitCode.ENGINE,
    RefusalClass.UNFINISHED: ExitCode.ENGINE,
    RefusalClass.ERROR: ExitCode.ENGINE,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason to refuse: what it is about (`subject`), why and the way out, and the commit that brought it in."""

    kind: RefusalClass
    subject: str
    message: str
    commit: str = ""
    exit_code: ExitCode | None = None

    @property
    def code(self) -> ExitCode:
        """The exit code it ends with: its own, else that of its class."""
        return EXIT_CODES[self.kind] if self.exit_code is None else self.exit_code

    def as_json(self) -> dict[str, Any]:
        """Return it as an entry of the `golden.gate/1` document."""
        entry = {"class": self.kind.value, "subject": self.subject, "message": self.message}
        return {**entry, "exit_code": int(self.code), "commit": self.commit or None}
