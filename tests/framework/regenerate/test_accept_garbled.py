"""Whatever a sealed file says, it ends in words: anybody can seal anything."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framework.golden.seal import sealed_bytes
from framework.golden.store import read_golden
from framework.regenerate.accept import VALUE_CLASSES, plan_acceptance
from framework.regenerate.candidates import find_candidates
from framework.regenerate.plan import Kind
from framework.regenerate.review import one_screen
from tests.framework.regenerate.proven import keep, today_of
from tests.framework.toy_root import ToyRoot, make_toy_root

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**300,
    2**70,
    1.5,
    -0.0,
    "",
    "\x1b[31m\ud800",
    [],
    {},
    [None],
    {"": {}},
    {"0": []},
    [[1.0], {"x": "y"}],
)


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("a", prompts="hello, world")
    root.write("b", prompts="hello, world", more="relations: [{kind: same_outputs_as, with: a}]")
    return root


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a document, outermost first."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in entries:
        yield (*path, key)
        yield from places(child, (*path, key))


def put(document: dict[str, Any], path: tuple[Any, ...], odd: Any) -> None:
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = odd


def test_no_value_anywhere_in_a_candidate_ends_in_anything_but_words(toy: ToyRoot) -> None:
    first, second = keep(toy)
    today, candidates = today_of(toy), find_candidates(first.parents[1])
    proven = read_golden(first).document
    toy.golden_path("a").parent.mkdir()
    toy.golden_path("a").write_bytes(first.read_bytes())
    chosen = random.Random(11)  # noqa: S311 - which value, not a secret
    kinds = set()
    for path in [each for each in places(proven) if each != ("seal",)] * 3:
        document = copy.deepcopy(proven)
        put(document, path, chosen.choice(ODD))
        for planned_against in (None, proven["seal"]):
            if isinstance(document["provenance"], dict) and path != ("provenance", "previous_seal"):
                document["provenance"]["previous_seal"] = planned_against
            first.write_bytes(sealed_bytes(document))
            changes = plan_acceptance(candidates, today, chosen.choice(((), VALUE_CLASSES)))
            shown = [*one_screen(changes), *(line for change in changes for line in change.in_words().split("\n"))]
            assert all(line.isprintable() for line in shown)
            assert json.dumps([change.as_json() for change in changes])
            kinds |= {change.kind for change in changes}
    assert kinds == set(Kind)
    assert second.is_file()
