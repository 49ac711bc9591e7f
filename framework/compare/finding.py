"""One thing that is wrong, and the sum of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class FindingClass(StrEnum):
    """The kinds of findings; the names are part of the machine-readable interface."""

    COUNTER = "COUNTER"
    TOKEN = "TOKEN"  # noqa: S105
    LENGTH = "LENGTH"
    TEXT = "TEXT"
    LOGPROB = "LOGPROB"
    ROUTING = "ROUTING"
    PERFORMANCE = "PERFORMANCE"
    STRUCTURE = "STRUCTURE"
    NON_FINITE = "NON_FINITE"
    RULES = "RULES"
    SETTINGS_DRIFT = "SETTINGS_DRIFT"
    WITNESS = "WITNESS"
    RELATION = "RELATION"
    STALE = "STALE"
    SEAL = "SEAL"
    ENGINE_CRASH = "ENGINE_CRASH"
    TIME_LIMIT = "TIME_LIMIT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    STALE_REGEN = "STALE_REGEN"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    `path` points into the record, such as `requests["0"].generated_tokens[1]`; `golden` and `current` are the JSON
    values there (None where there is none); `error` and `allowed` are the measured and the permitted absolute
    difference where the rule is numeric.
    """

    kind: FindingClass
    path: str
    rule: str
    message: str
    golden: Any = None
    current: Any = None
    error: float | None = None
    allowed: float | None = None
    cause: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the finding as an entry of the `golden.run/1` document."""
        document = {
            "class": self.kind.value,
            "path": self.path,
            "rule": self.rule,
            "golden": self.golden,
            "current": self.current,
            "error": self.error,
            "allowed": self.allowed,
            "message": self.message,
        }
        return document if self.cause is None else document | {"cause": self.cause}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of comparing one record with one golden.

    `compared` counts leaf scalars judged under an assert rule, `informed` and `ignored` those that were not judged.
    """

    findings: tuple[Finding, ...]
    compared: int
    informed: int
    ignored: int
