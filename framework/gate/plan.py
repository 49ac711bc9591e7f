"""Shards: the fixtures of a lane dealt over several jobs, by the seconds they took and the models they load."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from framework.errors import UsageError

LOAD_SECONDS: Final = 2.0
"""What a shard pays for each model that it loads, as far as a plan is concerned."""

DEFAULT_SECONDS: Final = 1.0
"""What a fixture is taken to need that was never run."""

_SHARE: Final = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4}):((?: [A-Za-z0-9][A-Za-z0-9_/-]*)*)")
_MOST_SHARDS: Final = 256
"""GitHub's limit of jobs in a matrix."""


@dataclass(frozen=True, slots=True)
class Share:
    """One shard: its number, how many there are, and its fixtures; written `2/4: first/fixture second/fixture`."""

    number: int
    of: int
    fixtures: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.number}/{self.of}:{''.join(f' {name}' for name in self.fixtures)}"

    @classmethod
    def parse(cls, text: str) -> Share:
        """Read what `str` of a share gives.

        Raises:
            UsageError: it is no share.
        """
        found = _SHARE.fullmatch(text)
        if found is None or int(found[1]) > int(found[2]):
            raise UsageError(f"--shard {text[:80]!r}: expected what `golden gate plan` prints, such as '2/4: a/b c/d'")
        names = tuple(found[3].split())
        if len(set(names)) != len(names):
            raise UsageError(
                f"--shard {text[:80]!r}: it names a fixture twice; take it as `golden gate plan` prints it"
            )
        return cls(int(found[1]), int(found[2]), names)


@dataclass(frozen=True, slots=True)
class Load:
    """One fixture as a plan sees it: its model, and how many seconds it needs (0 where it will be left out)."""

    fixture: str
    model: str
    seconds: float


def shards(loads: Iterable[Load], count: int) -> tuple[Share, ...]:
    """Deal fixtures over at most `count` shards so that the longest is short; the same input gives the same plan.

    They are dealt twice, one by one and in pieces of one model, each time the longest first to the shard that would
    end first with it, the loading of a model included; the better plan is taken. No shard is empty.

    Raises:
        UsageError: the count makes no sense.
    """
    if not 1 <= count <= _MOST_SHARDS:
        raise UsageError(f"--shards {count}: give a number from 1 to {_MOST_SHARDS}")
    ordered = sorted(loads, key=lambda load: (-load.seconds, load.model, load.fixture))
    number = min(count, max(len(ordered), 1))
    singly = [[load] for load in ordered]
    plans = [_dealt(pieces, number) for pieces in (singly, _pieces(ordered, number))]
    best = min(plans, key=_longest)
    filled = [sorted(load.fixture for load in dealt) for dealt in best if dealt] or [[]]
    return tuple(Share(number, len(filled), tuple(names)) for number, names in enumerate(filled, start=1))


def matrix(shares: Sequence[Share]) -> dict[str, Any]:
    """Return the plan as GitHub Actions takes it for `strategy.matrix`."""
    return {"include": [{"name": f"{share.number} of {share.of}", "shard": str(share)} for share in shares]}


def _pieces(loads: Sequence[Load], count: int) -> list[list[Load]]:
    """Return the loads of each model in pieces that one shard could take, the longest first."""
    target = sum(load.seconds for load in loads) / count
    pieces: list[list[Load]] = []
    for model in sorted({load.model for load in loads}):
        piece: list[Load] = []
        for load in (each for each in loads if each.model == model):
            if piece and (_seconds(piece) + load.seconds > target or not load.seconds):
                pieces.append(piece)
                piece = []
            piece.append(load)
        pieces.append(piece)
    return sorted(pieces, key=lambda piece: (-_seconds(piece), piece[0].model, piece[0].fixture))


def _dealt(pieces: Sequence[Sequence[Load]], count: int) -> list[list[Load]]:
    """Deal each piece to the shard that would end first with it, the emptier one of two that would end alike."""
    dealt: list[list[Load]] = [[] for _ in range(count)]
    seconds, models = [0.0] * count, [set[str]() for _ in range(count)]
    for piece in pieces:
        takes, model = _seconds(piece), {piece[0].model} if _seconds(piece) else set[str]()
        ends = [
            (seconds[index] + takes + LOAD_SECONDS * len(model - models[index]), len(dealt[index]), index)
            for index in range(count)
        ]
        end, _, best = min(ends)
        seconds[best] = end
        models[best] |= model
        dealt[best].extend(piece)
    return dealt


def _longest(plan: Sequence[Sequence[Load]]) -> tuple[float, float]:
    """Return when a plan ends, and the seconds that all its shards take together."""
    ends = [_end(shard) for shard in plan]
    return max(ends), sum(ends)


def _end(loads: Sequence[Load]) -> float:
    return _seconds(loads) + LOAD_SECONDS * len({load.model for load in loads if load.seconds})


def _seconds(loads: Sequence[Load]) -> float:
    return sum(load.seconds for load in loads)


def recorded_seconds(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds that fixtures took, from a `golden.run/1` or a `golden.gate/1` document.

    Raises:
        UsageError: it is neither.
    """
    entries = document.get("fixtures")
    try:
        pairs = {entry["fixture"]: float(entry["seconds"]) for entry in entries or ()}
    except (TypeError, KeyError, ValueError):
        pairs = {}
    if not isinstance(entries, list) or len(pairs) != len(entries):
        raise UsageError("--times: it is no document of `golden run --json` or of `golden gate --json`")
    return {name: seconds for name, seconds in pairs.items() if seconds > 0}
