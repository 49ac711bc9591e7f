"""What one golden says and another did not: two versions of it, compared exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framework.compare.compare import compare_records
from framework.compare.finding import Finding
from framework.compare.rules import Rules, parse_rules
from framework.explain.figures import Figures, figures_between, same_json

_SECTIONS = ("counters", "performance")
_NOT_JUDGED = ("margins", "settings", "environment")
_EXACT = {"exact": True, "allow_empty": True}


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting of a golden: value and source (`pinned` or `default`) then and now, None where there was none."""

    name: str
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None

    @property
    def is_default(self) -> bool:
        """Whether an inherited default has another value."""
        return self.old is not None and self.new is not None and self.old["source"] == self.new["source"] == "default"

    def as_json(self) -> dict[str, Any]:
        """Return the change as it stands in the `golden.diff/1` document."""
        sides = {"old": self.old, "new": self.new}
        document: dict[str, Any] = {"setting": self.name}
        for side, setting in sides.items():
            document |= {side: setting and setting["value"], f"{side}_source": setting and setting["source"]}
        return document


@dataclass(frozen=True, slots=True)
class Change:
    """How two versions of a golden differ.

    `moved` names what else is not the same: the model, the manifest, the environment. `reason` and `date` are those of
    the regeneration, `accepted` the reason of whoever brought it in, if somebody did.
    """

    findings: tuple[Finding, ...]
    figures: Figures
    settings: tuple[SettingChange, ...]
    moved: tuple[str, ...]
    reason: str
    date: str
    accepted: str

    @property
    def by_class(self) -> Mapping[str, int]:
        """How many findings there are of each class."""
        return Counter(finding.kind.value for finding in self.findings)


def change_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> Change:
    """Compare two versions of a golden, exactly."""
    provenance = _provenance(new)
    accepted = provenance.get("accepted")
    return Change(
        findings=compare_records(old, new, _exact_rules(old, new)).findings,
        figures=figures_between(old, new),
        settings=tuple(_setting_changes(old["settings"], new["settings"])),
        moved=tuple(_moved(old, new)),
        reason=str(provenance.get("reason", "")),
        date=str(provenance.get("date", "")),
        accepted=str(accepted.get("reason", "")) if isinstance(accepted, dict) else "",
    )


def _exact_rules(*goldens: Mapping[str, Any]) -> Rules:
    fields = {name for golden in goldens for request in golden["requests"].values() for name in request}
    rules: dict[str, Any] = dict.fromkeys(sorted(fields - {"prompt_tokens", *_NOT_JUDGED}), _EXACT)
    sections = [name for name in _SECTIONS if any(golden.get(name) for golden in goldens)]
    rules |= {name: {"*": "exact"} for name in sections}
    return parse_rules({"assert": rules or {"counters": {"*": "exact"}}, "inform": list(_NOT_JUDGED)})


def _setting_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[SettingChange]:
    changes = (SettingChange(name, old.get(name), new.get(name)) for name in sorted({*old, *new}))
    return [change for change in changes if not same_json(change.old, change.new)]


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    hashes = {
        f"the {name}": (old["hashes"].get(name), new["hashes"].get(name))
        for name in sorted({*old["hashes"], *new["hashes"]})
    }
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
