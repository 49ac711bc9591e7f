"""How two versions of a manifest differ: first what judges less than before, then everything else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.compare.rule import Rule, RuleKind
from framework.compare.rules import Decision, Rules, Treatment, parse_rules
from framework.errors import ManifestError
from framework.explain.figures import same_json
from framework.manifest.find import MODELS_FOLDER
from framework.manifest.strict_yaml import load_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_RULE_PARTS = frozenset({"assert", "inform", "ignore"})
_LISTS = {"witness": "witness", "relations": "relation", "platforms": "platform"}
_IF_ABSENT = {"platforms": ["cpu"]}
_STRICTEST_FIRST = (RuleKind.EXACT, RuleKind.SEQUENCE, RuleKind.SET)
_VALUE_WIDTH = 60


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """What a manifest judges less (`widened`), and what else is not the same in it (`others`), in words."""

    widened: tuple[str, ...]
    others: tuple[str, ...]


def is_manifest(path: str) -> bool:
    """Say whether a path below `fixtures/` is that of a manifest: models and hidden names are none."""
    parts = path.split("/")
    return parts[0] != MODELS_FOLDER and not any(part.startswith(".") for part in parts)


def manifest_change(old: bytes, new: bytes, source: str) -> ManifestChange:
    """Compare two versions of a manifest, `source` by name; one that cannot be read is a change that says so."""
    read = []
    for data, when in ((old, "before"), (new, "now")):
        try:
            document = load_bytes(data, source=source).value
            value = document if isinstance(document, dict) else {}
            read.append((value, parse_rules(value, where=source)))
        except ManifestError as error:
            return ManifestChange((), (f"unreadable {when}: {str(error).splitlines()[0]}",))
    (then, old_rules), (now, new_rules) = read
    widened: list[str] = []
    others: list[str] = []
    for name in sorted({*_names(old_rules), *_names(new_rules)}):
        before, after = _decide(old_rules, name), _decide(new_rules, name)
        if words := _rule_change(before, after, new_rules.ignored.get(name)):
            (widened if _judges_less(before, after) else others).append(f"{name}: {words}")
    for key, noun in _LISTS.items():
        before_it, after_it = (side.get(key, _IF_ABSENT.get(key)) for side in (then, now))
        gone, come = _members(before_it, after_it), _members(after_it, before_it)
        widened += [f"{noun} removed: {each}" for each in gone]
        others += [f"{noun} added: {each}" for each in come]
    return ManifestChange(tuple(widened), (*_engine_changes(then, now), *others, *_other_keys(then, now)))


def _names(rules: Rules) -> tuple[str, ...]:
    return (*rules.asserted, *rules.informed, *rules.ignored)


def _decide(rules: Rules, name: str) -> Decision:
    section, dot, entry = name.partition(".")
    return rules.for_entry(section, entry) if dot else rules.for_field(name)


def _rule_change(before: Decision, after: Decision, reason: str | None) -> str:
    if (before.treatment, before.rule) == (after.treatment, after.rule):
        return ""
    words = f"{_in_words(before)} → {_in_words(after)}"
    return f"{words} ({reason})" if after.treatment is Treatment.IGNORE and reason else words


def _in_words(decision: Decision) -> str:
    if decision.rule is None:
        return {Treatment.INFORM: "informed", Treatment.IGNORE: "ignored"}.get(decision.treatment, "undeclared")
    options = [name for name in ("allow_empty", "allow_minus_infinity") if getattr(decision.rule, name)]
    return ", ".join([str(decision.rule), *options])


def _judges_less(before: Decision, after: Decision) -> bool:
    if before.rule is None or after.rule is None:
        return before.rule is not None
    return _permits_more(before.rule, after.rule)


def _permits_more(old: Rule, new: Rule) -> bool:
    """Say whether something passes under the new rule that fails under the old one."""
    if (new.allow_empty and not old.allow_empty) or (new.allow_minus_infinity and not old.allow_minus_infinity):
        return True
    if RuleKind.RATIO in (old.kind, new.kind):
        return old.kind is not new.kind or new.low < old.low or new.high > old.high
    if old.kind in _STRICTEST_FIRST and new.kind in _STRICTEST_FIRST:
        return _STRICTEST_FIRST.index(new.kind) > _STRICTEST_FIRST.index(old.kind)
    return new.atol > old.atol or new.rtol > old.rtol


def _members(these: Any, those: Any) -> list[str]:
    """Return, as texts, the members of one list that another lacks."""
    lists = [each if isinstance(each, list) else [] for each in (these, those)]
    return [_shown(each) for each in lists[0] if not any(same_json(each, other) for other in lists[1])]


def _engine_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    then, now = _map(old.get("engine")), _map(new.get("engine"))
    for name in sorted({*then, *now}, key=str):
        if name not in now:
            yield f"engine.{name}: no longer pinned to {_shown(then[name])}"
        elif name not in then:
            yield f"engine.{name}: now pinned to {_shown(now[name])}"
        elif not same_json(then[name], now[name]):
            yield f"engine.{name}: {_shown(then[name])} → {_shown(now[name])}, pinned"


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _other_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*old, *new} - {"engine", *_RULE_PARTS, *_LISTS}, key=str):
        if (key in old) != (key in new) or not same_json(old.get(key), new.get(key)):
            values = [side.get(key, "nothing") for side in (old, new)]
            is_long = any(isinstance(value, dict | list) or len(_shown(value)) > _VALUE_WIDTH for value in values)
            yield f"{key} changed" if is_long else f"{key}: {_shown(values[0])} → {_shown(values[1])}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
