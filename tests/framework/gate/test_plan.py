from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.errors import UsageError
from framework.gate.plan import LOAD_SECONDS, Load, Share, matrix, recorded_seconds, shards

LOADS = st.lists(
    st.builds(
        Load,
        st.from_regex(r"[a-z][a-z0-9_]{0,4}(/[a-z]{1,3})?", fullmatch=True),
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    ),
    unique_by=lambda load: load.fixture,
    max_size=20,
)


def seconds_of(share: Share, loads: list[Load]) -> float:
    mine = [load for load in loads if load.fixture in share.fixtures]
    return sum(load.seconds for load in mine) + LOAD_SECONDS * len({load.model for load in mine if load.seconds})


@given(LOADS, st.integers(1, 8))
def test_every_fixture_is_in_exactly_one_shard_and_none_is_empty(loads: list[Load], count: int) -> None:
    plan = shards(loads, count)
    assert sorted(name for share in plan for name in share.fixtures) == sorted(load.fixture for load in loads)
    assert [share.number for share in plan] == list(range(1, len(plan) + 1))
    assert {share.of for share in plan} == {len(plan)}
    assert len(plan) <= count
    assert not loads or all(share.fixtures for share in plan)
    assert shards(list(reversed(loads)), count) == plan, "the order of what is given decides nothing"


@given(LOADS, st.integers(1, 8))
def test_a_share_reads_back_as_it_was_written(loads: list[Load], count: int) -> None:
    for share in shards(loads, count):
        assert Share.parse(str(share)) == share


def test_long_fixtures_are_dealt_first_and_a_model_is_loaded_where_it_is_already() -> None:
    loads = [Load("long", "one", 10.0), *(Load(f"short{i}", "two", 1.0) for i in range(8))]
    plan = shards(loads, 2)
    assert sorted(len(share.fixtures) for share in plan) == [1, 8]
    loads = [Load(f"{model}{i}", model, 2.0) for i in range(4) for model in ("one", "two")]
    plan = shards(loads, 2)
    assert [seconds_of(share, loads) for share in plan] == [10.0, 10.0], "each loads one model"


def test_what_will_be_left_out_costs_nothing_and_is_dealt_too() -> None:
    loads = [Load("runs", "one", 5.0), Load("also", "one", 5.0), *(Load(f"not{i}", "one", 0.0) for i in range(4))]
    plan = shards(loads, 2)
    assert [seconds_of(share, loads) for share in plan] == [7.0, 7.0]
    assert [len(share.fixtures) for share in plan] == [3, 3]


def test_the_matrix_is_what_github_takes() -> None:
    document = matrix(shards([Load("a/b", "one", 1.0), Load("c", "one", 1.0)], 2))
    assert json.loads(json.dumps(document)) == {
        "include": [{"name": "1 of 2", "shard": "1/2: a/b"}, {"name": "2 of 2", "shard": "2/2: c"}]
    }


@pytest.mark.parametrize("count", [0, -1, 257])
def test_a_senseless_number_of_shards_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match="from 1 to 256"):
        shards([Load("a", "one", 1.0)], count)


@pytest.mark.parametrize(
    "text", ["", "1/2", "3/2: a", "0/1: a", "1/1: a a", "1/1:a", "1/1: ../a", "1/1: $(id)", "1/1: -x"]
)
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="golden gate plan"):
        Share.parse(text)


@pytest.mark.parametrize("document", [{}, {"fixtures": 3}, {"fixtures": [{"fixture": "a"}]}, {"fixtures": [3]}])
def test_times_come_from_a_run_or_a_gate_and_nothing_else(document: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="--times"):
        recorded_seconds(document)
    assert recorded_seconds({"fixtures": [{"fixture": "a", "seconds": 2.5}]}) == {"a": 2.5}
