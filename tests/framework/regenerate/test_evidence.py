from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.compare.rules import parse_rules
from framework.errors import GoldenError
from framework.manifest.fixture import Fixture, Prompt, Workload
from framework.regenerate.evidence import Evidence, Spread, evidence_of, margin_problems, per_request_rules

RULES = parse_rules(
    {
        "assert": {
            "generated_tokens": "exact",
            "generated_logprobs": {"atol": 1e-3, "rtol": 0.0},
            "counters": {"*": "exact"},
            "performance": {"x": {"ratio": [0.5, 2.0]}},
        },
        "ignore": {"finish_reason": "not under test"},
    },
    where="test",
    lines={},
)


def record(**fields: Any) -> dict[str, Any]:
    return {"requests": {"0": fields}}


def fixture(**sampling: Any) -> Fixture:
    return Fixture(
        name="a",
        path=Path(),
        summary="",
        model="",
        engine={},
        workload=Workload(prompts=(Prompt(text="a"),), sampling=sampling),
        rules=RULES,
    )


def test_the_spread_is_the_largest_difference_of_any_run() -> None:
    spread = Spread()
    first = record(generated_logprobs=[-1.0, -2.0], generated_tokens=[1])
    spread.add_asserted(first, record(generated_logprobs=[-1.0, -2.5], generated_tokens=[2]), RULES)
    spread.add_asserted(first, record(generated_logprobs=[-1.25, -2.0], generated_tokens=[2]), RULES)
    assert spread.as_json() == {"generated_logprobs": 0.5}


@pytest.mark.parametrize("other", [None, [], [[1.0]], [float("nan")], ["x"]])
def test_forms_that_do_not_agree_have_no_spread(other: Any) -> None:
    spread = Spread()
    spread.add(record(generated_logprobs=[-1.0]), record(generated_logprobs=other), ["generated_logprobs"])
    assert spread.of("generated_logprobs") is None


def test_per_request_rules_leave_out_what_a_schedule_may_change() -> None:
    rules = per_request_rules(RULES)
    assert set(rules.asserted) == {"generated_tokens", "generated_logprobs"}
    assert {"counters", "performance"} <= rules.informed
    assert rules.ignored == RULES.ignored


@pytest.mark.parametrize(
    ("margins", "error", "words"),
    [
        ([1.0, 0.0], None, "an exact tie"),
        ([1.0, 1e-9], None, None),
        ([1.0, 0.099], 1e-3, "0.099 is less than 100 times"),
        ([1.0, 0.101], 1e-3, None),
        ([], 1e-3, None),
    ],
)
def test_margins_must_be_wider_than_another_cpu_can_move_them(
    margins: list[float],
    error: float | None,
    words: str | None,
) -> None:
    problems = margin_problems(fixture(), record(margins=margins), error)
    assert len(problems) == (words is not None)
    assert all(str(words) in problem for problem in problems)
    assert all('requests["0"].margins[1]' in problem for problem in problems)


def test_the_margins_of_sampled_tokens_decide_nothing() -> None:
    assert margin_problems(fixture(temperature=0.5), record(margins=[0.0]), None) == []


def test_evidence_is_read_back_as_it_was_stored() -> None:
    evidence = Evidence(8, {"generated_logprobs": 1e-6}, None)
    assert evidence_of({"proof": evidence.as_json()}) == evidence


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        (None, "no proof"),
        ([], "no proof"),
        ({"spread": {}}, "how many runs"),
        ({"runs": True, "spread": {}}, "how many runs"),
        ({"runs": 8}, "how far runs spread"),
        ({"runs": 8, "spread": {"a": "x"}}, "how far runs spread"),
        ({"runs": 8, "spread": {"a": -1.0}}, "how far runs spread"),
        ({"runs": 8, "spread": {"a": float("nan")}}, "how far runs spread"),
        ({"runs": 8, "spread": {"a": 10**400}}, "how far runs spread"),
        ({"runs": 8, "spread": {}, "instruction_set_error": [1]}, "how far instruction sets differ"),
    ],
)
def test_what_is_no_evidence_is_said(proof: Any, words: str) -> None:
    with pytest.raises(GoldenError, match=words):
        evidence_of({"proof": proof})
