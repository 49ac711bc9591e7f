"""Selection by subtraction: a fixture is left out only where it is proven that its verdict cannot be another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from framework.explain.words import some
from framework.gate.key import Ground, difference, groups_of, key_of
from framework.gate.passes import Pass, Passes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from framework.manifest.fixture import Fixture

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a fixture runs, and why. One that is left out has the pass that proves it, and its key."""

    fixture: Fixture
    runs: bool
    why: str
    key: str | None = None
    proof: Pass | None = None


def decide(
    fixtures: Iterable[Fixture], ground: Ground, passes: Passes, always: Mapping[str, str]
) -> tuple[Decision, ...]:
    """Decide on every fixture of a lane, in the order given; those in `always` run for the reason given there."""
    known = passes.by_fixture(ground.platform)
    otherwise = passes.problem or "it has not passed a gate here before"
    return tuple(
        Decision(fixture, runs=True, why=always[fixture.name])
        if fixture.name in always
        else _decide(fixture, ground, known.get(fixture.name, ()), otherwise)
        for fixture in fixtures
    )


def _decide(fixture: Fixture, ground: Ground, earlier: Sequence[Pass], otherwise: str) -> Decision:
    nearest: tuple[str, ...] | None = None
    for before in earlier:
        now = groups_of(fixture, ground, before.reached)
        if now == before.groups:
            sources = len(now["sources"]) - 1
            what = f"its manifest, golden, model and settings, the {sources} sources it uses, and the environment"
            why = f"unchanged since it passed at {before.head[:12]}: {what}"
            return Decision(fixture, runs=False, why=why, key=key_of(now), proof=before)
        names = difference(before.groups, now)
        if nearest is None or len(names) < len(nearest):
            nearest = names
    why = otherwise if nearest is None else f"since it passed, these changed: {some(nearest, _SHOWN)}"
    return Decision(fixture, runs=True, why=why)
