"""What is judged, how, and what is not: the `assert`, `inform` and `ignore` parts of a manifest or a rules file.

A bare name is a per-request field (`generated_tokens`). `counters` and `performance` hold a map of names, with `*`
for those not named. Every recorded field must stand in one of the three parts; what stands in none is a finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from framework.compare.fields import type_of_asserted
from framework.compare.rule import MalformedRuleError, Rule, RuleKind, parse_rule
from framework.errors import ManifestError
from framework.manifest.strict_yaml import load_file
from framework.manifest.suggest import did_you_mean

SECTIONS: Final = ("counters", "performance")
"""Parts of a record that an assert rule enters name by name."""

INFORMED_BY_DEFAULT: Final = ("margins", "settings", "environment")
"""Fields and sections that are not judged unless an assert rule names them."""

PARTS: Final = ("assert", "inform", "ignore")
REST: Final = "*"

ALWAYS_COMPARED: Final = "prompt_tokens"
"""The field that is compared exactly whatever the rules say: with another prompt nothing else means anything."""

_MAPS: Final = (*SECTIONS, "settings", "environment")


class Treatment(Enum):
    """What happens to a value."""

    ASSERT = "assert"
    ALWAYS = "always"
    INFORM = "inform"
    IGNORE = "ignore"
    UNDECLARED = "undeclared"


@dataclass(frozen=True, slots=True)
class Decision:
    """The treatment of one name, the rule if it is asserted, and the rule's own name such as `counters.*`."""

    treatment: Treatment
    name: str
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """Parsed rules. `asserted` is keyed by field, `section.name` or `section.*`; `ignored` holds the reasons."""

    asserted: Mapping[str, Rule]
    informed: frozenset[str] = frozenset()
    ignored: Mapping[str, str] = field(default_factory=dict)

    def for_field(self, name: str) -> Decision:
        """Decide on the per-request field `name`."""
        if name == ALWAYS_COMPARED and name not in self.asserted:
            return Decision(Treatment.ALWAYS, name, Rule(RuleKind.EXACT, allow_empty=True))
        return self._by_name(name) or self._default(name)

    def for_entry(self, section: str, name: str) -> Decision:
        """Decide on the entry `name` of a map such as `counters`: its own name beats the section and `*`."""
        return (
            self._by_name(f"{section}.{name}")
            or self._by_name(f"{section}.{REST}")
            or self._by_name(section)
            or self._default(section)
        )

    def for_top_level(self, name: str) -> Decision:
        """Decide on a key of the record that is no part of its format: it can be informed or ignored, not asserted."""
        decision = self._by_name(name)
        is_declared = decision is not None and decision.treatment is not Treatment.ASSERT
        return decision if decision is not None and is_declared else Decision(Treatment.UNDECLARED, name)

    def touches(self, section: str) -> bool:
        """Return whether any rule names `section` or an entry of it."""
        names = (*self.asserted, *self.informed, *self.ignored)
        return any(name == section or name.startswith(f"{section}.") for name in names)

    def asserts_in(self, section: str) -> tuple[str, ...]:
        """Return the names of the assert rules for `section` or entries of it, such as `counters.*`."""
        return tuple(name for name in self.asserted if name == section or name.startswith(f"{section}."))

    def _by_name(self, name: str) -> Decision | None:
        if name in self.asserted:
            return Decision(Treatment.ASSERT, name, self.asserted[name])
        if name in self.informed:
            return Decision(Treatment.INFORM, name)
        if name in self.ignored:
            return Decision(Treatment.IGNORE, name)
        return None

    def _default(self, name: str) -> Decision:
        treatment = Treatment.INFORM if name in INFORMED_BY_DEFAULT else Treatment.UNDECLARED
        return Decision(treatment, name)


@dataclass(frozen=True, slots=True)
class _Source:
    """Where rules come from, for errors."""

    where: str
    lines: Mapping[str, int]

    def error(self, path: str, message: str) -> ManifestError:
        line = self.lines.get(path) or self.lines.get(path.partition(".")[0])
        position = f"{self.where}:{line}" if line else self.where
        return ManifestError(f"{position}: {path}: {message}")


def load_rules(path: Path) -> Rules:
    """Read a rules file: a YAML (or JSON) map of `assert`, `inform` and `ignore`.

    Raises:
        ManifestError: the file cannot be read, or its rules are malformed.
    """
    document = load_file(path)
    source = _Source(document.source, document.lines())
    if not isinstance(document.value, dict):
        raise source.error("rules", "not a map. Write assert, inform and ignore.")
    for key in document.value:
        if key not in PARTS:
            raise source.error(key, f"not a part of a rules file. {did_you_mean(key, PARTS)}")
    return parse_rules(document.value, where=source.where, lines=source.lines)


def parse_rules(mapping: Mapping[str, Any], *, where: str = "rules", lines: Mapping[str, int] | None = None) -> Rules:
    """Read `assert`, `inform` and `ignore` of `mapping`; other keys are left alone.

    `where` names the file in errors, `lines` maps dotted paths such as `assert.counters` to lines in it.

    Raises:
        ManifestError: a rule is malformed, cannot fail, contradicts another, or nothing is asserted at all.
    """
    source = _Source(where, lines or {})
    rules = Rules(
        asserted=_asserted(mapping.get("assert"), source),
        informed=_informed(mapping.get("inform", []), source),
        ignored=_ignored(mapping.get("ignore", {}), source),
    )
    _refuse_contradictions(rules, source)
    return rules


def _asserted(part: Any, source: _Source) -> dict[str, Rule]:
    if not isinstance(part, Mapping) or not part:
        raise source.error("assert", "nothing is asserted, so nothing could fail. Write at least one rule.")
    asserted: dict[str, Rule] = {}
    for name, value in part.items():
        path = f"assert.{name}"
        _check_bare_name(name, path, source)
        if name not in SECTIONS:
            asserted[name] = _rule(name, value, path, source)
            continue
        if not isinstance(value, Mapping) or not value:
            raise source.error(path, f'not a map of names. Write {name}: {{"{REST}": exact}}.')
        for entry, rule in value.items():
            if not isinstance(entry, str) or not entry:
                raise source.error(path, f"the name {entry!r} is not a string. Quote it.")
            asserted[f"{name}.{entry}"] = _rule(f"{name}.{entry}", rule, f"{path}.{entry}", source)
    return asserted


def _rule(name: str, value: Any, path: str, source: _Source) -> Rule:
    try:
        rule = parse_rule(value)
    except MalformedRuleError as error:
        raise source.error(path, str(error)) from error
    allowed = type_of_asserted(name).rules
    if rule.kind not in allowed:
        words = ", ".join(sorted(kind.value for kind in allowed))
        raise source.error(path, f"the rule {rule.kind.value} does not fit here. It can be: {words}.")
    if rule.allow_minus_infinity and not name.endswith("_logprobs"):
        raise source.error(path, "only a log-probability can be minus infinity. Remove allow_minus_infinity.")
    return rule


def _check_bare_name(name: Any, path: str, source: _Source) -> None:
    if not isinstance(name, str) or not name:
        raise source.error(path, f"the name {name!r} is not a string. Quote it.")
    if name == REST:
        raise source.error(path, f'"{REST}" is legal only inside counters and performance. Name the fields.')
    section, dot, entry = name.partition(".")
    if dot:
        raise source.error(path, f"an entry of a section is written nested: {section}: {{{entry}: …}}.")


def _informed(part: Any, source: _Source) -> frozenset[str]:
    if not isinstance(part, (list, tuple)):
        raise source.error("inform", "not a list. Write inform: [performance].")
    names: set[str] = set()
    for index, name in enumerate(part):
        _check_declared_name(name, f"inform[{index}]", source)
        if name in names:
            raise source.error(f"inform[{index}]", f'"{name}" stands here twice. Remove one.')
        names.add(name)
    return frozenset(names)


def _ignored(part: Any, source: _Source) -> dict[str, str]:
    if not isinstance(part, Mapping):
        raise source.error("ignore", 'not a map. Write ignore: {finish_reason: "why it is not judged"}.')
    for name, reason in part.items():
        _check_declared_name(name, f"ignore.{name}", source)
        if not isinstance(reason, str) or not reason.strip():
            raise source.error(f"ignore.{name}", "no reason is given. Write one sentence that says why.")
    return dict(part)


def _check_declared_name(name: Any, path: str, source: _Source) -> None:
    if not isinstance(name, str) or not name:
        raise source.error(path, f"the name {name!r} is not a string. Quote it.")
    if name == ALWAYS_COMPARED:
        raise source.error(path, f"{ALWAYS_COMPARED} is always compared exactly. Take it out.")
    section, dot, entry = name.partition(".")
    if REST in (name, entry):
        raise source.error(path, f'"{REST}" is legal only under assert. Name the section: {section}.')
    if dot and (section not in _MAPS or not entry):
        raise source.error(path, f'"{section}" holds no names. Sections are: {", ".join(_MAPS)}.')


def _refuse_contradictions(rules: Rules, source: _Source) -> None:
    named = {name.removesuffix(f".{REST}"): "assert" for name in rules.asserted}
    for part, names in (("inform", sorted(rules.informed)), ("ignore", rules.ignored)):
        for name in names:
            if name in named:
                raise source.error(part, f'"{name}" stands under {named[name]} too. Keep one of the two.')
            named[name] = part
