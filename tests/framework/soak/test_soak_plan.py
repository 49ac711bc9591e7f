from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from framework.compare.rules import Rules
from framework.manifest.fixture import Fixture, Prompt, Workload
from framework.soak.plan import (
    AS_WRITTEN_EVERY,
    LONGEST_SPAN,
    PLAN_VERSION,
    Arrivals,
    Plan,
    dealt,
    permutation,
    plan_for,
)
from tests.framework.toy_adapter import ToyEngine

RUNS = range(200)


def fixture(count: int = 3, *, name: str = "a", engine: dict[str, Any] | None = None, per_step: int = 1) -> Fixture:
    prompts = tuple(Prompt(text=str(index)) for index in range(count))
    workload = Workload(prompts, {}, requests_per_step=per_step)
    return Fixture(name, Path(), "", "", engine or {}, workload, Rules(asserted={}))


def plan(count: int = 3, **named: Any) -> Plan:
    return plan_for(fixture(count, **named), ToyEngine())


def test_a_run_is_a_function_of_the_fixtures_name_and_its_number_alone() -> None:
    first, again = plan(), plan()
    assert [first.run(number) for number in RUNS] == [again.run(number) for number in reversed(RUNS)][::-1]
    other = plan(name="b")
    assert [first.run(number).variation for number in RUNS] != [other.run(number).variation for number in RUNS]


def test_a_number_that_means_another_run_needs_another_version_of_the_plan() -> None:
    names = [plan().run(number).variation.name for number in range(6)]
    assert (PLAN_VERSION, names) == (
        1,
        [
            "as written",
            "async_sched_mode legacy, num_threads 4, arrivals scattered",
            "num_threads 3, arrivals shuffled",
            "async_sched_mode legacy, num_threads 2",
            "as written",
            "async_sched_mode legacy, num_threads 1",
        ],
    )
    variation = plan().run(1).variation
    assert (variation.order, variation.arrivals) == ((2, 1, 0), (1, 1, 7))


def test_every_fourth_run_changes_nothing() -> None:
    unchanged = [number for number in RUNS if not plan().run(number).is_varied]
    assert unchanged == list(range(0, 200, AS_WRITTEN_EVERY))
    variation = plan().run(0).variation
    assert (variation.overrides, variation.order, variation.arrivals) == ({}, None, None)


def test_twenty_runs_have_seen_every_thread_count_mode_and_way_of_arriving() -> None:
    kinds = Counter(kind for number in range(20) for kind in plan().run(number).kinds)
    assert kinds.keys() == {
        *(f"num_threads {count}" for count in (1, 2, 3, 4)),
        "async_sched_mode legacy",
        "arrivals shuffled",
        "arrivals scattered",
    }
    assert min(kinds.values()) >= 3


def test_every_pack_deals_each_card_once() -> None:
    dealt_cards = [dealt("abcde", "key", turn) for turn in range(50)]
    packs = ["".join(dealt_cards[start : start + 5]) for start in range(0, 50, 5)]
    assert all(sorted(pack) == list("abcde") for pack in packs)
    assert len(set(packs)) > 5


@pytest.mark.parametrize("count", [0, 1, 2, 17])
def test_a_permutation_holds_every_index_once(count: int) -> None:
    assert sorted(permutation(count, "key")) == list(range(count))


def test_pinned_settings_are_as_written() -> None:
    pinned = plan(engine={"async_sched_mode": "legacy", "num_threads": 2})
    seen = {tuple(pinned.run(number).variation.overrides.items()) for number in RUNS}
    assert seen == {(), *((("num_threads", count),) for count in (1, 3, 4))}


def test_settings_that_do_not_go_together_are_not_tried() -> None:
    modes = {plan(engine={"fault": "hang"}).run(number).variation.overrides.get("async_sched_mode") for number in RUNS}
    assert modes == {None}


def test_shuffled_requests_take_each_others_places_and_times() -> None:
    runs = [plan(6, per_step=2).run(number) for number in RUNS]
    shuffled = [run.variation for run in runs if f"arrivals {Arrivals.SHUFFLED}" in run.kinds]
    assert len({variation.order for variation in shuffled}) > 30
    for variation in shuffled:
        assert variation.order is not None
        assert variation.arrivals is not None
        assert [variation.arrivals[index] for index in variation.order] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(("count", "span"), [(1, 8), (3, 8), (20, 40), (500, LONGEST_SPAN)])
def test_scattered_requests_arrive_at_any_time_within_bounds(count: int, span: int) -> None:
    runs = [plan(count).run(number) for number in range(100)]
    scattered = [run.variation.arrivals for run in runs if f"arrivals {Arrivals.SCATTERED}" in run.kinds]
    times = {time for arrivals in scattered for time in arrivals or ()}
    assert min(times) == 0
    assert max(times) == span


def test_one_request_alone_has_no_order() -> None:
    kinds = {kind for number in RUNS for kind in plan(1).run(number).kinds}
    assert "arrivals shuffled" not in kinds
    assert "arrivals scattered" in kinds
