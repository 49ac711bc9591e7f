from __future__ import annotations

import math
from typing import Any

import pytest

from framework.compare.witness import check_witnesses, parse_witness
from framework.errors import ManifestError
from framework.manifest.fixture import Witness


def check(text: str, record: Any) -> list[tuple[str, str, Any]]:
    findings = check_witnesses([parse_witness(text)], record)
    return [(finding.kind.value, finding.path, finding.current) for finding in findings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("counters.step_count > 0", Witness("counters.step_count", ">", 0)),
        ("  counters.a   >=   -3 ", Witness("counters.a", ">=", -3)),
        ("performance.ratio <= 1.5e-3", Witness("performance.ratio", "<=", 1.5e-3)),
        ('requests["0"].generated_tokens[3] != 7', Witness('requests["0"].generated_tokens[3]', "!=", 7)),
    ],
)
def test_a_witness_is_path_operator_and_number(text: str, expected: Witness) -> None:
    assert parse_witness(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "counters.a",
        "counters.a >",
        "counters.a > x",
        "counters.a>0",
        "counters.a => 0",
        "counters.a > 0 and 1 > 0",
        "> 0",
        "counters..a > 0",
        "counters.[a] > 0",
        "counters.a > nan",
        "counters.a > 1e999",
        "counters.a > ٣",
        "a" * 500 + " > 0",
        3,
        None,
        ["counters.a > 0"],
    ],
)
def test_what_is_no_witness_is_refused(text: Any) -> None:
    with pytest.raises(ManifestError):
        parse_witness(text)


@pytest.mark.parametrize(
    ("operator", "holds"),
    [
        ("> 29", True),
        (">= 30", True),
        ("== 30", True),
        ("!= 31", True),
        ("< 31", True),
        ("<= 30", True),
        ("> 30", False),
    ],
)
def test_the_operators_mean_what_they_say(operator: str, holds: bool) -> None:
    assert (check(f"counters.a {operator}", {"counters": {"a": 30}}) == []) is holds


def test_a_witness_that_does_not_hold_is_found_at_its_text() -> None:
    assert check("counters.a > 0", {"counters": {"a": 0}}) == [("WITNESS", "counters.a > 0", 0)]


@pytest.mark.parametrize("value", [None, "3", True, [3], math.nan])
def test_a_witness_is_about_a_number(value: Any) -> None:
    assert len(check("counters.a != 0", {"counters": {"a": value}})) == 1


@pytest.mark.parametrize("record", [{}, {"counters": {}}, {"counters": []}, {"counters": None}, [], None, 3])
def test_a_path_that_is_not_there_is_found(record: Any) -> None:
    assert check("counters.a >= 0", record) == [("WITNESS", "counters.a >= 0", None)]


def test_a_path_leads_into_lists_and_quoted_keys() -> None:
    record = {"requests": {"a b": {"generated_tokens": [4, 5]}}}
    assert check('requests["a b"].generated_tokens[1] == 5', record) == []
    assert len(check('requests["a b"].generated_tokens[2] == 5', record)) == 1


def test_integers_are_compared_exactly() -> None:
    assert check(f"counters.a > {2**53}", {"counters": {"a": 2**53 + 1}}) == []
