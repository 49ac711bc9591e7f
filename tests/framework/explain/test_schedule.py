from __future__ import annotations

from typing import Any

import pytest

from framework.explain.schedule import MalformedScheduleError, checked_schedule, renamed, where_computed

PROMPTS = {"0": 4, "1": 4, "2": 4, "3": 4, "5": 40}


def plan(step: int, *rows: tuple[str, int, int]) -> dict[str, Any]:
    return {"step": step, "rows": [list(row) for row in rows]}


def test_decodes_are_named_beside_prefills() -> None:
    rows = [("0", 9, 1), ("1", 8, 1), ("2", 7, 1), ("3", 6, 1), ("5", 32, 32)]
    assert where_computed([plan(17, *rows)], "2", 7, PROMPTS) == (
        "step 17: decode of requests 0, 1, 2, 3 beside a prefill of request 5 [32, 64)"
    )


def test_a_prompt_of_one_token_is_a_prefill() -> None:
    assert where_computed([plan(0, ("0", 0, 1))], "0", 0, {"0": 1}) == "step 0: prefill of request 0 [0, 1)"


def test_the_first_plan_that_computed_a_position_is_the_one_that_sampled() -> None:
    schedule = [plan(0, ("0", 0, 4)), plan(1, ("0", 4, 1)), plan(5, ("0", 0, 6))]
    assert where_computed(schedule, "0", 4, PROMPTS).startswith("step 1: ")


def test_an_eviction_before_it_is_told() -> None:
    schedule = [plan(0, ("0", 0, 4)), plan(1, ("0", 4, 1)), plan(5, ("0", 0, 6)), plan(6, ("0", 6, 1))]
    assert where_computed(schedule, "0", 6, PROMPTS) == (
        "step 6: decode of request 0; request 0 had been computed anew from position 0 in step 5"
    )
    assert where_computed(schedule, "0", 5, PROMPTS) == "step 5: prefill of request 0 [0, 6)"


def test_a_wide_plan_stays_one_line() -> None:
    rows = [(str(index), 9, 1) for index in range(200)]
    words = where_computed([plan(3, *rows)], "150", 9, {})
    assert words == "step 3: decode of requests 0, 1, 2, 3, 4, 5, 6, 7 and 192 more"


@pytest.mark.parametrize(("request_id", "position"), [("0", 99), ("9", 0)])
def test_what_no_plan_computed_is_not_named(request_id: str, position: int) -> None:
    assert where_computed([plan(0, ("0", 0, 4))], request_id, position, PROMPTS) == ""


def test_requests_are_renamed() -> None:
    assert renamed([plan(0, ("0", 0, 4), ("1", 2, 3))], {"0": "1", "1": "0"}) == [plan(0, ("1", 0, 4), ("0", 2, 3))]


def test_what_crosses_a_process_border_is_taken_as_it_is() -> None:
    assert checked_schedule(({"step": 0, "rows": (("0", 0, 4),)},), 1) == [plan(0, ("0", 0, 4))]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "plans",
        [3],
        [{"step": 0}],
        [{"rows": []}],
        [{"step": -1, "rows": []}],
        [{"step": True, "rows": []}],
        [plan(0, ("7", 0, 1))],
        [{"step": 0, "rows": [["0", 0]]}],
        [{"step": 0, "rows": [["0", 0.0, 1]]}],
        [{"step": 0, "rows": [[["0"], 0, 1]]}],
        [{"step": 0, "rows": "00"}],
        [{"step": 0, "rows": ["001"]}],
    ],
)
def test_what_is_no_schedule_is_refused(value: Any) -> None:
    with pytest.raises(MalformedScheduleError):
        checked_schedule(value, 1)
