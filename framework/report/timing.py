"""Where the time of a run went: into the engine, or into the framework around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one run of the command.

    `wall` is all of them since the command began; `engine` those in which an engine ran a fixture, or in which its
    start was waited for. Reports only: no compared value ever depends on them.
    """

    wall: float
    engine: float

    @property
    def framework(self) -> float:
        """Seconds in which no engine was waited for."""
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
