from __future__ import annotations

from typing import Any

import pytest

from framework.compare.finding import Finding, FindingClass
from framework.explain.divergence import explain_tokens, find_divergence


def request(tokens: Any, **fields: Any) -> dict[str, Any]:
    return {"generated_tokens": tokens, **fields}


def test_the_first_difference_is_shown_with_what_is_known_of_it() -> None:
    golden = request(list(range(20)), margins=[1.5] * 20, generated_logprobs=[-1.0] * 20)
    current = request([*range(10), 99, *range(11, 20)], generated_logprobs=[-1.0] * 9 + [-1.25] * 11)
    divergence = find_divergence(golden, current)
    assert divergence is not None
    assert divergence.position == 10
    assert divergence.in_words().split("\n") == [
        "golden:  … 5 6 7 8 9 >10< 11 12 13 14 15 …",
        "current: … 5 6 7 8 9 >99< 11 12 13 14 15 …",
        "margin in the golden there: 1.5",
        "largest log-prob error before: 0.25",
    ]


def test_a_sequence_that_ends_early_diverges_at_its_end() -> None:
    divergence = find_divergence(request([1, 2, 3]), request([1, 2]))
    assert divergence is not None
    assert divergence.in_words() == "golden:  1 2 >3<\ncurrent: 1 2 >end<"


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
    assert explained[0].message == "differs\ngolden:  1 >2<\ncurrent: 1 >3<"
    assert list(explained[1:]) == findings[1:]


def test_the_schedule_is_the_cause_only_if_it_moved_and_nothing_closer_is_known() -> None:
    token, counter = finding(FindingClass.TOKEN, PLACE), finding(FindingClass.COUNTER, "counters.step_count")
    assert explain_tokens([token], GOLDEN, RECORD)[0].cause is None
    assert explain_tokens([counter, token], GOLDEN, RECORD)[1].cause == "SCHEDULE"
    tie = finding(FindingClass.TOKEN, PLACE, "TIE_FLIP")
    assert explain_tokens([counter, tie], GOLDEN, RECORD)[1].cause == "TIE_FLIP"


def test_a_request_that_one_side_lacks_is_not_explained() -> None:
    token = finding(FindingClass.TOKEN, PLACE)
    assert explain_tokens([token], GOLDEN, {"requests": {}}) == (token,)
