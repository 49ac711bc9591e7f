from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.compare.rules import parse_rules
from framework.manifest.fixture import Fixture, Prompt, Workload
from framework.regenerate.evidence import Spread, margin_problems, per_request_rules, tolerance_warnings

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


@pytest.mark.parametrize(("seen", "warned"), [(0.0, False), (2e-4, False), (5e-5, True)])
def test_only_a_tolerance_far_above_what_was_seen_is_warned_about(seen: float, warned: bool) -> None:
    spread = Spread()
    spread.add(record(generated_logprobs=[0.0]), record(generated_logprobs=[seen]), ["generated_logprobs"])
    assert bool(tolerance_warnings(RULES, spread)) is warned


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
