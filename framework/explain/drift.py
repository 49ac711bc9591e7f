"""Settings drift: an inherited default that is not what it was when the golden was recorded.

It is said before anything else, because it explains everything that follows: the engine did not break, the fixture
now tests another engine.
"""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.compare.finding import Finding, FindingClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from framework.run.adapter import SettingDescription

_PATH_PREFIX = "settings."
_GONE = "no longer a setting"
_ALIKE = 0.6
SHOWN_NAMES = 24


@dataclass(frozen=True, slots=True)
class Drift:
    """One changed default, with the fixtures it reaches and those that pinned the setting and are not reached."""

    setting: str
    golden: Any
    current: Any
    inherited_by: tuple[str, ...]
    pinned_by: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the drift as an entry of the `golden.run/1` document."""
        return {
            "setting": self.setting,
            "golden": self.golden,
            "current": self.current,
            "inherited_by": list(self.inherited_by),
            "pinned_by": list(self.pinned_by),
        }

    def in_words(self) -> str:
        """Return one sentence that names the change, and whom it reaches."""
        count = len(self.inherited_by)
        inherit = f"{count} fixture{'s inherit' if count != 1 else ' inherits'} it: {_listed(self.inherited_by)}"
        pinned = f"pinned, so not affected: {_listed(self.pinned_by)}" if self.pinned_by else "no fixture pins it"
        return (
            f"{_change(self.setting, self.golden, self.current)} since the goldens were recorded; {inherit}; {pinned}"
        )


def _listed(names: Sequence[str]) -> str:
    """Return names for a sentence: the first ones, and how many more there are."""
    hidden = len(names) - SHOWN_NAMES
    more = f" and {hidden} more" if hidden > 0 else ""
    return f"{', '.join(names[:SHOWN_NAMES])}{more}"


def drift_findings(golden: Mapping[str, Any], descriptions: Mapping[str, SettingDescription]) -> tuple[Finding, ...]:
    """Return a finding for every setting that a golden inherited and whose default has another value today."""
    findings = []
    for name, setting in sorted(golden["settings"].items()):
        if setting["source"] != "default":
            continue
        current = descriptions[name].default if name in descriptions else _GONE
        if name not in descriptions or _differs(setting["value"], current):
            findings.append(
                Finding(
                    kind=FindingClass.SETTINGS_DRIFT,
                    path=f"{_PATH_PREFIX}{name}",
                    rule="settings",
                    message=f"{_change(name, setting['value'], current)} since this golden was recorded."
                    f" {_way_out(name, setting['value'], golden['settings'], descriptions)}",
                    golden=setting["value"],
                    current=current,
                ),
            )
    return tuple(findings)


def _way_out(
    name: str,
    value: Any,
    recorded: Mapping[str, Any],
    descriptions: Mapping[str, SettingDescription],
) -> str:
    """Say what to do about one drifted setting; one that is gone may have another name now."""
    if name in descriptions:
        return "Pin it in the manifest to keep what the fixture tests, or regenerate it to follow the new default"
    new = [each for each in descriptions if each not in recorded]
    alike = [each for each in new if not _differs(descriptions[each].default, value)] or new
    near = difflib.get_close_matches(name, alike, n=1, cutoff=_ALIKE)
    renamed = f"It may be called `{near[0]}` now. " if near else ""
    return f"{renamed}The engine dropped or renamed it; if that is meant, regenerate the golden with that reason"


def collect_drift(
    entries: Iterable[Mapping[str, Any]],
    pinned: Mapping[str, Iterable[str]],
) -> tuple[Drift, ...]:
    """Return every changed default once.

    `entries` are fixture entries of the `golden.run/1` document; `pinned` holds, for every fixture, the settings that
    its manifest pins.
    """
    reached: dict[tuple[str, str, str], list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for entry in entries:
        for finding in entry["findings"]:
            if finding["class"] == FindingClass.SETTINGS_DRIFT:
                setting = finding["path"].removeprefix(_PATH_PREFIX)
                key = (setting, _text(finding["golden"]), _text(finding["current"]))
                reached[key].append((entry["fixture"], finding))
    drifts = []
    for (setting, _, _), found in sorted(reached.items()):
        golden, current = found[0][1]["golden"], found[0][1]["current"]
        inherited_by = tuple(sorted({name for name, _ in found}))
        pinned_by = tuple(sorted(name for name, settings in pinned.items() if setting in set(settings)))
        drifts.append(Drift(setting, golden, current, inherited_by, pinned_by))
    return tuple(drifts)


def settings_that_differ(golden: Any, current: Any) -> list[tuple[str, Any, Any]]:
    """Return name and both values of every setting whose value two records do not share; total on any JSON."""
    if not isinstance(golden, dict) or not isinstance(current, dict):
        return []
    both = {name: (_value(golden[name]), _value(current[name])) for name in sorted(golden.keys() & current.keys())}
    return [(name, then, now) for name, (then, now) in both.items() if _differs(then, now)]


def _value(setting: Any) -> Any:
    return setting.get("value") if isinstance(setting, dict) else setting


def _change(setting: str, golden: Any, current: Any) -> str:
    if current == _GONE:
        return f"`{setting}` (default {_text(golden)}) is {_GONE}"
    return f"`{setting}` default {_text(golden)} → {_text(current)}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _differs(golden: Any, current: Any) -> bool:
    """Compare as JSON texts, so that 1, 1.0 and true are three values."""
    return json.dumps(golden, sort_keys=True) != json.dumps(current, sort_keys=True)
