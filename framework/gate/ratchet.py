"""The ratchet: what gates at the base must gate at the head, or the change says why not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framework.compare.compare import compare_records
from framework.compare.rules import parse_rules
from framework.errors import GoldenInferenceError
from framework.explain.manifest_change import is_manifest, manifest_change
from framework.gate.lanes import LANES_FILE, Lane, Lanes, kinds_of
from framework.gate.refusal import Refusal, RefusalClass
from framework.golden.store import parse_golden
from framework.manifest.strict_yaml import load_bytes

_NAMES_ONLY = ("name", "summary", "owner")
"""What a renamed manifest may change and still be the same fixture."""


@dataclass(frozen=True, slots=True)
class Gating:
    """A fixture that gates a lane: how many values its golden holds under assert rules, and of what kinds it is."""

    name: str
    values: int
    kinds: frozenset[str]
    meaning: str


@dataclass(slots=True)
class Side:
    """One commit: its files (path to content name) and the bytes of those that were read (`contents`)."""

    files: Mapping[str, str]
    contents: Mapping[str, bytes] = field(default_factory=dict)

    def manifests(self) -> list[str]:
        """Return the paths of all manifests."""
        return sorted(path for path in self.files if _is_a_manifest(path))


@dataclass(slots=True)
class Census:
    """Counts what gates at both sides; what both have in common is looked at once."""

    _known: dict[tuple[str | None, ...], Gating | None] = field(default_factory=dict)

    def gating(self, side: Side, lane: Lane) -> dict[str, Gating]:
        """Return the fixtures that gate a lane at one side, by name."""
        found = {}
        for path in side.manifests():
            name = name_of(path)
            golden = f"goldens/{name}/{lane.platform}.json"
            key = (side.files[path], side.files.get(golden), *lane.models_left_out, lane.platform, name)
            if key not in self._known:
                self._known[key] = _gating(name, lane, side.contents[path], side.contents.get(golden))
            if (each := self._known[key]) is not None:
                found[name] = each
        return found


def name_of(manifest: str) -> str:
    """Return the name of the fixture whose manifest lies at a path from the root."""
    return manifest.removeprefix("fixtures/").removesuffix(".yaml")


def _is_a_manifest(path: str) -> bool:
    return path.startswith("fixtures/") and path.endswith(".yaml") and is_manifest(path.removeprefix("fixtures/"))


def _gating(name: str, lane: Lane, manifest: bytes, golden: bytes | None) -> Gating | None:
    """Return what a fixture contributes to a lane; one that cannot be read, or has no golden there, does not gate."""
    try:
        value = load_bytes(manifest, source=name).value
        if not isinstance(value, dict) or value.get("model") in lane.models_left_out or golden is None:
            return None
        if lane.platform not in value.get("platforms", ["cpu"]):
            return None
        rules = parse_rules(value, where=name)
        document = parse_golden(golden, Path(name)).document
        values = compare_records(document, document, rules).compared
    except (GoldenInferenceError, TypeError):
        return None
    meaning = {key: each for key, each in value.items() if key not in _NAMES_ONLY}
    return Gating(name, values, kinds_of(document["settings"]), json.dumps(meaning, sort_keys=True, default=str))


@dataclass(frozen=True, slots=True)
class Numbers:
    """What gates a lane at one side."""

    fixtures: int
    values: int
    kinds: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        """Return it as a part of the `golden.gate/1` document."""
        return {"fixtures": self.fixtures, "values": self.values, "kinds": dict(self.kinds)}


def numbers(gating: Mapping[str, Gating], kinds: Sequence[str]) -> Numbers:
    """Add up what gates."""
    by_kind = {kind: sum(kind in each.kinds for each in gating.values()) for kind in kinds}
    return Numbers(len(gating), sum(each.values for each in gating.values()), by_kind)


def new_reasons(base: Lanes, head: Lanes) -> frozenset[str]:
    """Return what this very change declares: subjects with a reason that the base has not."""
    return frozenset(name for name, reason in head.declared.items() if base.declared.get(name) != reason)


def renamed(base: Mapping[str, Gating], head: Mapping[str, Gating]) -> dict[str, str]:
    """Return the new name of every fixture that has another name now and says the same."""
    come = {name: each.meaning for name, each in head.items() if name not in base}
    found = {}
    for name, each in base.items():
        if name not in head:
            match = next((new for new, meaning in come.items() if meaning == each.meaning), None)
            if match is not None:
                found[name] = match
                del come[match]
    return found


def shrinkage(
    lane: Lane,
    base: Mapping[str, Gating],
    head: Mapping[str, Gating],
    declared: frozenset[str],
    kinds: Sequence[str],
) -> Iterator[Refusal]:
    """Yield a refusal for everything by which a lane became smaller without a word.

    `declared` are the fixtures of which the change says why, or a quarantine does.
    """
    names = renamed(base, head)
    for name in sorted(base.keys() - head.keys() - names.keys() - declared):
        message = f"it gates {lane.name} at the base and not at the head: −1 fixture, −{base[name].values} values"
        yield Refusal(RefusalClass.LANE_SHRUNK, name, f"{message}. {_way_out(name)}")
    then = sum(each.values for name, each in base.items() if name not in declared)
    now = sum(each.values for name, each in head.items() if name not in declared)
    lost = sum(base[name].values for name in base.keys() - head.keys() - names.keys() - declared)
    if now + lost < then:
        falls = {name: base[name].values - head[name].values for name in base.keys() & head.keys() - declared}
        most = max(falls, key=lambda name: (falls[name], name), default="")
        message = f"{then - lost:,} values compared at the base, {now:,} at the head; {most} lost most ({falls[most]})"
        yield Refusal(RefusalClass.LANE_SHRUNK, f"lane {lane.name}", f"{message}. {_way_out(most)}")
    here = numbers(head, kinds)
    for what, count, least in (("fixtures", here.fixtures, lane.fixtures), ("values", here.values, lane.values)):
        if count < least:
            message = f"{count:,} {what} gate, and {LANES_FILE} asks for {least:,}"
            yield Refusal(RefusalClass.LANE_SHRUNK, f"lane {lane.name}", message)
    for kind, count in here.kinds.items():
        if count == 0:
            message = f"no {kind} fixture gates it, and it needs one. Restore it, or record its golden"
            yield Refusal(RefusalClass.LANE_SHRUNK, f"lane {lane.name}", message)


def lowered(base: Lanes, head: Lanes, declared: frozenset[str]) -> Iterator[Refusal]:
    """Yield a refusal for every lane that asks for less than it did."""
    for name, then in base.lanes.items():
        subject = f"lane {name}"
        now = head.lanes.get(name)
        less = ["it is gone"] if now is None else list(_asks_less(then, now))
        if less and subject not in declared:
            yield Refusal(RefusalClass.LANE_SHRUNK, subject, f"{'; '.join(less)}. {_way_out(subject)}")


def _asks_less(then: Lane, now: Lane) -> Iterator[str]:
    for what, old, new in (("fixtures", then.fixtures, now.fixtures), ("values", then.values, now.values)):
        if new < old:
            yield f"{what}: {old:,} → {new:,}"
    if now.platform != then.platform:
        yield f"platform: {then.platform} → {now.platform}"
    dropped = [] if now.needs is None else sorted(set(then.needs or ("async", "legacy", "replay")) - set(now.needs))
    yield from (f"it no longer needs a fixture of the kind {kind}" for kind in dropped)
    yield from (f"{model} is left out" for model in sorted(set(now.models_left_out) - set(then.models_left_out)))


def judged_less(base: Side, head: Side, names: Mapping[str, str], declared: frozenset[str]) -> Iterator[Refusal]:
    """Yield a refusal for every manifest that judges less than it did; `names` are those of renamed fixtures."""
    for path in base.manifests():
        name = name_of(path)
        now = f"fixtures/{names.get(name, name)}.yaml"
        if now not in head.files or head.files[now] == base.files[path] or {name, name_of(now)} & declared:
            continue
        change = manifest_change(base.contents[path], head.contents[now], now)
        if change.widened:
            message = f"it judges less: {'; '.join(change.widened)}. {_way_out(name_of(now))}"
            yield Refusal(RefusalClass.JUDGES_LESS, name_of(now), message)


def _way_out(subject: str) -> str:
    return f"Undo it, or say why under `declared` in {LANES_FILE}, as {json.dumps(subject)}: reason"
