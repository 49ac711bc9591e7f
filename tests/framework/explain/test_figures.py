from __future__ import annotations

import math
from typing import Any

import pytest

from framework.explain.figures import figures_between, same_json


def golden(requests: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return {"requests": requests, **sections}


def request(tokens: list[int], logprobs: list[Any] | None = None, **fields: Any) -> dict[str, Any]:
    numbers = {} if logprobs is None else {"generated_logprobs": logprobs}
    return {"prompt_tokens": [1], "margins": [1.0], "generated_tokens": tokens, **numbers, **fields}


def test_changed_tokens_are_counted_with_the_first_place() -> None:
    old = golden({"0": request([1, 2, 3]), "1": request([4, 5]), "2": request([6])})
    new = golden({"0": request([1, 2, 3]), "1": request([4, 9, 9]), "2": request([7])})
    tokens = figures_between(old, new).tokens
    assert tokens is not None
    assert (tokens.changed, tokens.total, tokens.requests) == (3, 7, ("1", "2"))
    assert (tokens.first.path, tokens.first.old, tokens.first.new) == ('requests["1"].generated_tokens[1]', 5, 9)


def test_the_largest_move_is_found_in_lists_of_any_form() -> None:
    old = golden({"0": request([1], [-1.0, -2.0], top_n_logprobs=[[{"token_id": 3, "logprob": -1.0}]])})
    new = golden({"0": request([1], [-1.125, -1.5], top_n_logprobs=[[{"token_id": 3, "logprob": -1.75}]])})
    moves = {move.field: (move.size, move.place.path) for move in figures_between(old, new).moves}
    assert moves == {
        "generated_logprobs": (0.5, 'requests["0"].generated_logprobs[1]'),
        "top_n_logprobs": (0.75, 'requests["0"].top_n_logprobs[0][0].logprob'),
    }


def test_candidates_of_two_tokens_are_not_subtracted() -> None:
    old = golden({"0": request([1], top_n_logprobs=[[{"token_id": 3, "logprob": -1.0}]])})
    new = golden({"0": request([1], top_n_logprobs=[[{"token_id": 4, "logprob": -1.75}]])})
    found = figures_between(old, new)
    assert found.moves == ()
    assert found.fields == {"top_n_logprobs": ("0",)}


def test_counters_that_begin_or_end_come_first_then_the_larger_share() -> None:
    old = golden({}, counters={"a": 100, "b": 10, "c": 30, "d": 5}, performance={"rate": 1.0})
    new = golden({}, counters={"a": 101, "b": 20, "c": 0, "e": 5}, performance={"rate": 2.0})
    assert [name for name, *_ in figures_between(old, new).sections] == ["c", "d", "e", "b", "a", "rate"]


def test_what_is_the_same_is_named_with_its_size() -> None:
    old = golden({"0": request([1, 2], [-1.0], finish_reason="stop")}, counters={"a": 1, "b": 2})
    new = golden({"0": request([1, 2], [-1.5], finish_reason="stop")}, counters={"a": 1, "b": 3})
    assert figures_between(old, new).same == ("finish_reason", "generated_tokens (2)", "counters (1 of them)")


def test_requests_that_came_or_went_are_named() -> None:
    assert figures_between(golden({"0": {}, "10": {}}), golden({"0": {}, "2": {}})).requests == ("2", "10")


@pytest.mark.parametrize("odd", [None, "x", 3, [None], [[1]], {"a": 1}, [math.nan], [True], [10**400]])
def test_odd_values_are_compared_like_all_others(odd: Any) -> None:
    old, new = (golden({"0": request([1], generated_logprobs=each, generated_text=each)}) for each in ([-1.0], odd))
    found = figures_between(old, new)
    assert found.tokens is None
    assert set(found.fields) == {"generated_logprobs", "generated_text"}
    swapped = golden({"0": {"generated_tokens": odd}})
    assert figures_between(golden({"0": request([1])}), swapped).requests == ()


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), ([1], [1.0]), ({"a": 1}, {"a": 1.0}), ("1", 1)])
def test_values_of_two_types_are_two_values(one: Any, other: Any) -> None:
    assert not same_json(one, other)
    assert same_json(one, one)
