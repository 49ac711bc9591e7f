from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.compare.compare import compare_records
from framework.compare.finding import Finding, FindingClass
from framework.compare.rules import parse_rules
from framework.explain.divergence import Aids, explain_tokens, find_divergence


def request(tokens: Any, **fields: Any) -> dict[str, Any]:
    return {"generated_tokens": tokens, **fields}


def words(token_ids: Sequence[int]) -> str:
    return "".join(f" w{token}" for token in token_ids)


def test_the_first_difference_is_shown_with_what_is_known_of_it() -> None:
    golden = request(list(range(20)), margins=[1.5] * 20, generated_logprobs=[-1.0] * 20)
    current = request([*range(10), 99, *range(11, 20)], generated_logprobs=[-1.0] * 9 + [-1.25] * 11)
    divergence = find_divergence(golden, current)
    assert divergence is not None
    assert divergence.position == 10
    assert divergence.in_words().split("\n") == [
        "they part at token 10",
        "golden:  … 5 6 7 8 9 >10< 11 12 13 14 15 …",
        "current: … 5 6 7 8 9 >99< 11 12 13 14 15 …",
        "margin in the golden there: 1.5",
        "largest log-prob error before: 0.25",
    ]


def test_a_sequence_that_ends_early_diverges_at_its_end() -> None:
    divergence = find_divergence(request([1, 2, 3]), request([1, 2]))
    assert divergence is not None
    assert divergence.in_words() == "they part at token 2\ngolden:  1 2 >3<\ncurrent: 1 2 >end<"


@pytest.mark.parametrize("other", [[1, 2], None, "12", [1, 2.0], [True, 2]])
def test_what_is_equal_or_no_tokens_has_no_divergence(other: Any) -> None:
    assert find_divergence(request([1, 2]), request(other)) is None


@pytest.mark.parametrize("margins", [None, [], [None, None], ["x", "y"], [0, True], [0, 10**400]])
def test_odd_margins_are_no_margins(margins: Any) -> None:
    divergence = find_divergence(request([1, 2], margins=margins), request([1, 3]))
    assert divergence is not None
    assert divergence.margin is None


def finding(kind: FindingClass, path: str, cause: str | None = None) -> Finding:
    return Finding(kind=kind, path=path, rule="exact", message="differs", cause=cause)


GOLDEN = {"requests": {'a"b': request([1, 2])}}
RECORD = {"requests": {'a"b': request([1, 3])}}
PLACE = 'requests["a\\"b"].generated_tokens[1]'


def test_only_findings_on_generated_tokens_are_explained() -> None:
    findings = [
        finding(FindingClass.TOKEN, PLACE),
        finding(FindingClass.TOKEN, 'requests["a\\"b"].prompt_tokens[1]'),
        finding(FindingClass.TEXT, 'requests["a\\"b"].generated_text'),
        finding(FindingClass.STRUCTURE, PLACE),
    ]
    explained = explain_tokens(findings, GOLDEN, RECORD)
    assert explained[0].message == "differs\nthey part at token 1\ngolden:  1 >2<\ncurrent: 1 >3<"
    assert list(explained[1:]) == findings[1:]


def test_a_request_that_one_side_lacks_is_not_explained() -> None:
    token = finding(FindingClass.TOKEN, PLACE)
    assert explain_tokens([token], GOLDEN, {"requests": {}}) == (token,)


def explained(golden: dict[str, Any], current: dict[str, Any], aids: Aids | None = None, **sides: Any) -> Finding:
    """Judge two records of one request, and return the finding on its tokens."""
    before, after = (
        {
            "schema": "golden.record/1",
            "fixture": "case",
            "requests": {"0": {"prompt_tokens": [7] * 64, **each}},
            **{name: values[side] for name, values in sides.items()},
        }
        for side, each in enumerate((golden, current))
    )
    rules = parse_rules({"assert": {"generated_tokens": "exact"}, "inform": ["counters", "generated_logprobs"]})
    (found,) = explain_tokens(compare_records(before, after, rules).findings, before, after, aids or Aids())
    return found


def counters(*values: int) -> list[dict[str, int]]:
    return [{"step_count": value} for value in values]


def mode(*values: str) -> list[dict[str, Any]]:
    return [{"async_sched_mode": {"value": value, "source": "default"}} for value in values]


def test_an_exact_tie_is_a_tie_flip_whatever_else_moved() -> None:
    found = explained(
        request([1, 2], margins=[1.0, 0.0]), request([1, 3]), counters=counters(1, 2), settings=mode("a", "b")
    )
    assert found.cause == "TIE_FLIP"
    assert "margin in the golden there: 0, an exact tie" in found.message


@pytest.mark.parametrize("margin", [5e-324, 1e-9, 0.125])
def test_a_margin_however_small_is_no_tie(margin: float) -> None:
    assert explained(request([1, 2], margins=[1.0, margin]), request([1, 3])).cause is None


@pytest.mark.parametrize(
    ("error", "margin", "cause"),
    [
        (0.01, 0.5, "NUMERIC_DRIFT"),
        (0.01, 1.5, None),  # a hundred times the error does not reach it
        (0.0, 1e-9, None),
        (math.nan, 1e9, "NUMERIC_DRIFT"),
        (0.01, None, "NUMERIC_DRIFT"),
    ],
)
def test_a_drift_is_the_cause_where_it_can_have_turned_the_token(
    error: float, margin: float | None, cause: str | None
) -> None:
    golden = request([1, 2], generated_logprobs=[-0.5, -0.5])
    if margin is not None:
        golden["margins"] = [1.0, margin]
    assert explained(golden, request([1, 3], generated_logprobs=[-0.5 - error, -0.5])).cause == cause


def test_a_first_token_that_differs_is_wrong_from_the_start() -> None:
    assert explained(request([1, 2], margins=[3.0, 3.0]), request([9, 2])).cause == "WRONG_FROM_START"


def test_another_length_is_its_own_cause() -> None:
    found = explained(request([1, 2, 3]), request([1, 2]), counters=counters(3, 2))
    assert (found.kind.value, found.cause) == ("LENGTH", "LENGTH")


@pytest.mark.parametrize(
    ("sides", "moved"),
    [
        ({"counters": counters(3, 4)}, "counters.step_count"),
        ({"settings": mode("async", "legacy")}, "settings.async_sched_mode"),
        (
            {"counters": counters(3, 4), "settings": mode("async", "legacy")},
            "settings.async_sched_mode, counters.step_count",
        ),
    ],
)
def test_a_schedule_that_moved_is_the_cause_where_nothing_closer_is_known(sides: Any, moved: str) -> None:
    found = explained(request([1, 2], margins=[3.0, 3.0]), request([1, 3]), **sides)
    assert found.cause == "SCHEDULE"
    assert f"the schedule moved too: {moved}\n" in found.message


@pytest.mark.parametrize(
    "sides",
    [
        {},
        {"counters": counters(3, 3), "settings": mode("async", "async")},
        {"settings": [{"dtype": {"value": "fp32"}}, {"dtype": {"value": "bf16"}}]},
        {"settings": [{}, {"async_sched_mode": {"value": "legacy"}}]},
        {"counters": [{"old": 1}, {"new": 2}]},
        {"counters": [None, 3], "settings": [[], "x"]},
    ],
)
def test_what_is_no_schedule_or_did_not_move_is_no_cause(sides: Any) -> None:
    golden = {"schema": "golden.record/1", "fixture": "case", "requests": {"0": request([1, 2])}}
    token = finding(FindingClass.TOKEN, 'requests["0"].generated_tokens[1]')
    records = [
        {**golden, "requests": {"0": request(tokens)}, **{name: values[side] for name, values in sides.items()}}
        for side, tokens in enumerate(([1, 2], [1, 3]))
    ]
    assert explain_tokens([token], records[0], records[1])[0].cause is None


def test_counters_that_follow_from_other_lengths_prove_nothing() -> None:
    records: list[dict[str, Any]] = [
        {"requests": {"0": request([1, 2]), "1": request(other)}, "counters": {"step_count": len(other)}}
        for other in ([1], [1, 2, 3])
    ]
    records[1]["requests"]["0"] = request([1, 3])
    token = finding(FindingClass.TOKEN, 'requests["0"].generated_tokens[1]')
    assert explain_tokens([token], records[0], records[1])[0].cause is None


def test_a_margin_is_given_in_units_of_the_dtype() -> None:
    bf16 = [{"dtype": {"value": "bf16", "source": "pinned"}}] * 2
    golden = request([1, 2], margins=[1.0, 0.125], generated_logprobs=[-0.5, -0.375])
    found = explained(golden, request([1, 3]), settings=bf16)
    assert "margin in the golden there: 0.125, 32 ULPs of bf16 at a log-prob of -0.5" in found.message


@pytest.mark.parametrize("dtype", ["int4", None, 3, []])
def test_a_dtype_that_is_not_known_leaves_the_margin_in_logits(dtype: Any) -> None:
    golden = request([1, 2], margins=[1.0, 0.125], generated_logprobs=[-0.5, -0.375])
    found = explained(golden, request([1, 3]), settings=[{"dtype": {"value": dtype}}] * 2)
    assert found.message.endswith("margin in the golden there: 0.125")


def test_both_tokens_are_shown_as_text_with_their_neighbours() -> None:
    golden, current = request(list(range(9))), request([*range(6), 99, 7, 8])
    lines = explained(golden, current, Aids(decode=words)).message.split("\n")
    assert lines[3] == '         " w1 w2 w3 w4 w5» w6« w7 w8"'
    assert lines[5] == '         " w1 w2 w3 w4 w5» w99« w7 w8"'


def test_the_end_of_a_text_is_marked() -> None:
    lines = explained(request([1, 2]), request([1]), Aids(decode=words)).message.split("\n")
    assert lines[-1] == '         " w1»end«"'


def test_a_token_inside_a_character_is_shown_by_itself() -> None:
    def decode(token_ids: Sequence[int]) -> str:
        return "é" if tuple(token_ids) == (1, 2) else "?" * len(token_ids)

    lines = explained(request([1, 2]), request([1, 3]), Aids(decode=decode)).message.split("\n")
    assert lines[3] == '         "?»?«"'


def test_a_text_cannot_move_the_cursor() -> None:
    found = explained(request([1]), request([2]), Aids(decode=lambda ids: "\x1b[2J\n\u202e" * len(ids)))
    assert '"»\\u001b[2J\\n\\u202e«"' in found.message


def test_a_decoder_that_fails_leaves_the_ids() -> None:
    def decode(token_ids: Sequence[int]) -> str:
        raise OverflowError("no such token")

    found = explained(request([1]), request([-2]), Aids(decode=decode))
    assert found.message.endswith("they part at token 0\ngolden:  >1<\ncurrent: >-2<")


def test_an_output_without_tokens_was_computed_nowhere() -> None:
    assert "computed" not in explained(request([1]), request([]), Aids(schedule=SCHEDULE)).message


ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
LISTS = st.lists(ODD, max_size=4) | ODD
REQUESTS = st.fixed_dictionaries(
    {"generated_tokens": st.lists(st.integers(-5, 5), min_size=1, max_size=4)},
    optional={"margins": LISTS, "generated_logprobs": LISTS, "prompt_tokens": LISTS},
)


@given(REQUESTS, REQUESTS, st.sampled_from(["bf16", "fp32", "x"]))
def test_whatever_stands_in_the_records_a_finding_can_be_explained(
    golden: dict[str, Any], current: dict[str, Any], dtype: str
) -> None:
    before, after = ({"requests": {"0": each}, "settings": {"dtype": {"value": dtype}}} for each in (golden, current))
    token = finding(FindingClass.TOKEN, 'requests["0"].generated_tokens[0]')
    (found,) = explain_tokens([token], before, after, Aids(words, SCHEDULE))
    differs = golden["generated_tokens"] != current["generated_tokens"]
    assert ("they part at token" in found.message) == differs


SCHEDULE = [
    {"step": 0, "rows": [["0", 0, 64]]},
    {"step": 1, "rows": [["0", 64, 1], ["1", 0, 5]]},
    {"step": 2, "rows": [["0", 65, 1]]},
]


@pytest.mark.parametrize(
    ("tokens", "step"),
    [
        ([9, 2, 3], "0: prefill of request 0 [0, 64)"),
        ([1, 9, 3], "1: decode of request 0 beside a prefill of request 1 [0, 5)"),
        ([1, 2, 9], "2: decode of request 0"),
        ([1, 2], "1: decode of request 0 beside a prefill of request 1 [0, 5)"),
    ],
)
def test_the_step_that_computed_the_token_is_named(tokens: list[int], step: str) -> None:
    found = explained(request([1, 2, 3]), request(tokens), Aids(schedule=SCHEDULE))
    assert found.message.endswith(f"computed in step {step}")
