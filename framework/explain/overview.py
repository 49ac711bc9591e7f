"""Everything that a reviewer of two revisions asks of their goldens and manifests, gathered from their bytes.

A golden that did not change is read too: it may still hold a default that others have left behind, or pin it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.errors import GoldenError
from framework.explain.change import Change, change_between
from framework.explain.manifest_change import ManifestChange, is_manifest, manifest_change
from framework.golden.store import parse_golden

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from framework.golden.revisions import Tree

_FIXTURES = "fixtures"


@dataclass(frozen=True, slots=True)
class GoldenEntry:
    """One golden that is not the same at both ends: `added`, `removed`, `unreadable` or `changed`."""

    path: str
    what: str
    change: Change | None = None
    problem: str = ""

    @property
    def fixture(self) -> str:
        """The name of its fixture."""
        return self.path.rpartition("/")[0]

    def as_json(self) -> dict[str, Any]:
        """Return the entry as it stands in the `golden.diff/1` document."""
        entry: dict[str, Any] = {"golden": self.path, "what": self.what}
        if self.problem:
            entry["problem"] = self.problem
        if self.change is None:
            return entry
        return entry | {
            "reason": self.change.reason,
            "date": self.change.date,
            "accepted": self.change.accepted,
            "by_class": dict(self.change.by_class),
            "settings": [setting.as_json() for setting in self.change.settings],
            "moved": list(self.change.moved),
            "same": list(self.change.figures.same),
            "findings": [finding.as_json() for finding in self.change.findings],
        }


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One manifest that is not the same at both ends: `added`, `removed` or `changed`."""

    path: str
    what: str
    change: ManifestChange | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the entry as it stands in the `golden.diff/1` document."""
        widened, others = (self.change.widened, self.change.others) if self.change else ((), ())
        return {"manifest": self.path, "what": self.what, "widened": list(widened), "others": list(others)}


@dataclass(frozen=True, slots=True)
class DefaultChange:
    """A default that goldens inherit and that has another value in those recorded since, by names of fixtures.

    `followed_by` are those that were regenerated with it, `left_behind` those that still hold the old value as a
    default, `pinned_by` those that pin the setting and so are not affected.
    """

    setting: str
    old: Any
    new: Any
    followed_by: tuple[str, ...]
    left_behind: tuple[str, ...]
    pinned_by: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the change as it stands in the `golden.diff/1` document."""
        names = {name: list(getattr(self, name)) for name in ("followed_by", "left_behind", "pinned_by")}
        return {"setting": self.setting, "old": self.old, "new": self.new, **names}


@dataclass(frozen=True, slots=True)
class Overview:
    """What changed between two revisions, the worst golden first, and how many goldens did not change at all."""

    defaults: tuple[DefaultChange, ...]
    goldens: tuple[GoldenEntry, ...]
    manifests: tuple[ManifestEntry, ...]
    untouched: int

    def as_json(self) -> dict[str, Any]:
        """Return the body of the `golden.diff/1` document."""
        return {
            "defaults": [default.as_json() for default in self.defaults],
            "goldens": [entry.as_json() for entry in self.goldens],
            "manifests": [entry.as_json() for entry in self.manifests],
            "unchanged": self.untouched,
        }


def overview(goldens: tuple[Tree, Tree], manifests: tuple[Tree, Tree]) -> Overview:
    """Gather what changed; each pair is the base and the head of one folder."""
    base, head = goldens
    paths = [path for path in sorted({*base.files, *head.files}) if base.files.get(path) != head.files.get(path)]
    old = dict(base.read(path for path in paths if path in base.files))
    new = dict(head.read(head.files))
    settings = {path: found for path, data in new.items() if (found := _settings(data, path)) is not None}
    entries = [_golden_entry(path, old.get(path), new.get(path)) for path in paths]
    return Overview(
        defaults=tuple(_default_changes(entries, settings)),
        goldens=tuple(sorted(entries, key=_severity)),
        manifests=tuple(_manifest_entries(*manifests)),
        untouched=len(base.files.keys() & head.files.keys()) - sum(entry.what == "changed" for entry in entries),
    )


def _settings(data: bytes, path: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = parse_golden(data, Path(path)).document["settings"]
    except GoldenError:
        return None
    return found


def _golden_entry(path: str, old: bytes | None, new: bytes | None) -> GoldenEntry:
    documents = []
    for data, when in ((old, "before"), (new, "now")):
        if data is not None:
            try:
                documents.append(parse_golden(data, Path(path)).document)
            except GoldenError as error:
                return GoldenEntry(path, "unreadable", problem=f"{when}: {error}")
    if len(documents) == 1:
        return GoldenEntry(path, "added" if old is None else "removed")
    return GoldenEntry(path, "changed", change_between(*documents))


def _severity(entry: GoldenEntry) -> tuple[int, int, str]:
    """Rank an entry: what cannot be believed, what is gone, then what its worst class of change says."""
    if entry.change is None:
        return {"unreadable": 0, "removed": 1}.get(entry.what, 8), 0, entry.path
    classes = ("LENGTH", "TOKEN", "TEXT", "STRUCTURE", "NON_FINITE", "RULES", "ROUTING"), ("LOGPROB",), ("COUNTER",)
    found = entry.change.by_class
    rank = next((rank for rank, kinds in enumerate(classes) if any(found.get(kind) for kind in kinds)), len(classes))
    return 2 + rank + (not found), -sum(found.values()), entry.path


def _default_changes(
    entries: Iterable[GoldenEntry], settings: Mapping[str, Mapping[str, Any]]
) -> Iterable[DefaultChange]:
    followed: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for entry in entries:
        for change in entry.change.settings if entry.change else ():
            if change.is_default:
                assert change.old is not None
                assert change.new is not None
                key = (change.name, json.dumps(change.old["value"]), json.dumps(change.new["value"]))
                followed[key].add(entry.fixture)
    for (name, old, new), fixtures in sorted(followed.items()):
        yield DefaultChange(
            setting=name,
            old=json.loads(old),
            new=json.loads(new),
            followed_by=tuple(sorted(fixtures)),
            left_behind=_fixtures(settings, name, lambda one, old=old: _is_default(one, old)),
            pinned_by=_fixtures(settings, name, lambda one: one["source"] == "pinned"),
        )


def _is_default(setting: Mapping[str, Any], value: str) -> bool:
    return setting["source"] == "default" and json.dumps(setting["value"]) == value


def _fixtures(settings: Mapping[str, Mapping[str, Any]], name: str, wanted: Any) -> tuple[str, ...]:
    found = {path.rpartition("/")[0] for path, of in settings.items() if name in of and wanted(of[name])}
    return tuple(sorted(found))


def _manifest_entries(base: Tree, head: Tree) -> Iterable[ManifestEntry]:
    paths = [path for path in sorted({*base.files, *head.files}) if is_manifest(path)]
    paths = [path for path in paths if base.files.get(path) != head.files.get(path)]
    old, new = (dict(tree.read(path for path in paths if path in tree.files)) for tree in (base, head))
    for path in paths:
        if path in old and path in new:
            change = manifest_change(old[path], new[path], f"{_FIXTURES}/{path}")
            if change.widened or change.others:
                yield ManifestEntry(path, "changed", change)
        else:
            yield ManifestEntry(path, "added" if path in new else "removed")
