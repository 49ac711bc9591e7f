from __future__ import annotations

from pathlib import Path

import pytest

from tests.framework.regenerate.proven import falsify, keep
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("a", prompts="hello, world")
    root.write("b", prompts="other")
    return root


def test_what_waits_is_shown_against_the_golden_in_force_the_worst_first(toy: ToyRoot) -> None:
    toy.regen("b")
    toy.set_default_mode("legacy")
    toy.golden("regen", "--reason", "legacy")
    done = toy.golden("review")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:3] == [
        "2 candidate(s): 1 changed, 1 new.",
        "b [cpu]: changed (2 COUNTER)",
        "  COUNTER counters.async_sched_step_count: 6 → 0",
    ]
    assert "golden accept --reason" in done.stdout.splitlines()[-1]
    assert len(done.stdout.splitlines()) <= 42


def test_what_could_not_be_accepted_is_said_with_its_exit_code(toy: ToyRoot) -> None:
    _, second = keep(toy)
    falsify(second, lambda document: document["provenance"]["proof"].update(runs=1))
    code, document = toy.json("review")
    assert (code, document["schema"], document["verdict"]) == (12, "golden.review/1", "FAIL")
    assert [entry["fixture"] for entry in document["fixtures"]] == ["b", "a"]
    assert "at least 3" in document["fixtures"][0]["problems"][0]
    code, document = toy.json("review", "--fixture", "a")
    assert (code, [entry["fixture"] for entry in document["fixtures"]]) == (0, ["a"])


def test_a_folder_can_be_reviewed_before_it_is_accepted(toy: ToyRoot) -> None:
    toy.golden("regen", "--reason", "new", "--out", "out", CI="true")
    done = toy.golden("review", "out", CI="true")
    assert done.returncode == 0
    assert "2 candidate(s): 2 new." in done.stdout
    assert "golden accept out --reason" in done.stdout


def test_nothing_to_review_is_nothing_selected(toy: ToyRoot) -> None:
    code, document = toy.json("review")
    assert code == 13
    assert "no candidate waits" in document["error"]
