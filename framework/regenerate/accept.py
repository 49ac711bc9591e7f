"""What bringing candidates in would change, and why some may not come in; nothing is run and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.compare.finding import FindingClass
from framework.errors import ExitCode, GoldenError, UsageError
from framework.golden.codec import canonical_bytes
from framework.golden.store import Golden, golden_path, read_golden
from framework.manifest.suggest import did_you_mean
from framework.regenerate.evidence import evidence_of
from framework.regenerate.examine import problems_of
from framework.regenerate.plan import Change, InForce, Kind, change_to, golden_in_force, why_outside
from framework.regenerate.prove import Problem
from framework.regenerate.relate import with_relations
from framework.regenerate.tolerances import in_words, tolerance_warnings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from framework.manifest.fixture import Fixture
    from framework.regenerate.candidates import Candidate
    from framework.regenerate.today import Today

VALUE_CLASSES = (
    FindingClass.COUNTER,
    FindingClass.TOKEN,
    FindingClass.LENGTH,
    FindingClass.TEXT,
    FindingClass.LOGPROB,
    FindingClass.ROUTING,
    FindingClass.PERFORMANCE,
    FindingClass.STRUCTURE,
    FindingClass.RULES,
)
"""The classes that a value of a golden can move in. What a golden was recorded from (STALE) is no value."""

_BESIDE_VALUES = frozenset({"seal", "provenance"})


def value_class(word: str) -> FindingClass:
    """Return the class that a word names, in any case, as one or as many: `counters`, `Log-probs`.

    Raises:
        UsageError: there is no such class of values.
    """
    plain = word.strip().upper().replace("-", "").replace("_", "").replace(" ", "")
    for kind in VALUE_CLASSES:
        if plain in (kind.value, f"{kind.value}S", f"{kind.value[:-1]}"):
            return kind
    names = [kind.value.lower() for kind in VALUE_CLASSES]
    raise UsageError(f"--only {word!r}: there is no such class. {did_you_mean(word.lower(), names)}")


def plan_acceptance(
    candidates: Sequence[Candidate],
    today: Today,
    only: Iterable[FindingClass] = (),
) -> list[Change]:
    """Return for each candidate what it would change of the golden in force, or why it may not come in.

    With `only`, values may move in these classes and in no other. Relations must hold between the goldens that are in
    force once all of these are.
    """
    allowed = frozenset(kind.value for kind in only)
    return with_relations([_plan(candidate, today, allowed) for candidate in candidates], today)


def _plan(candidate: Candidate, today: Today, allowed: frozenset[str]) -> Change:
    target = golden_path(today.workspace.goldens_root, candidate.fixture, candidate.platform)
    try:
        golden = read_golden(candidate.path)
        fixture = _fixture_of(candidate, today)
        _lies_where_it_belongs(golden, candidate)
    except GoldenError as error:
        return _refused(candidate, target, {}, [Problem(ExitCode.GOLDEN, str(error))])
    if unsound := problems_of(fixture, golden, today):
        return _refused(candidate, target, golden.document["provenance"], unsound)
    in_force = golden_in_force(today.workspace.goldens_root, fixture.name, candidate.platform)
    if in_force.golden is not None and _without_acceptance(in_force.golden) == _without_acceptance(golden):
        return _unchanged(candidate, target, golden)
    problems = _out_of_place(golden, in_force, target, today)
    origin = golden.document["provenance"]
    change = change_to(
        fixture,
        candidate.platform,
        in_force,
        target,
        document={name: value for name, value in golden.document.items() if name not in _BESIDE_VALUES},
        provenance=origin,
        problems=problems,
        warnings=_warnings(fixture, origin, today),
    )
    return _narrowed(change, in_force, allowed)


def _warnings(fixture: Fixture, origin: Mapping[str, Any], today: Today) -> list[str]:
    warnings = in_words(tolerance_warnings(fixture.rules, evidence_of(origin).spread))
    if origin["engine_revision"] != (revision := today.revision()):
        warnings.append(
            f"it was proven with the engine {origin['engine_revision']!r}, and this is {revision!r}: run the fixture"
            " before you commit its golden",
        )
    return warnings


def _out_of_place(golden: Golden, in_force: InForce, target: Path, today: Today) -> list[Problem]:
    """Return why a sound candidate may not replace what lies at `target`."""
    planned = golden.document["provenance"]["previous_seal"]
    problems = []
    if planned != in_force.seal:
        problems.append(Problem(ExitCode.GOLDEN, _stale_regen(target, planned, in_force.seal)))
    if why := why_outside(target, today.workspace.goldens_root):
        problems.append(Problem(ExitCode.GOLDEN, why))
    return problems


def _narrowed(change: Change, in_force: InForce, allowed: frozenset[str]) -> Change:
    """Refuse a change in which anything else moved than values of the classes that are allowed."""
    if not allowed or change.kind not in (Kind.NEW, Kind.CHANGED):
        return change
    names = ", ".join(sorted(allowed))
    if in_force.golden is None:
        messages = [f"--only {names}: there is no golden that it could be compared with, so everything is new"]
    else:
        moved = sorted(change.by_class.keys() - allowed - {FindingClass.STALE.value})
        messages = [f"--only {names}: {kind} moved too. Find out why, or allow it as well" for kind in moved]
    return change.refused_for([Problem(ExitCode.REGRESSION, message) for message in messages])


def _stale_regen(target: Path, planned: str | None, found: str | None) -> str:
    then = f"the golden with the seal {planned[:24]}…" if planned else "no golden"
    now = f"one with {found[:24]}…" if found else "none"
    return (
        f"STALE_REGEN: it was planned against {then}, and {target} is now {now}: somebody changed it since. Record it"
        " again on this tree with `golden regen`"
    )


def _without_acceptance(golden: Golden) -> bytes:
    origin = {name: value for name, value in golden.document["provenance"].items() if name != "accepted"}
    return canonical_bytes({**golden.document, "provenance": origin, "seal": ""})


def _fixture_of(candidate: Candidate, today: Today) -> Fixture:
    fixture = today.fixtures.get(candidate.fixture)
    if fixture is None:
        hint = did_you_mean(candidate.fixture, today.fixtures) or "Give the folder in which FIXTURE/PLATFORM.json lies"
        raise GoldenError(f'{candidate.path}: there is no fixture "{candidate.fixture}". {hint}')
    if candidate.platform not in fixture.platforms:
        names = ", ".join(fixture.platforms)
        raise GoldenError(
            f"{candidate.path}: {fixture.name} is for {names}, not for {candidate.platform}; add that to its platforms",
        )
    return fixture


def _lies_where_it_belongs(golden: Golden, candidate: Candidate) -> None:
    own = (golden.document["fixture"], golden.document["platform"])
    if own != (candidate.fixture, candidate.platform):
        raise GoldenError(
            f"{candidate.path}: it was recorded for {own[0]} on {own[1]}, and lies where {candidate.fixture} on"
            f" {candidate.platform} belongs; put it back",
        )


def _unchanged(candidate: Candidate, target: Path, golden: Golden) -> Change:
    name, platform, origin = candidate.fixture, candidate.platform, golden.document["provenance"]
    return Change(name, platform, target, Kind.UNCHANGED, None, origin, None, {}, ("it is in force already",))


def _refused(candidate: Candidate, target: Path, provenance: Mapping[str, Any], problems: Sequence[Problem]) -> Change:
    name, platform = candidate.fixture, candidate.platform
    return Change(name, platform, target, Kind.REFUSED, None, provenance, None, {}, (), tuple(problems))
