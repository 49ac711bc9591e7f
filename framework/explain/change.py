"""What one golden says and another did not: two versions of it, put into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framework.compare.compare import compare_records
from framework.compare.finding import Finding
from framework.compare.rules import Rules, parse_rules
from framework.explain.drift import settings_that_differ

_SECTIONS = ("counters", "performance")
_NOT_JUDGED = ("margins", "settings", "environment")
_EXACT = {"exact": True, "allow_empty": True}


@dataclass(frozen=True, slots=True)
class Change:
    """How two versions of a golden differ.

    `settings` holds name, old and new value of every setting; `moved` names what else is not the same: the model, the
    manifest, the environment; `fields` are those that only one of the two asserts.
    """

    findings: tuple[Finding, ...]
    settings: tuple[tuple[str, Any, Any], ...]
    moved: tuple[str, ...]
    reason: str

    @property
    def by_class(self) -> Mapping[str, int]:
        """How many findings there are of each class."""
        return Counter(finding.kind.value for finding in self.findings)


def change_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> Change:
    """Compare two versions of a golden, exactly."""
    return Change(
        findings=compare_records(old, new, _exact_rules(old, new)).findings,
        settings=tuple(settings_that_differ(old.get("settings"), new.get("settings"))),
        moved=tuple(_moved(old, new)),
        reason=str(_provenance(new).get("reason", "")),
    )


def _exact_rules(*goldens: Mapping[str, Any]) -> Rules:
    fields = {name for golden in goldens for request in golden["requests"].values() for name in request}
    rules: dict[str, Any] = dict.fromkeys(sorted(fields - {"prompt_tokens", *_NOT_JUDGED}), _EXACT)
    sections = [name for name in _SECTIONS if any(golden.get(name) for golden in goldens)]
    rules |= {name: {"*": "exact"} for name in sections}
    return parse_rules({"assert": rules or {"counters": {"*": "exact"}}, "inform": list(_NOT_JUDGED)})


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    hashes = {f"the {name}": (old["hashes"].get(name), new["hashes"].get(name)) for name in old["hashes"]}
    things = {
        **hashes,
        "the manifest": (old["manifest_sha256"], new["manifest_sha256"]),
        "the environment it was recorded in": (old["environment"], new["environment"]),
        "the engine's sources": (_provenance(old).get("engine_revision"), _provenance(new).get("engine_revision")),
    }
    return [name for name, (then, now) in things.items() if then != now]


def _provenance(golden: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = golden["provenance"]
    return found
