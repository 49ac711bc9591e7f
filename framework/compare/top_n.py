"""Top-n log-probabilities: for each position a list of `{token_id, logprob}`, ordered by log-probability, then id.

Candidates are paired by token id, and two may stand in either order only if they tie: the log-probabilities must agree
place by place too. Values that agree id by id within a tolerance also do once both sides are ordered by them, so no
exchange that the tolerance explains is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework.compare.fields import FieldType
from framework.compare.finding import FindingClass
from framework.compare.leaves import Problem, judge_scalar
from framework.compare.rule import Rule
from framework.compare.show import type_name
from framework.compare.walk import Place, length_problem

_KEYS = frozenset({"token_id", "logprob"})


def failing_top_n(golden: Any, current: Any, field: FieldType, rule: Rule) -> Iterator[Place]:
    """Yield every place at which two top-n fields differ; indices are those of the golden."""
    if type(golden) is not list or type(current) is not list:
        yield Place((), golden, current, _wrong_form(golden, current))
    elif len(golden) != len(current):
        common = min(len(golden), len(current))
        beginning = failing_top_n(golden[:common], current[:common], field, rule)
        yield Place((), golden, current, length_problem(golden, current, beginning))
    else:
        for position, (reference, value) in enumerate(zip(golden, current, strict=True)):
            yield from _failing_position(position, reference, value, field, rule)


def _failing_position(position: int, golden: Any, current: Any, field: FieldType, rule: Rule) -> Iterator[Place]:
    for side in (golden, current):
        if type(side) is not list or any(not _is_candidate(item) for item in side):
            yield Place((position,), golden, current, _wrong_form(golden, current))
            return
    if len(golden) != len(current):
        yield Place((position,), golden, current, length_problem(golden, current, iter(())))
        return
    by_id = list(_failing_by_id(position, golden, current, field, rule))
    yield from by_id or _out_of_order(position, golden, current, field, rule)


def _failing_by_id(
    position: int, golden: list[Any], current: list[Any], field: FieldType, rule: Rule
) -> Iterator[Place]:
    values = {item["token_id"]: item["logprob"] for item in current}
    golden_ids = {item["token_id"] for item in golden}
    strangers = [item for item in current if item["token_id"] not in golden_ids]
    for index, item in enumerate(golden):
        token_id = item["token_id"]
        if token_id in values:
            problem = judge_scalar(item["logprob"], values[token_id], field, rule)
            if problem is not None:
                yield Place((position, index, "logprob"), item["logprob"], values[token_id], problem)
        else:
            stranger = strangers.pop(0)["token_id"] if strangers else None
            yield Place((position, index, "token_id"), token_id, stranger, Problem(field.kind, "another token"))
    if len(values) != len(current) or len(golden_ids) != len(golden):
        yield Place((position,), golden, current, Problem(FindingClass.STRUCTURE, "a token id stands there twice"))


def _out_of_order(
    position: int, golden: list[Any], current: list[Any], field: FieldType, rule: Rule
) -> Iterator[Place]:
    for index, (item, other) in enumerate(zip(golden, current, strict=True)):
        if judge_scalar(item["logprob"], other["logprob"], field, rule) is not None:
            problem = Problem(field.kind, "another order, and no tie")
            yield Place((position, index, "token_id"), item["token_id"], other["token_id"], problem)


def _is_candidate(item: Any) -> bool:
    return type(item) is dict and item.keys() == _KEYS and type(item["token_id"]) is int


def _wrong_form(golden: Any, current: Any) -> Problem:
    reason = f"golden is {type_name(golden)}, current {type_name(current)}"
    return Problem(FindingClass.STRUCTURE, f"not lists of {{token_id, logprob}}: {reason}")
