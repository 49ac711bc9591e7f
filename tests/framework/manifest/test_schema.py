from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.manifest.schema import manifest_schema, violations

GOOD: dict[str, Any] = {
    "manifest": 1,
    "name": "a/b",
    "summary": "x",
    "tags": ["t"],
    "model": "m",
    "engine": {"max_tokens": 4, "routing_replay_path": None},
    "ranks": 1,
    "workload": {
        "prompts": ["x", {"token_ids": [1, 2], "sampling": {"top_p": 0.5}}, {"random": {"length": 3, "seed": 0}}],
        "arrivals": {"requests_per_step": 32},
        "repeats": 2,
        "sampling": {"temperature": 0, "stop_strings": ["x"], "ignore_eos": True},
    },
    "assert": {"generated_tokens": "exact", "counters": {"*": {"exact": True}}},
    "inform": ["performance"],
    "ignore": {"finish_reason": "why"},
    "witness": ["counters.a > 0"],
    "relations": [{"kind": "same_outputs_as", "with": "c"}],
    "platforms": ["cpu"],
    "time_limit_s": 1.5,
    "owner": "me",
}


def found(changed: Any) -> list[tuple[tuple[Any, ...], str, str]]:
    return [(item.place, item.message, item.way_out) for item in violations(changed, manifest_schema())]


def changed(*steps: Any, to: Any) -> dict[str, Any]:
    manifest = copy.deepcopy(GOOD)
    inner: Any = manifest
    for step in steps[:-1]:
        inner = inner[step]
    inner[steps[-1]] = to
    return manifest


def test_a_whole_manifest_fits() -> None:
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("steps", "value", "message", "way_out"),
    [
        (
            ("workload", "arrivals", "requests_per_step"),
            "32",
            'is the string "32", not an integer',
            "Remove the quotes",
        ),
        (("workload", "arrivals", "requests_per_step"), 1.0, "is 1.0, not an integer", "Write 1"),
        (("workload", "arrivals", "requests_per_step"), True, "is true, not an integer", "Write an integer"),
        (("workload", "arrivals", "requests_per_step"), 0, "is 0", "It must be at least 1"),
        (("workload", "arrivals", "requests_per_step"), -1, "is -1", "It must be at least 1"),
        (("workload", "arrivals", "requests_per_step"), 10**12, "is 1000000000000", "It must be at most 1000000"),
        (("workload", "arrivals"), "at_once", 'is "at_once", not one of "all_at_start"', ""),
        (("workload", "arrivals"), None, "is null, not a string or a map", "Write a value, or remove the key"),
        (("workload", "arrivals"), {}, 'the key "requests_per_step" is missing', ""),
        (("workload", "prompts"), [], "is empty", "Write at least 1"),
        (("workload", "prompts", 0), 3, "is 3, not a string or a map", 'Quote it: "3"'),
        (("workload", "sampling", "temperature"), "0.7", 'is the string "0.7", not a number', "Remove the quotes"),
        (("workload", "sampling", "top_p"), 0, "is 0", "It must be above 0"),
        (("workload", "sampling", "top_kk"), 0, "this key is not known here", 'Did you mean "top_k"?'),
        (("manifest",), 2, "is 2", "Write 1"),
        (("model",), "../secret", 'is "../secret"', "Allowed are a name under fixtures/models/"),
        (("model",), "/etc", 'is "/etc"', "Allowed are"),
        (("model",), "a\n", 'is "a\\n"', "Allowed are"),
        (("name",), "a/../b", 'is "a/../b"', "Allowed are"),
        (("summary",), "", "is empty", ""),
        (("tags",), ["a", "a"], '"a" stands in the list twice', "Remove one of the two"),
        (("tags",), ["A b"], 'is "A b"', "lower-case"),
        (("engine",), [], "is empty, not a map", "Write a map"),
        (("engine", "Max Tokens"), 1, 'the key is "Max Tokens"', "a setting's name"),
        (("engine", "a"), [1], "is a list, not", ""),
        (("platforms",), [], "is empty", "Write at least 1"),
        (("time_limit_s",), 0, "is 0", "It must be above 0"),
        (
            ("relations", 0, "kind"),
            "same_output_as",
            'is "same_output_as", not one of',
            'Did you mean "same_outputs_as"?',
        ),
        (("asert",), {}, "this key is not known here", 'Did you mean "assert"?'),
    ],
)
def test_a_violation_says_what_and_the_way_out(steps: tuple[Any, ...], value: Any, message: str, way_out: str) -> None:
    (violation,) = found(changed(*steps, to=value))
    assert violation[0][: len(steps)] == steps
    assert message in violation[1]
    assert way_out in violation[2]


@pytest.mark.parametrize("key", ["manifest", "name", "summary", "model", "workload", "assert"])
def test_a_missing_key_is_named(key: str) -> None:
    manifest = {name: value for name, value in GOOD.items() if name != key}
    (violation,) = found(manifest)
    assert f'"{key}" is missing' in violation[1]


def test_every_part_of_the_schema_has_a_description() -> None:
    def parts(schema: Any) -> Iterator[Any]:
        if "$ref" in schema:
            return
        yield schema
        for inner in (*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()):
            yield from parts(inner)
        for keyword in ("items", "additionalProperties"):
            if isinstance(schema.get(keyword), dict):
                yield from parts(schema[keyword])

    assert [part for part in parts(manifest_schema()) if not part.get("description")] == []


def _strict_validator() -> Any:
    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return jsonschema.validators.extend(base, type_checker=checker)(manifest_schema())  # type: ignore[no-untyped-call]


VALIDATOR = _strict_validator()


def test_the_schema_is_one_of_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(manifest_schema())


values = st.sampled_from(
    [
        None,
        True,
        0,
        1,
        -1,
        1.0,
        0.5,
        10**30,
        "",
        "x",
        "a/b",
        "exact",
        "all_at_start",
        "32",
        "x" * 3000,
        [],
        ["x"],
        ["x", "x"],
        [1],
        {},
        {"x": 1},
    ]
).map(copy.deepcopy)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*place, key))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_check_agrees_with_a_validator_of_json_schema(data: st.DataObject) -> None:
    manifest = copy.deepcopy(GOOD)
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(sorted(places(manifest), key=repr)))
        inner: Any = manifest
        for step in place[:-1]:
            inner = inner[step]
        action = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "add" and isinstance(inner, dict):
            inner[data.draw(st.sampled_from(["text", "prompt_file", "surprise", "counters"]))] = data.draw(values)
        elif place and action == "replace":
            inner[place[-1]] = data.draw(values)
        elif place:
            del inner[place[-1]]
    assert (found(manifest) == []) == VALIDATOR.is_valid(manifest)
