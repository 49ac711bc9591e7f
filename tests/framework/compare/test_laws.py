"""The laws of a comparison, over generated records."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.compare.compare import compare_records
from framework.compare.finding import FindingClass
from framework.compare.rules import parse_rules
from tests.framework.compare.samples import found, record, rules

law = settings(max_examples=1000, deadline=None)

ATOL, RTOL = 1e-3, 1e-2
RULES = parse_rules(
    {
        "assert": {
            "generated_tokens": "exact",
            "generated_text": "exact",
            "finish_reason": "exact",
            "generated_logprobs": {"atol": ATOL, "rtol": RTOL},
            "top_n_logprobs": {"atol": ATOL, "rtol": RTOL},
            "routing_indices": "set",
            "counters": {"*": "exact"},
            "performance": {"*": {"ratio": [0.5, 2.0]}},
        },
        "ignore": {"settings": "of no concern"},
    }
)

token_ids = st.integers(0, 200_000)
finite = st.floats(-100, 0, allow_nan=False)
texts = st.text(st.characters(), max_size=20)
candidates = st.dictionaries(token_ids, finite, min_size=1, max_size=2)
rows = st.sampled_from([(0, 1), (7, 3), (2, 9)])
names = st.text("abcdefg_", min_size=1, max_size=5)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 3))
    return {
        "prompt_tokens": draw(st.lists(token_ids, min_size=1, max_size=4)),
        "generated_tokens": draw(st.lists(token_ids, min_size=count, max_size=count)),
        "generated_text": draw(texts),
        "finish_reason": draw(st.sampled_from(["stop", "length", None])),
        "generated_logprobs": draw(st.lists(finite, min_size=count, max_size=count)),
        "top_n_logprobs": [
            [{"token_id": token, "logprob": logprob} for token, logprob in draw(candidates).items()]
            for _ in range(count)
        ],
        "routing_indices": [[list(draw(rows)) for _ in range(2)] for _ in range(count)],
        "margins": draw(st.lists(st.floats(0, 10), min_size=count, max_size=count)),
    }


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    ids = draw(st.lists(st.integers(0, 99).map(str), min_size=1, max_size=2, unique=True))
    return {
        "schema": "golden.record/1",
        "fixture": "case",
        "requests": {request_id: draw(requests()) for request_id in ids},
        "counters": draw(st.dictionaries(names, st.integers(0, 2**70), min_size=1, max_size=4)),
        "performance": {"seconds": draw(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=5))},
        "settings": {"a": {"value": 1, "source": "default"}},
        "environment": {"torch": "2"},
    }


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def keys_reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: keys_reversed(value[key]) for key in reversed(value)}
    return [keys_reversed(item) for item in value] if isinstance(value, list) else value


@law
@given(records())
def test_every_record_equals_itself(record: dict[str, Any]) -> None:
    assert compare_records(record, copy.deepcopy(record), RULES).findings == ()


@law
@given(records())
def test_key_order_never_matters(record: dict[str, Any]) -> None:
    assert compare_records(record, keys_reversed(record), RULES).findings == ()


@law
@given(records(), st.data())
def test_list_order_always_matters(record: dict[str, Any], data: st.DataObject) -> None:
    request_id = data.draw(st.sampled_from(sorted(record["requests"])))
    tokens = record["requests"][request_id]["generated_tokens"]
    shuffled = data.draw(st.permutations(tokens))
    other = copy.deepcopy(record)
    other["requests"][request_id]["generated_tokens"] = shuffled
    kinds = [finding.kind for finding in compare_records(record, other, RULES).findings]
    assert kinds == ([] if shuffled == tokens else [FindingClass.TOKEN])


@law
@given(any_json, any_json)
def test_no_pair_of_json_values_raises(golden: Any, current: Any) -> None:
    assert compare_records(golden, current, RULES).findings != ()


def record_like(**parts: Any) -> dict[str, Any]:
    return {"schema": "golden.record/1", "fixture": "case", **parts}


FIELDS = ["prompt_tokens", "generated_tokens", "generated_text", "generated_logprobs", "top_n_logprobs", "margins"]


@law
@given(st.data())
def test_no_pair_of_almost_records_raises(data: st.DataObject) -> None:
    request = st.dictionaries(st.sampled_from([*FIELDS, "routing_indices", "error"]), any_json, max_size=5)
    section = st.dictionaries(names, any_json, max_size=3) | any_json
    both = [
        record_like(
            requests=data.draw(st.dictionaries(st.sampled_from("01"), request | any_json, max_size=2)),
            counters=data.draw(section),
            performance=data.draw(section),
        )
        for _ in range(2)
    ]
    findings = compare_records(both[0], both[1], RULES).findings
    assert json.loads(json.dumps([finding.as_json() for finding in findings], allow_nan=False)) is not None


@law
@given(finite, finite, st.floats(0, 1), st.floats(0, 0.9), st.floats(0, 1), st.floats(0, 0.09))
def test_a_wider_tolerance_never_finds_more(
    golden: float, current: float, atol: float, rtol: float, more_atol: float, more_rtol: float
) -> None:
    def passes(atol: float, rtol: float) -> bool:
        rules = parse_rules({"assert": {"generated_logprobs": {"atol": atol, "rtol": rtol}}})
        both = [
            record_like(requests={"0": {"prompt_tokens": [1], "generated_logprobs": [value]}})
            for value in (golden, current)
        ]
        return not compare_records(both[0], both[1], rules).findings

    assert passes(atol, rtol) == (abs(current - golden) <= atol + rtol * abs(golden))
    assert passes(atol + more_atol, rtol + more_rtol) or not passes(atol, rtol)


@dataclass(frozen=True)
class Mutation:
    """One change of a record, and the one finding that it must give."""

    apply: Callable[[dict[str, Any]], None]
    kind: str
    path: str


@st.composite
def mutations_of_a_request(draw: st.DrawFn, record: dict[str, Any]) -> Mutation:
    request_id = draw(st.sampled_from(sorted(record["requests"])))
    request = record["requests"][request_id]
    index = draw(st.integers(0, len(request["generated_tokens"]) - 1))
    layer = draw(st.integers(0, 1))
    row = request["routing_indices"][index][layer]
    best = request["top_n_logprobs"][index][0]
    at, here = f'requests["{request_id}"]', record["requests"][request_id]

    def change(*steps: Any, to: Any) -> Callable[[dict[str, Any]], None]:
        def apply(mutated: dict[str, Any]) -> None:
            value = mutated["requests"][request_id]
            for step in steps[:-1]:
                value = value[step]
            value[steps[-1]] = to

        return apply

    def drop(name: str) -> Callable[[dict[str, Any]], None]:
        return lambda mutated: mutated["requests"][request_id][name].pop()

    moved = 3 * (ATOL + RTOL * 101)
    name = draw(st.sampled_from(["generated_tokens", "generated_logprobs", "top_n_logprobs", "routing_indices"]))
    token, logprob = here["generated_tokens"][index], here["generated_logprobs"][index]
    return draw(
        st.sampled_from(
            [
                Mutation(change("generated_tokens", index, to=token + 1), "TOKEN", f"{at}.generated_tokens[{index}]"),
                Mutation(
                    change("generated_tokens", index, to=float(token)), "STRUCTURE", f"{at}.generated_tokens[{index}]"
                ),
                Mutation(change("prompt_tokens", 0, to=-1), "TOKEN", f"{at}.prompt_tokens[0]"),
                Mutation(
                    change("generated_logprobs", index, to=logprob - moved),
                    "LOGPROB",
                    f"{at}.generated_logprobs[{index}]",
                ),
                Mutation(
                    change("generated_logprobs", index, to=math.nan),
                    "NON_FINITE",
                    f"{at}.generated_logprobs[{index}]",
                ),
                Mutation(
                    change("top_n_logprobs", index, 0, "logprob", to=best["logprob"] - moved),
                    "LOGPROB",
                    f"{at}.top_n_logprobs[{index}][0].logprob",
                ),
                Mutation(
                    change("top_n_logprobs", index, 0, "token_id", to=200_001),
                    "LOGPROB",
                    f"{at}.top_n_logprobs[{index}][0].token_id",
                ),
                Mutation(
                    change("routing_indices", index, layer, 1, to=99),
                    "ROUTING",
                    f"{at}.routing_indices[{index}][{layer}][1]",
                ),
                Mutation(
                    change("routing_indices", index, layer, to=row[:1]),
                    "LENGTH",
                    f"{at}.routing_indices[{index}][{layer}]",
                ),
                Mutation(change("generated_text", to=request["generated_text"] + "x"), "TEXT", f"{at}.generated_text"),
                Mutation(change("generated_text", to=None), "STRUCTURE", f"{at}.generated_text"),
                Mutation(change("finish_reason", to="other"), "STRUCTURE", f"{at}.finish_reason"),
                Mutation(drop(name), "LENGTH", f"{at}.{name}"),
                Mutation(change(name, to=None), "STRUCTURE", f"{at}.{name}"),
                Mutation(lambda mutated: mutated["requests"][request_id].pop(name), "STRUCTURE", f"{at}.{name}"),
                Mutation(change("added", to=1), "RULES", "added"),
                Mutation(lambda mutated: mutated["requests"].pop(request_id), "STRUCTURE", at),
                Mutation(lambda mutated: mutated["requests"].update({request_id: []}), "STRUCTURE", at),
                Mutation(
                    lambda mutated: mutated["requests"].update(new=copy.deepcopy(here)), "STRUCTURE", 'requests["new"]'
                ),
            ]
        )
    )


@st.composite
def mutations_of_a_section(draw: st.DrawFn, record: dict[str, Any]) -> Mutation:
    name = draw(st.sampled_from(sorted(record["counters"])))
    value = record["counters"][name]
    other = draw(st.sampled_from([(value + 1, "COUNTER"), (str(value), "STRUCTURE"), (None, "STRUCTURE")]))
    seconds = record["performance"]["seconds"]
    return draw(
        st.sampled_from(
            [
                Mutation(lambda mutated: mutated["counters"].update({name: other[0]}), other[1], f"counters.{name}"),
                Mutation(lambda mutated: mutated["counters"].pop(name), "STRUCTURE", f"counters.{name}"),
                Mutation(lambda mutated: mutated["counters"].update(newcomer=1), "STRUCTURE", "counters.newcomer"),
                Mutation(lambda mutated: mutated.update(counters=[]), "STRUCTURE", "counters"),
                Mutation(
                    lambda mutated: mutated["performance"].update(seconds=[3 * x for x in seconds]),
                    "PERFORMANCE",
                    "performance.seconds",
                ),
                Mutation(
                    lambda mutated: mutated["performance"]["seconds"].__setitem__(0, 0.0),
                    "PERFORMANCE",
                    "performance.seconds[0]",
                ),
                Mutation(lambda mutated: mutated.update(fixture="other"), "STRUCTURE", "fixture"),
                Mutation(lambda mutated: mutated.update(schema="golden.record/2"), "STRUCTURE", "schema"),
            ]
        )
    )


@law
@given(st.data())
def test_one_mutation_is_one_finding_at_its_place(data: st.DataObject) -> None:
    record = data.draw(records())
    mutation = data.draw(mutations_of_a_request(record) | mutations_of_a_section(record))
    mutated = copy.deepcopy(record)
    mutation.apply(mutated)
    findings = compare_records(record, mutated, RULES).findings
    assert [(finding.kind.value, finding.path) for finding in findings] == [(mutation.kind, mutation.path)]
    backwards = compare_records(mutated, record, RULES).findings
    assert len(backwards) == 1


EXACT = st.integers(-(2**20), 2**20).map(lambda number: number / 64)
"""Numbers whose sums and products a float holds exactly, so that the law can be asked for to the last bit."""


@law
@given(EXACT, EXACT, EXACT.map(abs), st.integers(0, 64).map(lambda number: number / 64))
def test_the_golden_is_the_reference_of_a_tolerance(golden: float, current: float, atol: float, rtol: float) -> None:
    def passes(reference: float, value: float) -> bool:
        written = rules({"generated_logprobs": {"atol": atol, "rtol": rtol}})
        sides = [record({"generated_logprobs": [side, 0.0, 0.0]}) for side in (reference, value)]
        return found(sides[0], sides[1], written) == []

    def allowed(reference: float, value: float) -> bool:
        difference = abs(Fraction(value) - Fraction(reference))
        return difference <= Fraction(atol) + Fraction(rtol) * abs(Fraction(reference))

    assert passes(golden, current) == allowed(golden, current)
    assert passes(current, golden) == allowed(current, golden)


def test_swapping_the_sides_of_a_relative_tolerance_changes_the_verdict() -> None:
    written = rules({"generated_logprobs": {"atol": 0.0, "rtol": 0.5}})
    small, large = (record({"generated_logprobs": [-value, -1.0, -1.0]}) for value in (1.0, 2.0))
    assert found(large, small, written) == []
    assert found(small, large, written) == [("LOGPROB", 'requests["0"].generated_logprobs[0]')]
