from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.errors import ExitCode
from framework.regenerate.plan import Change, Kind
from framework.regenerate.prove import Problem
from framework.regenerate.review import SCREEN_LINES, SCREEN_WIDTH, one_screen, worst_first


def change(name: str, kind: Kind = Kind.CHANGED, *, lines: int = 3, **by_class: int) -> Change:
    problems = (Problem(ExitCode.GOLDEN, "STALE_REGEN"),) if kind is Kind.REFUSED else ()
    words = tuple(f"line {number} of {name}" for number in range(lines))
    return Change(name, "cpu", Path(name), kind, None, {}, None, by_class, words, problems)


def test_what_a_reviewer_must_look_at_comes_first() -> None:
    changes = [
        change("same", Kind.UNCHANGED),
        change("new", Kind.NEW),
        change("counters", COUNTER=9),
        change("settings"),
        change("tokens", TOKEN=1),
        change("more-tokens", TOKEN=2, COUNTER=1),
        change("drops", STRUCTURE=1),
        change("stale", STALE=1),
        change("refused", Kind.REFUSED),
    ]
    assert [each.fixture for each in worst_first(changes)] == [
        "refused",
        "drops",
        "more-tokens",
        "tokens",
        "counters",
        "stale",
        "settings",
        "new",
        "same",
    ]


@pytest.mark.parametrize("count", [1, 2, 5, 20, 39, 40, 41, 1000])
@pytest.mark.parametrize("each", [0, 1, 30])
def test_it_is_one_screen_whatever_there_is(count: int, each: int) -> None:
    lines = one_screen([change(f"fixture-{number:04}", lines=each, TOKEN=1) for number in range(count)])
    assert len(lines) <= SCREEN_LINES
    named = [line for line in lines if line.startswith("fixture-")]
    hidden = [line for line in lines if "more; name one" in line]
    assert len(named) == count or hidden == [f"and {count - len(named)} more; name one to see it"]


@pytest.mark.parametrize("lines", [0, 1, 10, 11, 12, 40])
def test_what_does_not_fit_is_counted(lines: int) -> None:
    shown = one_screen([change("a", lines=lines)])[2:]
    words = [line for line in shown if "line" in line]
    more = [line for line in shown if line.startswith("  and ")]
    assert len(words) == lines or more == [f"  and {lines - len(words)} more"]


def test_no_line_breaks_the_screen() -> None:
    wide = Change("a", "cpu", Path("a"), Kind.CHANGED, None, {}, None, {}, ("x" * 500 + "\nsecond",))
    lines = one_screen([wide])
    assert all(len(line) <= SCREEN_WIDTH and "\n" not in line for line in lines)


def test_the_number_of_each_kind_is_said() -> None:
    counts: Any = [change("a"), change("b"), change("c", Kind.REFUSED)]
    assert one_screen(counts)[0] == "3 candidate(s): 1 refused, 2 changed."
