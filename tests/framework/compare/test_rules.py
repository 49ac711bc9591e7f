from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.compare.rule import Rule, RuleKind
from framework.compare.rules import Treatment, load_rules, parse_rules
from framework.errors import ExitCode, ManifestError

NAN, INFINITY = float("nan"), float("inf")


def asserted(**rules: Any) -> dict[str, Any]:
    return {"assert": rules}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("exact", Rule(RuleKind.EXACT)),
        ({"exact": True}, Rule(RuleKind.EXACT)),
        ({"exact": True, "allow_empty": True}, Rule(RuleKind.EXACT, allow_empty=True)),
        ({"atol": 1e-3, "rtol": 0}, Rule(RuleKind.NUMERIC, atol=1e-3)),
        (
            {"atol": 0, "rtol": 0.1, "allow_minus_infinity": True},
            Rule(RuleKind.NUMERIC, rtol=0.1, allow_minus_infinity=True),
        ),
    ],
)
def test_a_rule_of_logprobs_is_read(written: Any, expected: Rule) -> None:
    assert parse_rules(asserted(generated_logprobs=written)).asserted == {"generated_logprobs": expected}


@pytest.mark.parametrize("word", ["set", "sequence", "exact"])
def test_routing_takes_a_word(word: str) -> None:
    assert parse_rules(asserted(routing_indices=word)).asserted["routing_indices"].kind == word


def test_a_performance_ratio_is_read() -> None:
    rules = parse_rules(asserted(performance={"*": {"ratio": [0.9, 1.25]}}))
    assert rules.asserted == {"performance.*": Rule(RuleKind.RATIO, low=0.9, high=1.25)}


@pytest.mark.parametrize(
    ("mapping", "part"),
    [
        ({}, "nothing is asserted"),
        ({"assert": {}}, "nothing is asserted"),
        ({"assert": None}, "nothing is asserted"),
        ({"assert": ["generated_tokens"]}, "nothing is asserted"),
        (asserted(counters={}), "not a map of names"),
        (asserted(counters="exact"), 'Write counters: {"*": exact}'),
        (asserted(generated_text="exactly"), 'Did you mean "exact"?'),
        (asserted(generated_text=True), "is no rule"),
        (asserted(generated_text=["exact"]), "is no rule"),
        (asserted(generated_text={}), "atol is missing"),
        (asserted(generated_text={"exact": False}), "can only be true"),
        (asserted(generated_text={"exact": True, "set": True}), "does not belong here"),
        (asserted(generated_logprobs={"atol": 1e-3}), "rtol is missing"),
        (asserted(generated_logprobs={"rtol": 1e-3}), "atol is missing"),
        (asserted(generated_logprobs={"atol": -1, "rtol": 0}), "negative"),
        (asserted(generated_logprobs={"atol": NAN, "rtol": 0}), "not finite"),
        (asserted(generated_logprobs={"atol": 0, "rtol": INFINITY}), "could not fail"),
        (asserted(generated_logprobs={"atol": 10**400, "rtol": 0}), "not finite"),
        (asserted(generated_logprobs={"atol": "1e-3", "rtol": 0}), "without quotes"),
        (asserted(generated_logprobs={"atol": True, "rtol": 0}), "not a number"),
        (asserted(generated_logprobs={"atol": 0, "rtol": 0, "allow_emtpy": True}), 'Did you mean "allow_empty"?'),
        (asserted(generated_logprobs={"atol": 0, "rtol": 0, "allow_empty": "yes"}), "true or false"),
        (asserted(generated_tokens={"atol": 1, "rtol": 0}), "does not fit here"),
        (asserted(generated_tokens="set"), "does not fit here"),
        (asserted(counters={"a": {"ratio": [0.5, 2]}}), "does not fit here"),
        (asserted(counters={"a": {"atol": 0, "rtol": 0, "allow_minus_infinity": True}}), "only a log-probability"),
        (asserted(performance={"a": {"ratio": [0, 2]}}), "0 < LOW <= 1 <= HIGH"),
        (asserted(performance={"a": {"ratio": [1.1, 2]}}), "0 < LOW <= 1 <= HIGH"),
        (asserted(performance={"a": {"ratio": [0.5, 0.9]}}), "0 < LOW <= 1 <= HIGH"),
        (asserted(performance={"a": {"ratio": [1, 1]}}), "LOW < HIGH"),
        (asserted(performance={"a": {"ratio": [0.1, 10]}}), "no plausible change could fail it"),
        (asserted(performance={"a": {"ratio": [1.0e-300, 1.0e300]}}), "no plausible change could fail it"),
        (asserted(performance={"a": {"ratio": [0.5, INFINITY]}}), "could not fail"),
        (asserted(performance={"a": {"ratio": [0.5]}}), "[LOW, HIGH]"),
        (asserted(performance={"a": {"ratio": [0.5, 2], "allow_empty": True}}), "takes no allow_empty"),
        ({"assert": {"*": "exact"}}, "legal only inside counters"),
        ({"assert": {"counters.a": "exact"}}, "written nested: counters: {a: …}"),
        ({"assert": {3: "exact"}}, "not a string"),
        ({"assert": {"counters": {3: "exact"}}}, "not a string"),
        (asserted(a="exact") | {"inform": "performance"}, "not a list"),
        (asserted(a="exact") | {"inform": ["b", "b"]}, "twice"),
        (asserted(a="exact") | {"inform": [3]}, "not a string"),
        (asserted(a="exact") | {"inform": ["*"]}, "legal only under assert"),
        (asserted(a="exact") | {"inform": ["counters.*"]}, "Name the section: counters"),
        (asserted(a="exact") | {"inform": ["requests.b"]}, "holds no names"),
        (asserted(a="exact") | {"inform": ["prompt_tokens"]}, "always compared"),
        (asserted(a="exact") | {"ignore": {"prompt_tokens": "x"}}, "always compared"),
        (asserted(a="exact") | {"ignore": {"b": ""}}, "no reason"),
        (asserted(a="exact") | {"ignore": {"b": "  "}}, "no reason"),
        (asserted(a="exact") | {"ignore": {"b": None}}, "no reason"),
        (asserted(a="exact") | {"ignore": ["b"]}, "not a map"),
        (asserted(a="exact") | {"inform": ["a"]}, "stands under assert too"),
        (asserted(a="exact") | {"ignore": {"a": "x"}}, "stands under assert too"),
        (asserted(a="exact") | {"inform": ["b"], "ignore": {"b": "x"}}, "stands under inform too"),
        (asserted(counters={"*": "exact"}) | {"inform": ["counters"]}, "stands under assert too"),
        (asserted(counters={"a": "exact"}) | {"inform": ["counters.a"]}, "stands under assert too"),
    ],
)
def test_malformed_rules_are_refused_with_the_way_out(mapping: Any, part: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_rules(mapping)
    assert part in str(caught.value)
    assert caught.value.exit_code == ExitCode.MALFORMED
    assert "\n" not in str(caught.value)


def test_an_entry_beats_its_section_and_a_section_the_default() -> None:
    rules = parse_rules(
        asserted(counters={"a": "exact"}) | {"inform": ["counters.b", "performance"], "ignore": {"counters": "noise"}}
    )
    assert rules.for_entry("counters", "a").treatment is Treatment.ASSERT
    assert rules.for_entry("counters", "b").treatment is Treatment.INFORM
    assert rules.for_entry("counters", "c").treatment is Treatment.IGNORE
    assert rules.for_entry("performance", "x").treatment is Treatment.INFORM
    assert rules.for_entry("environment", "x").treatment is Treatment.INFORM
    assert rules.for_field("margins").treatment is Treatment.INFORM
    assert rules.for_field("generated_text").treatment is Treatment.UNDECLARED
    assert rules.for_field("prompt_tokens").treatment is Treatment.ALWAYS


def test_an_error_names_the_line() -> None:
    lines = {"assert": 7, "assert.generated_text": 9}
    with pytest.raises(ManifestError, match=r"^a\.yaml:9: assert\.generated_text: "):
        parse_rules(asserted(generated_text="no"), where="a.yaml", lines=lines)
    with pytest.raises(ManifestError, match=r"^a\.yaml:7: assert\.other: "):
        parse_rules(asserted(other="no"), where="a.yaml", lines=lines)


def test_a_rules_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text('assert:\n  generated_tokens: exact\n  counters: {"*": exact}\nignore: {finish_reason: no}\n')
    with pytest.raises(ManifestError, match="rules.yaml:4:25"):
        load_rules(path)
    path.write_text('assert:\n  generated_tokens: exact\n  counters: {"*": exact}\nignore: {finish_reason: why}\n')
    assert set(load_rules(path).asserted) == {"generated_tokens", "counters.*"}


@pytest.mark.parametrize("text", ["", "[]", "3", "asert: {a: exact}", "assert: {a: exact}\nname: x"])
def test_a_file_that_holds_no_rules_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError, match="rules.yaml"):
        load_rules(path)


def test_a_missing_rules_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="none.yaml: cannot be read"):
        load_rules(tmp_path / "none.yaml")
