from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from framework.errors import NothingSelectedError
from framework.run.select import select

FIXTURES: list[Any] = [
    SimpleNamespace(name="scheduling/legacy", tags=("slow",), path=Path()),
    SimpleNamespace(name="scheduling/default", tags=("slow", "cpu"), path=Path()),
    SimpleNamespace(name="eviction", tags=(), path=Path()),
]


def names(*patterns: str, tags: tuple[str, ...] = ()) -> list[str]:
    return [fixture.name for fixture in select(FIXTURES, patterns, tags)]


def test_nothing_asked_for_is_everything_by_name() -> None:
    assert names() == ["eviction", "scheduling/default", "scheduling/legacy"]


def test_patterns_add_up_and_tags_narrow() -> None:
    assert names("sched*", "eviction") == ["eviction", "scheduling/default", "scheduling/legacy"]
    assert names("sched*", tags=("slow", "cpu")) == ["scheduling/default"]


@pytest.mark.parametrize(
    ("patterns", "tags", "message"),
    [
        (("evicton",), (), 'Did you mean "eviction"'),
        (("default",), (), 'Did you mean "scheduling/default"'),
        (("zzz",), (), "There are: eviction"),
        (("eviction", "zzz*"), (), "zzz"),
        ((), ("slo",), 'Did you mean "slow"'),
        (("eviction",), ("slow",), "both the names and the tags"),
    ],
)
def test_a_selection_of_nothing_says_why(patterns: tuple[str, ...], tags: tuple[str, ...], message: str) -> None:
    with pytest.raises(NothingSelectedError, match=message):
        names(*patterns, tags=tags)
