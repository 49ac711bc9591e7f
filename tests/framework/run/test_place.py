from __future__ import annotations

import heapq
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from framework.run.place import LOADING_S, Affinity, Work, in_order, next_work


def work(name: str, model: str = "m", seconds: float = 1.0, platform: str = "cpu") -> Work:
    return Work(name, Affinity(platform, model), seconds, needs_device=platform != "cpu")


def simulated(works: list[Work], lanes: int, devices: int = 0) -> tuple[list[list[Work]], float, int]:
    """Run a day of the lanes; loading a model takes `LOADING_S`. Return what each ran, the end, and the loads."""
    waiting, loaded = list(works), dict[int, Affinity]()
    ran: list[list[Work]] = [[] for _ in range(lanes)]
    order, clock, loads, end = count(lanes), [(0.0, lane, lane) for lane in range(lanes)], 0, 0.0
    heapq.heapify(clock)
    while clock:
        now, _, lane = heapq.heappop(clock)
        chosen = next_work(waiting, loaded, lane, lanes=lanes, devices=devices)
        if chosen is None:
            loaded.pop(lane, None)
            continue
        waiting.remove(chosen)
        must_load = loaded.get(lane) != chosen.affinity
        loads += must_load
        loaded[lane] = chosen.affinity
        on_devices = [affinity for affinity in loaded.values() if affinity.platform != "cpu"]
        assert len(on_devices) <= max(devices, 1)
        ran[lane].append(chosen)
        end = max(end, now + chosen.seconds + LOADING_S * must_load)
        heapq.heappush(clock, (now + chosen.seconds + LOADING_S * must_load, next(order), lane))
    assert not waiting, "nobody is left for it"
    return ran, end, loads


WORKS = st.lists(
    st.builds(
        work,
        name=st.uuids().map(str),
        model=st.sampled_from("abc"),
        seconds=st.floats(0.0, 100.0),
        platform=st.sampled_from(["cpu", "cpu", "gpu"]),
    ),
    max_size=30,
    unique_by=lambda each: each.name,
)


@given(WORKS, st.integers(1, 6), st.integers(0, 4))
def test_everything_runs_once_and_never_on_more_devices_than_there_are(
    works: list[Work], lanes: int, devices: int
) -> None:
    ran, _, _ = simulated(works, lanes, devices)
    assert sorted(each.name for lane in ran for each in lane) == sorted(each.name for each in works)


@given(WORKS, st.integers(1, 6))
def test_the_order_in_which_work_is_listed_changes_nothing(works: list[Work], lanes: int) -> None:
    assert simulated(works, lanes, 2) == simulated(works[::-1], lanes, 2)


@given(WORKS, st.integers(1, 6))
def test_the_end_is_within_the_bound_of_lists(works: list[Work], lanes: int) -> None:
    cpu = [Work(each.name, Affinity("cpu", each.affinity.model), each.seconds) for each in works]
    _, end, loads = simulated(cpu, lanes)
    total, longest = sum(each.seconds for each in cpu), max((each.seconds for each in cpu), default=0.0)
    models = {each.affinity for each in cpu}
    alone = max((sum(each.seconds for each in cpu if each.affinity == model) for model in models), default=0.0)
    assert end <= total + LOADING_S * loads + 1e-6
    assert end <= max(total / lanes + longest, min(alone, total)) + total / lanes + LOADING_S * (loads + 2)


def test_fixtures_of_a_model_stay_on_one_lane_while_others_have_work() -> None:
    works = [work(f"{model}{number}", model) for model in "ab" for number in range(5)]
    ran, _, loads = simulated(works, 2)
    assert [{each.affinity.model for each in lane} for lane in ran] == [{"a"}, {"b"}]
    assert loads == 2


def test_a_model_that_dominates_is_split_and_a_small_one_is_not() -> None:
    ran, end, _ = simulated([work(f"big{number:02}", "big") for number in range(40)] + [work("s", "small", 0.1)], 4)
    assert sum({each.affinity.model for each in lane} == {"big"} for lane in ran) >= 3
    assert end < 40 / 4 + 3 * LOADING_S
    ran, _, loads = simulated([work(f"{number}", "small", 0.1) for number in range(10)], 4)
    assert loads == 1
    assert [len(lane) for lane in ran].count(0) == 3


def test_the_longest_goes_first_within_a_model() -> None:
    works = [work("short", seconds=1.0), work("long", seconds=5.0), work("middle", seconds=3.0)]
    ran, _, _ = simulated(works, 1)
    assert [each.name for each in ran[0]] == ["long", "middle", "short"]


def test_one_that_is_longer_than_the_even_share_of_the_rest_is_not_left_to_the_end() -> None:
    works = [work(f"{model}{number}", model) for model in "ab" for number in range(20)] + [work("long", "c", 18.0)]
    _, end, _ = simulated(works, 2)
    assert end <= (40 + 18) / 2 + 3 * LOADING_S


def test_without_times_the_order_is_by_model_and_name() -> None:
    works = [work(name, model, 0.0) for model, name in [("b", "y"), ("a", "x"), ("b", "x"), ("a", "y")]]
    ran, _, _ = simulated(works, 1)
    assert [each.affinity.model + each.name for each in ran[0]] == ["ax", "ay", "bx", "by"]


def test_a_lane_without_a_place_on_a_device_takes_what_needs_none() -> None:
    works = [work("g1", platform="gpu"), work("g2", platform="gpu"), work("c", seconds=0.1)]
    loaded = {0: Affinity("gpu", "m")}
    chosen = next_work(works, loaded, 1, lanes=2, devices=1)
    assert chosen is not None
    assert chosen.name == "c"
    assert next_work(works[:2], loaded, 1, lanes=2, devices=1) is None


def test_what_is_timed_runs_by_model_and_name() -> None:
    works = [work("b", "x"), work("a", "y"), work("a", "x")]
    assert [(each.affinity.model, each.name) for each in in_order(works)] == [("x", "a"), ("x", "b"), ("y", "a")]
