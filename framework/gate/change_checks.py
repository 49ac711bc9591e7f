"""What is asked of the change itself: the lanes, the manifests and the goldens at both sides."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from framework.errors import GoldenInferenceError
from framework.gate.both_sides import stale_regenerations
from framework.gate.changes import GoldenChange, Sibling, changed_goldens, refusals_of, unrefreshed
from framework.gate.lanes import kinds_of_engine
from framework.gate.ratchet import Census, Side, judged_less, lowered, new_reasons, numbers, renamed, shrinkage
from framework.gate.repository import contents
from framework.golden.store import read_golden
from framework.judge import staleness
from framework.regenerate.examine import problems_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from framework.gate.refusal import Refusal
    from framework.gate.scene import Scene
    from framework.gate.verdict import Draft
    from framework.golden.store import Golden


def lane_refusals(scene: Scene, draft: Draft) -> Iterator[Refusal]:
    """Yield why the lanes judge less than at the base, and write the numbers of the lane that runs into the draft."""
    base, head = (_side(scene, files) for files in scene.files)
    declared = new_reasons(*scene.lanes)
    for name in sorted(declared):
        draft.notices.append(f"declared: {name}: {scene.lanes[1].declared[name]}")
    yield from lowered(*scene.lanes, declared)
    census = Census()
    of_engine = kinds_of_engine(scene.adapter.describe())
    names: dict[str, str] = {}
    for lane in {each.name: each for each in (*scene.lanes[1].lanes.values(), scene.lane)}.values():
        kinds = of_engine if lane.needs is None else lane.needs
        then, now = census.gating(base, lane), census.gating(head, lane)
        names |= renamed(then, now)
        quarantined = scene.quarantined(lane.platform)
        now = {name: each for name, each in now.items() if name not in quarantined}
        yield from shrinkage(lane, then, now, declared | quarantined.keys(), kinds)
        if lane.name == scene.lane.name:
            at = {"base": numbers(then, kinds).as_json(), "head": numbers(now, kinds).as_json()}
            draft.lane |= {"fixtures_least": lane.fixtures, "values_least": lane.values, **at}
    in_quarantine = scene.quarantined(scene.lane.platform).items()
    draft.notices += [f"in quarantine: {name} {words}" for name, words in sorted(in_quarantine)]
    draft.notices += [f"renamed: {old} → {new}" for old, new in sorted(names.items())]
    yield from judged_less(base, head, names, declared)


def changed_refusals(scene: Scene) -> Iterator[Refusal]:
    """Yield why goldens that the change brings may not come in, with the commit that brought each."""
    landed = scene.history.landed(scene.span.since, scene.span.head)
    changes = changed_goldens(*scene.files, lambda files, paths: contents(scene.root, files, paths))
    declared = new_reasons(*scene.lanes)
    touched = {change.path for change in changes}
    for change in changes:
        siblings = list(_siblings(scene, change, touched))
        fixture = scene.fixtures.get(change.fixture)
        found = [*refusals_of(change, fixture, lambda *each: _problems(scene, *each))]
        found += unrefreshed(change, siblings, declared)
        for refusal in found:
            yield dataclasses.replace(refusal, commit=scene.history.commit_of(change.path, landed))
    yield from stale_regenerations(scene.history, scene.span.base, scene.span.head, scene.span.since, landed)


def _problems(scene: Scene, change: GoldenChange, golden: Golden) -> list[str]:
    """Return what can be seen of a golden that speaks against it; one that no fixture reads is left to lint."""
    fixture = scene.fixtures.get(change.fixture)
    if fixture is None or change.platform not in fixture.platforms:
        return []
    try:
        return [problem.message for problem in problems_of(fixture, golden, scene.today)]
    except GoldenInferenceError as error:
        return [str(error)]


def _siblings(scene: Scene, change: GoldenChange, touched: Collection[str]) -> Iterator[Sibling]:
    """Yield the goldens of a changed fixture on other platforms that the change did not touch and that can be read."""
    fixture = scene.fixtures.get(change.fixture)
    for platform in fixture.platforms if fixture and change.new is not None else ():
        path = f"goldens/{change.fixture}/{platform}.json"
        if fixture and path in scene.files[1] and path not in touched:
            try:
                golden = read_golden(scene.root / path)
            except GoldenInferenceError:
                continue
            yield Sibling(fixture.name, platform, bool(staleness(fixture, golden, scene.today.hashes(fixture))))


def _side(scene: Scene, files: Mapping[str, str]) -> Side:
    side = Side(files)
    paths = side.manifests()
    goldens = [path for path in files if path.startswith("goldens/")]
    return Side(files, contents(scene.root, files, [*paths, *goldens]))
