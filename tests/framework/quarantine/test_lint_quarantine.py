from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from framework.quarantine.entry import Entry, Quarantine
from framework.quarantine.lint import quarantine_problems
from tests.framework.quarantine.entries import DAY, entry

PLATFORMS = {"first": ("cpu",), "second": ("cpu", "nvidia-h200")}


def problems(*entries: Entry) -> list[tuple[str, str]]:
    return [(each.path, each.message) for each in quarantine_problems(Quarantine(entries), PLATFORMS, DAY)]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"expires": DAY},
        {"since": DAY},
        {"since": DAY, "expires": DAY},
        {"since": DAY, "expires": DAY + timedelta(days=30)},
    ],
)
def test_an_entry_that_holds_has_no_problem(changed: dict[str, Any]) -> None:
    assert problems(entry(**changed)) == []


@pytest.mark.parametrize(
    ("changed", "path", "message"),
    [
        ({"expires": DAY - timedelta(days=1)}, "expires", "the entry of first expired on 2026-06-14"),
        ({"since": DAY + timedelta(days=1)}, "since", "is 2026-06-16, and today is 2026-06-15"),
        ({"since": DAY, "expires": DAY + timedelta(days=31)}, "expires", "31 days after since; at most 30"),
        ({"expires": DAY - timedelta(days=11)}, "expires", "before since"),
        ({"fixture": "frist"}, "fixture", "there is no fixture frist"),
        ({"platforms": ("cpu", "nvidia-h200")}, "platforms", "the fixture first does not run on nvidia-h200"),
        ({"owner": "\u200b \u3164"}, "owner", "is empty"),
        ({"issue": " "}, "issue", "is empty"),
        ({"issue": "#1\x1b[31m"}, "issue", "holds a control character"),
        ({"owner": "ada\u202eada"}, "owner", "holds a control character"),
    ],
)
def test_what_is_wrong_with_an_entry_is_one_problem(changed: dict[str, Any], path: str, message: str) -> None:
    ((found_at, said),) = problems(entry(**changed))
    assert found_at == f"entries[0].{path}"
    assert message in said


def test_a_problem_names_file_and_line() -> None:
    quarantine = Quarantine((entry(fixture="frist", line=17),))
    (problem,) = quarantine_problems(quarantine, PLATFORMS, DAY)
    assert str(problem).startswith(
        'quarantine.yaml:17: entries[0].fixture: there is no fixture frist. Did you mean "first"'
    )


def test_a_fixture_twice_on_one_platform_is_a_problem_whatever_the_classes() -> None:
    again = entry(issue="#13", line=9)
    ((path, message),) = problems(entry(line=3), again)
    assert (path, message) == ("entries[1].fixture", "first on cpu stands in line 3 already")


def test_a_fixture_may_stand_once_for_each_platform() -> None:
    assert problems(entry(fixture="second"), entry(fixture="second", platforms=("nvidia-h200",))) == []


def test_nothing_is_said_of_a_fixture_whose_manifest_cannot_be_read() -> None:
    quarantine = Quarantine((entry(fixture="broken"),))
    assert quarantine_problems(quarantine, PLATFORMS, DAY, unreadable=("broken",)) == ()
