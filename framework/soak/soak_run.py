"""What one run of a soak showed, as it is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from framework.errors import ExitCode

KEPT_FINDINGS: Final = 5
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "run": (int,),
    "kinds": (list,),
    "order": (list, type(None)),
    "arrivals": (list, type(None)),
    "overrides": (dict,),
    "exit_code": (int,),
    "compared": (int,),
    "seconds": (int, float),
    "deviations": (dict,),
    "finding_count": (int,),
    "findings": (list,),
    "date": (str,),
}


@dataclass(frozen=True, slots=True)
class SoakRun:
    """One run.

    `kinds`, `overrides`, `order` and `arrivals` say how it was varied; `seconds` and `date` (of the run, UTC) are for
    information. `deviations` holds, per field that is judged within a tolerance, the largest absolute difference from
    the golden. `findings` are the first ones as JSON, `finding_count` how many there were.
    """

    number: int
    kinds: tuple[str, ...]
    exit_code: ExitCode
    compared: int
    seconds: float
    date: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[int, ...] | None = None
    arrivals: tuple[int, ...] | None = None
    deviations: Mapping[str, float] = field(default_factory=dict)
    findings: tuple[Mapping[str, Any], ...] = ()
    finding_count: int = 0

    @property
    def is_varied(self) -> bool:
        """Whether anything was changed from what the manifest says."""
        return bool(self.kinds)

    @property
    def has_failed(self) -> bool:
        """Whether it found anything, a crash included."""
        return self.exit_code is not ExitCode.GOOD

    @property
    def variation(self) -> str:
        """What it changed, in words."""
        return ", ".join(self.kinds) or "as written"

    def as_json(self) -> dict[str, Any]:
        """Return the run as a JSON object."""
        return {
            "run": self.number,
            "kinds": list(self.kinds),
            "overrides": dict(self.overrides),
            "order": None if self.order is None else list(self.order),
            "arrivals": None if self.arrivals is None else list(self.arrivals),
            "exit_code": int(self.exit_code),
            "compared": self.compared,
            "seconds": self.seconds,
            "date": self.date,
            "deviations": dict(self.deviations),
            "finding_count": self.finding_count,
            "findings": [dict(finding) for finding in self.findings],
        }

    def as_line(self) -> bytes:
        """Return the run as one line of JSON, its newline last."""
        return json.dumps(self.as_json()).encode() + b"\n"


def soak_run_from(entry: Mapping[str, Any]) -> SoakRun | None:
    """Return the run that a JSON object holds, or None if it is none."""
    if not all(type(entry.get(name)) in types for name, types in _TYPES.items()):
        return None
    order, arrivals = entry["order"], entry["arrivals"]
    try:
        exit_code = ExitCode(entry["exit_code"])
    except ValueError:
        return None
    return SoakRun(
        number=entry["run"],
        kinds=tuple(map(str, entry["kinds"])),
        exit_code=exit_code,
        compared=entry["compared"],
        seconds=float(entry["seconds"]),
        date=entry["date"],
        overrides=entry["overrides"],
        order=None if order is None else tuple(order),
        arrivals=None if arrivals is None else tuple(arrivals),
        deviations=entry["deviations"],
        findings=tuple(entry["findings"]),
        finding_count=entry["finding_count"],
    )
