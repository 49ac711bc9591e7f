from __future__ import annotations

from typing import Any

from framework.compare.finding import FindingClass
from framework.explain.drift import collect_drift, drift_findings, settings_that_differ
from framework.run.adapter import SettingDescription


def described(**defaults: Any) -> dict[str, SettingDescription]:
    return {name: SettingDescription(default, "str", "") for name, default in defaults.items()}


def golden(**settings: tuple[Any, str]) -> dict[str, Any]:
    return {"settings": {name: {"value": value, "source": source} for name, (value, source) in settings.items()}}


def test_an_inherited_default_that_changed_is_a_finding() -> None:
    (finding,) = drift_findings(golden(mode=("legacy", "default")), described(mode="async"))
    assert finding.kind is FindingClass.SETTINGS_DRIFT
    assert finding.path == "settings.mode"
    assert (finding.golden, finding.current) == ("legacy", "async")
    assert "`mode` default legacy → async since this golden was recorded" in finding.message


def test_what_was_pinned_and_what_is_new_does_not_drift() -> None:
    assert drift_findings(golden(mode=("legacy", "pinned")), described(mode="async", other=1)) == ()


def test_a_setting_that_is_gone_has_drifted() -> None:
    (finding,) = drift_findings(golden(mode=("legacy", "default")), described())
    assert finding.current == "no longer a setting"
    assert finding.message == (
        "`mode` (default legacy) is no longer a setting since this golden was recorded. The engine dropped or renamed"
        " it; if that is meant, regenerate the golden with that reason"
    )


def test_a_setting_whose_value_was_null_is_missed_too() -> None:
    (finding,) = drift_findings(golden(limit=(None, "default")), described())
    assert "`limit` (default null) is no longer a setting" in finding.message


def test_a_setting_that_was_renamed_is_named() -> None:
    recorded = golden(max_tokens=(64, "default"), mode=("async", "default"))
    (finding,) = drift_findings(recorded, described(mode="async", max_num_tokens=64, other=64))
    assert "It may be called `max_num_tokens` now." in finding.message


def test_a_new_setting_of_another_kind_is_no_guess() -> None:
    (finding,) = drift_findings(golden(mode=("legacy", "default")), described(zeal=1))
    assert "may be called" not in finding.message


def test_a_setting_that_is_gone_is_said_once_for_all() -> None:
    entries = [entry("a", ("mode", "legacy", "no longer a setting"))]
    (drift,) = collect_drift(entries, {"a": []})
    assert drift.in_words().startswith("`mode` (default legacy) is no longer a setting since the goldens were recorded")


def test_numbers_of_two_types_are_two_values() -> None:
    assert drift_findings(golden(a=(1, "default"), b=(1, "default")), described(a=1.0, b=True)) != ()
    assert drift_findings(golden(a=(None, "default"), b=(16, "default")), described(a=None, b=16)) == ()


def entry(name: str, *settings: tuple[str, Any, Any]) -> dict[str, Any]:
    findings = [
        {"class": "SETTINGS_DRIFT", "path": f"settings.{setting}", "golden": then, "current": now}
        for setting, then, now in settings
    ]
    return {"fixture": name, "findings": [*findings, {"class": "TOKEN", "path": "settings.mode"}]}


def test_a_changed_default_is_said_once_with_all_it_reaches() -> None:
    entries = [entry("b", ("mode", "legacy", "async")), entry("a", ("mode", "legacy", "async")), entry("c")]
    (drift,) = collect_drift(entries, {"a": [], "b": [], "c": ["mode"]})
    assert (drift.setting, drift.inherited_by, drift.pinned_by) == ("mode", ("a", "b"), ("c",))
    assert drift.in_words() == (
        "`mode` default legacy → async since the goldens were recorded; 2 fixtures inherit it: a, b;"
        " pinned, so not affected: c"
    )


def test_two_goldens_of_two_ages_are_two_changes() -> None:
    entries = [entry("a", ("depth", 1, 3)), entry("b", ("depth", 2, 3))]
    first, second = collect_drift(entries, {"a": [], "b": []})
    assert (first.golden, second.golden) == (1, 2)
    assert "1 fixture inherits it: a; no fixture pins it" in first.in_words()


def test_settings_of_two_records_are_compared_whatever_they_hold() -> None:
    then = {"mode": {"value": "legacy"}, "same": {"value": 1}, "odd": 3}
    now = {"mode": {"value": "async"}, "same": {"value": 1}, "odd": [], "new": 1}
    assert settings_that_differ(then, now) == [("mode", "legacy", "async"), ("odd", 3, [])]
    assert settings_that_differ(None, now) == []
