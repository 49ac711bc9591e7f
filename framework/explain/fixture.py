"""What there is to know of one fixture without running it: what it pins, inherits and judges, and its golden."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from framework.compare.fields import SECTION_TYPES
from framework.compare.paths import look_up, parse_path
from framework.compare.rules import INFORMED_BY_DEFAULT
from framework.compare.walk import count_leaves
from framework.explain.drift import drift_findings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from framework.compare.rules import Rules
    from framework.manifest.fixture import Fixture
    from framework.run.adapter import SettingDescription


def explain_fixture(
    fixture: Fixture,
    golden: Mapping[str, Any] | None,
    descriptions: Mapping[str, SettingDescription],
) -> dict[str, Any]:
    """Return the body of a fixture's entry in the `golden.explain/1` document; `golden` is the one on disk, if any."""
    judged = values_by_rule(fixture.rules, golden) if golden else {}
    return {
        "fixture": fixture.name,
        "summary": fixture.summary.strip(),
        "manifest": str(fixture.path),
        "model": fixture.model,
        "platforms": list(fixture.platforms),
        "drift": [finding.as_json() for finding in drift_findings(golden, descriptions)] if golden else [],
        "settings": _settings(fixture, golden, descriptions),
        "provenance": golden["provenance"] if golden else None,
        "environment": golden["environment"] if golden else None,
        "asserted": {
            name: {"rule": str(rule), "values": judged.get(name, 0) if golden else None}
            for name, rule in fixture.rules.asserted.items()
        },
        "informed": sorted({*fixture.rules.informed, *_informed_by_default(fixture.rules)}),
        "ignored": dict(fixture.rules.ignored),
        "witnesses": [
            {"witness": str(witness), "golden": _value_at(golden, witness.path)} for witness in fixture.witnesses
        ],
        "relations": [f"{relation.kind} with {relation.other}" for relation in fixture.relations],
    }


def values_by_rule(rules: Rules, golden: Mapping[str, Any]) -> Mapping[str, int]:
    """Return how many scalars of a golden each assert rule judges, by the rule's name, such as `counters.*`."""
    counts: Counter[str] = Counter()
    for request in golden["requests"].values():
        for name, value in request.items():
            decision = rules.for_field(name)
            counts[decision.name] += count_leaves(value) if decision.rule else 0
    for section in SECTION_TYPES:
        for name, value in golden.get(section, {}).items():
            decision = rules.for_entry(section, name)
            counts[decision.name] += count_leaves(value) if decision.rule else 0
    return counts


def _informed_by_default(rules: Rules) -> list[str]:
    named = {name.partition(".")[0] for name in (*rules.asserted, *rules.ignored)}
    return [name for name in INFORMED_BY_DEFAULT if name not in named]


def _settings(
    fixture: Fixture,
    golden: Mapping[str, Any] | None,
    descriptions: Mapping[str, SettingDescription],
) -> dict[str, Any]:
    recorded = golden["settings"] if golden else {}
    return {
        name: {
            "value": fixture.engine.get(name, description.default),
            "source": "pinned" if name in fixture.engine else "default",
            "default": description.default,
            "golden": recorded.get(name, {}).get("value"),
            "in_golden": name in recorded,
        }
        for name, description in descriptions.items()
    }


def _value_at(golden: Mapping[str, Any] | None, path: str) -> Any:
    try:
        value = look_up(golden, parse_path(path))
    except LookupError:
        return None
    return value if type(value) in (int, float) else None
