"""Lint rules on what a fixture proves: performance, relations, tolerances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from framework.compare.fields import REQUEST_FIELDS, SECTION_TYPES
from framework.compare.rule import RuleKind
from framework.manifest.fixture import Fixture
from framework.manifest.linted import Linted, LintProblem, LintRule, Severity
from framework.manifest.suggest import did_you_mean

SCHEDULING_SETTING: Final = "async_sched_mode"
PAIRED_RATIO: Final = "performance.paired_throughput_ratio"
PAIRING_RELATION: Final = "async_equals_legacy"
PERFORMANCE_TAG: Final = "performance"
_LARGEST_LOGPROB_ERROR: Final = 1.0


def _unpinned_performance(linted: Linted) -> Iterator[LintProblem]:
    """A figure is comparable only with the mode it was measured in, so a default must not decide on it."""
    for fixture in linted.fixtures:
        if not _is_about_performance(fixture):
            continue
        if SCHEDULING_SETTING in linted.settings and SCHEDULING_SETTING not in fixture.engine:
            message = f"a performance fixture inherits the default of {SCHEDULING_SETTING}, which may change"
            yield linted.problem(fixture, "engine", message, f"Pin engine.{SCHEDULING_SETTING}")


def _is_about_performance(fixture: Fixture) -> bool:
    return PERFORMANCE_TAG in fixture.tags or bool(fixture.rules.asserts_in("performance"))


def _unpaired_ratio(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        rule = fixture.rules.asserted.get(PAIRED_RATIO)
        partners = sum(relation.kind == PAIRING_RELATION for relation in fixture.relations)
        if rule is not None and rule.kind is RuleKind.RATIO and partners != 1:
            message = f"the ratio is timed against one partner, and there are {partners} relations {PAIRING_RELATION}"
            yield linted.problem(fixture, f"assert.{PAIRED_RATIO}", message, "Write exactly one under relations")


def _different_work(linted: Linted) -> Iterator[LintProblem]:
    """Two throughputs mean something beside each other only if both sides have the same work to do."""
    by_name = {fixture.name: fixture for fixture in linted.fixtures}
    for fixture in linted.fixtures:
        if PAIRED_RATIO not in fixture.rules.asserted:
            continue
        for index, relation in enumerate(fixture.relations):
            other = by_name.get(relation.other)
            if relation.kind != PAIRING_RELATION or other is None:
                continue
            differs = [name for name, mine, theirs in _work_of(fixture, other) if mine != theirs]
            if differs:
                message = f"the ratio is timed against {other.name}, which has other work: {', '.join(differs)}"
                yield linted.problem(fixture, f"relations[{index}]", message, "Give both sides the same")


def _work_of(fixture: Fixture, other: Fixture) -> Iterator[tuple[str, Any, Any]]:
    """Yield what makes the work of two sides, by name, but for how often each is repeated and its scheduling mode."""
    yield "model", fixture.model, other.model
    for name in ("prompts", "sampling", "requests_per_step"):
        yield f"workload.{name}", getattr(fixture.workload, name), getattr(other.workload, name)
    for name in sorted({*fixture.engine, *other.engine} - {SCHEDULING_SETTING}):
        yield f"engine.{name}", fixture.engine.get(name), other.engine.get(name)


def _relations(linted: Linted) -> Iterator[LintProblem]:
    by_name = {fixture.name: fixture for fixture in linted.fixtures}
    hints: dict[str, str] = {}
    for fixture in linted.fixtures:
        for index, relation in enumerate(fixture.relations):
            path = f"relations[{index}]"
            if relation.other == fixture.name:
                yield linted.problem(fixture, path, "a fixture related to itself proves nothing", "Name another one")
            elif relation in fixture.relations[:index]:
                yield linted.problem(fixture, path, "the relation stands there twice", "Remove one of the two")
            elif relation.other in by_name:
                yield from _modes(linted, fixture, path, relation.kind, by_name[relation.other])
            elif not _manifest_exists(linted, relation.other):
                if relation.other not in hints:
                    hints[relation.other] = did_you_mean(relation.other, by_name) or "Name one that is there"
                message = f'there is no fixture "{relation.other}"'
                yield linted.problem(fixture, path, message, hints[relation.other].rstrip("."))


def _manifest_exists(linted: Linted, name: str) -> bool:
    """Return whether a broken manifest has that name; its own error is enough."""
    return (linted.fixtures_root / f"{name}.yaml").is_file()


def _modes(linted: Linted, fixture: Fixture, path: str, kind: str, other: Fixture) -> Iterator[LintProblem]:
    if kind != PAIRING_RELATION or SCHEDULING_SETTING not in linted.settings:
        return
    default = linted.settings[SCHEDULING_SETTING].default
    modes: list[Any] = [side.engine.get(SCHEDULING_SETTING, default) for side in (fixture, other)]
    if modes[0] == modes[1]:
        message = f"both fixtures run with {SCHEDULING_SETTING} {modes[0]}, so the relation proves nothing"
        yield linted.problem(fixture, path, message, f"Pin the other mode in one of the two: {other.name} or this")


def _loose_tolerances(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        for name, rule in fixture.rules.asserted.items():
            if rule.kind is RuleKind.NUMERIC and rule.rtol >= 1:
                message = f"with rtol {rule.rtol:g} a value of 0 passes against any golden"
                yield linted.problem(fixture, f"assert.{name}", message, "Write rtol below 1")
            if rule.kind is RuleKind.NUMERIC and name.endswith("_logprobs") and rule.atol >= _LARGEST_LOGPROB_ERROR:
                message = f"with atol {rule.atol:g} the rule cannot fail: another token rarely moves a log-prob as far"
                yield linted.problem(fixture, f"assert.{name}", message, "Write an atol such as 1e-3")


def _misspelt_fields(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        for name in fixture.rules.asserted:
            if "." in name or name in REQUEST_FIELDS or name in SECTION_TYPES:
                continue
            near = did_you_mean(name, REQUEST_FIELDS)
            if near.startswith("Did"):
                message = "no engine of this project records this field, so the rule would match nothing"
                yield linted.problem(fixture, f"assert.{name}", message, near.rstrip("."), Severity.WARNING)


RULES: Final[tuple[LintRule, ...]] = (
    _unpinned_performance,
    _unpaired_ratio,
    _different_work,
    _relations,
    _loose_tolerances,
    _misspelt_fields,
)
