from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.gate.lanes import Lane, Lanes, kinds_of, kinds_of_engine, parse_lanes
from framework.gate.ratchet import Gating, lowered, new_reasons, numbers, renamed, shrinkage

LANE = Lane("cpu", "cpu")
KINDS = ("async", "legacy", "replay")


def gating(name: str, values: int = 10, *kinds: str, meaning: str = "") -> Gating:
    return Gating(name, values, frozenset(kinds or KINDS), meaning or name)


def lane_of(*each: Gating) -> dict[str, Gating]:
    return {one.name: one for one in each}


def messages(base: Mapping[str, Gating], head: Mapping[str, Gating], *declared: str, lane: Lane = LANE) -> list[str]:
    found = shrinkage(lane, base, head, frozenset(declared), KINDS)
    return [f"{refusal.subject}: {refusal.message}" for refusal in found]


FIXTURES = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), min_size=1)


@given(FIXTURES)
def test_a_lane_that_stays_or_grows_is_never_refused(values: dict[str, int]) -> None:
    base = lane_of(*(gating(name, count) for name, count in values.items()))
    assert messages(base, base) == []
    assert messages(base, {**base, "new": gating("new")}) == []


@given(FIXTURES, st.data())
def test_whatever_goes_is_refused_unless_it_is_declared(values: dict[str, int], data: st.DataObject) -> None:
    base = lane_of(*(gating(name, count) for name, count in values.items()), gating("stays"))
    gone = data.draw(st.sets(st.sampled_from(sorted(values)), min_size=1))
    head = {name: each for name, each in base.items() if name not in gone}
    assert len(messages(base, head)) == len(gone)
    assert messages(base, head, *gone) == []
    assert messages(base, {**head, "other": gating("other", 10_000)}), "another fixture does not make up for it"


def test_a_renamed_fixture_is_the_same_if_it_says_the_same() -> None:
    base = lane_of(gating("old", meaning="says this"), gating("stays"))
    assert renamed(base, lane_of(gating("new", meaning="says this"), gating("stays"))) == {"old": "new"}
    assert messages(base, lane_of(gating("new", meaning="says this"), gating("stays"))) == []
    assert len(messages(base, lane_of(gating("new", meaning="says that"), gating("stays")))) == 1
    assert messages(base, lane_of(gating("new", 4, meaning="says this"), gating("stays"))) != [], "it lost values"


def test_fewer_values_are_refused_and_named() -> None:
    base = lane_of(gating("first", 50), gating("second", 10))
    (message,) = messages(base, lane_of(gating("first", 20), gating("second", 15)))
    assert "60 values compared at the base, 35 at the head; first lost most (30)" in message
    assert messages(base, lane_of(gating("first", 45), gating("second", 15))) == [], "the sum is what counts"
    assert messages(base, lane_of(gating("first", 20), gating("second", 10)), "first") == []


def test_floors_hold_whatever_is_declared() -> None:
    lane = Lane("cpu", "cpu", fixtures=2, values=30)
    base = lane_of(gating("first"), gating("second"))
    assert len(messages(base, lane_of(gating("first")), "second", lane=lane)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_one_fixture_of_each_kind_has_to_gate(kind: str) -> None:
    others = [each for each in KINDS if each != kind]
    head = lane_of(gating("first", 10, *others))
    (message,) = messages(head, head)
    assert f"no {kind} fixture gates it" in message
    assert numbers(head, KINDS).kinds[kind] == 0


def test_kinds_come_from_what_the_engine_resolved() -> None:
    def settings(**values: Any) -> dict[str, Any]:
        return {name: {"value": value, "source": "default"} for name, value in values.items()}

    assert kinds_of(settings(async_sched_mode="async", routing_replay_path=None)) == {"async"}
    assert kinds_of(settings(async_sched_mode="legacy", routing_replay_path="r.json")) == {"legacy", "replay"}
    assert kinds_of({}) == kinds_of({"async_sched_mode": 3}) == frozenset()
    assert kinds_of_engine({"async_sched_mode": 1}) == ("async", "legacy")


def lanes(text: str) -> Lanes:
    return parse_lanes(f"gate: 1\nlanes:\n{text}".encode())


BASE = "  cpu: {platform: cpu, fixtures: 10, values: 100, needs: [async, replay]}\n"


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("  gpu: {platform: gpu, fixtures: 10, values: 100}\n", "it is gone"),
        (BASE.replace("10,", "9,"), "fixtures: 10 → 9"),
        (BASE.replace("100", "99"), "values: 100 → 99"),
        (BASE.replace("platform: cpu", "platform: gpu"), "platform: cpu → gpu"),
        (BASE.replace(", replay", ""), "no longer needs a fixture of the kind replay"),
        (BASE.replace("}", ", models_left_out: [big]}"), "big is left out"),
    ],
)
def test_a_lane_that_asks_for_less_is_refused_unless_it_is_declared(head: str, message: str) -> None:
    (refusal,) = lowered(lanes(BASE), lanes(head), frozenset())
    assert message in refusal.message
    assert list(lowered(lanes(BASE), lanes(head), frozenset({"lane cpu"}))) == []


def test_a_lane_that_asks_for_more_is_fine() -> None:
    more = BASE.replace("10,", "11,").replace("[async, replay]", "[async, replay, legacy]")
    assert (
        list(lowered(lanes(BASE), lanes(f"{more}  gpu: {{platform: gpu, fixtures: 1, values: 1}}\n"), frozenset()))
        == []
    )


def test_only_a_reason_that_the_change_brings_counts() -> None:
    base, head = Lanes(declared={"a": "old", "b": "old"}), Lanes(declared={"a": "old", "b": "new", "c": "new"})
    assert new_reasons(base, head) == {"b", "c"}
