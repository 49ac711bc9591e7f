"""Where the time of a run went: into the engine, or into the framework around it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_STARTED: Final = 19
"""Where a process's start stands in `/proc/PID/stat`, counted from the field after its name: ticks since boot."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one run of the command.

    `wall` is all of them since the command's process began; `engine` those in which at least one engine was imported,
    loaded a model or ran. Reports only: no compared value ever depends on them.
    """

    wall: float
    engine: float

    @property
    def framework(self) -> float:
        """Seconds in which no engine was at work."""
        return max(self.wall - self.engine, 0.0)

    @property
    def share(self) -> float:
        """The framework's part of the whole, from 0 to 1."""
        return self.framework / self.wall if self.wall > 0.0 else 0.0

    def in_words(self) -> str:
        """Return one line."""
        return f"The framework around the engine took {self.framework:.1f} s of {self.wall:.1f} s ({self.share:.0%})."

    def as_json(self) -> dict[str, Any]:
        """Return the entry `timing` of the `golden.run/1` document."""
        return {
            "wall_seconds": round(self.wall, 3),
            "engine_seconds": round(self.engine, 3),
            "framework_seconds": round(self.framework, 3),
            "framework_share": round(self.share, 4),
        }


def process_began() -> float:
    """Return when this process began, on the clock of `time.monotonic`: its interpreter and imports count too.

    Where the system does not tell it, this is now.
    """
    now = time.monotonic()
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        started = int(fields[_STARTED]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - max(age, 0.0)
