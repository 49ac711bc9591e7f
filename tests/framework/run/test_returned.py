from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.compare.finding import FindingClass
from framework.manifest.fixture import Fixture
from framework.manifest.load import load_manifest
from framework.run.returned import MalformedRecordError, checked_record
from framework.run.task import Task, execute
from tests.framework.toy_adapter import ToyEngine
from tests.framework.toy_root import make_toy_root


@pytest.fixture
def fixture(tmp_path: Path) -> Fixture:
    path = make_toy_root(tmp_path / "root").write("a", prompts="hello, world")
    return load_manifest(path, fixtures_root=path.parent)


def record(fixture: Fixture) -> dict[str, Any]:
    return ToyEngine().run(fixture, model_path=Path("toy"), platform="cpu", overrides={})


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def with_request(name: str, value: Any) -> Any:
    return lambda made: made | {"requests": {"0": made["requests"]["0"] | {name: value}, "1": made["requests"]["1"]}}


def without(name: str) -> Any:
    return lambda made: {key: value for key, value in made.items() if key != name}


MALFORMED = {
    "nothing": (lambda made: None, "no golden.record/1"),
    "a list": (lambda made: [], "no golden.record/1"),
    "a set": (lambda made: {1}, "cannot be written as JSON"),
    "a golden": (lambda made: made | {"schema": "golden.golden/1"}, "no golden.record/1"),
    "no fixture": (without("fixture"), '"fixture" is None'),
    "another fixture": (lambda made: made | {"fixture": "b"}, "\"fixture\" is 'b', expected 'a'"),
    "no settings": (without("settings"), '"settings" is missing'),
    "no environment": (without("environment"), '"environment" is missing'),
    "no requests": (without("requests"), '"requests" is absent'),
    "a list of settings": (lambda made: made | {"settings": []}, '"settings" is a list'),
    "a bare setting": (lambda made: made | {"settings": {"x": 1}}, 'the setting "x"'),
    "an odd source": (lambda made: made | {"settings": {"x": {"value": 1, "source": "?"}}}, 'the setting "x"'),
    "a source that is a list": (lambda made: made | {"settings": {"x": {"value": 1, "source": []}}}, 'setting "x"'),
    "request abc": (lambda made: made | {"requests": {"abc": made["requests"]["0"]}}, "request 'abc'"),
    "request 99": (lambda made: made | {"requests": made["requests"] | {"99": {}}}, "request '99'"),
    "request 01": (lambda made: made | {"requests": {"01": made["requests"]["0"]}}, "request '01'"),
    "margins 5": (with_request("margins", 5), 'requests["0"].margins'),
    "margins null": (with_request("margins", None), 'requests["0"].margins'),
    "margins of null": (with_request("margins", [None]), 'requests["0"].margins'),
    "margins of text": (with_request("margins", ["x"]), 'requests["0"].margins'),
    "margins of truth": (with_request("margins", [True]), 'requests["0"].margins'),
    "deep": (lambda made: made | {"environment": nested(70)}, "nested more than 64 levels"),
    "very deep": (lambda made: made | {"environment": nested(100_000)}, "JSON"),
    "a huge number": (lambda made: made | {"counters": {"n": 10**5000}}, "JSON"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_record_of_the_fixture_is_a_crash_of_the_engine_that_says_why(fixture: Fixture, name: str) -> None:
    change, words = MALFORMED[name]

    class Odd(ToyEngine):
        def run(self, *arguments: Any, **named: Any) -> dict[str, Any]:
            return change(super().run(*arguments, **named))  # type: ignore[no-any-return]

    for order in (None, (1, 0)):
        result = execute(Odd(), Task(fixture, Path("toy"), "cpu", order=order))
        assert result.failure is not None
        assert result.failure.kind is FindingClass.ENGINE_CRASH
        assert result.failure.message.startswith("the adapter's record is malformed: ")
        assert words in result.failure.message


def test_values_inside_requests_are_left_to_the_comparison(fixture: Fixture) -> None:
    made = record(fixture)
    for changed in (
        made,
        with_request("generated_tokens", [[1], None])(made),
        with_request("margins", [float("nan")])(made),
        made | {"requests": {}},
        made | {"counters": {"\ud800": 2.5}, "extra": 1},
    ):
        assert repr(checked_record(changed, fixture)) == repr(changed)


def test_a_record_is_as_json_has_it(fixture: Fixture) -> None:
    made = record(fixture)
    assert checked_record(made | {"counters": {1: (2, 3)}}, fixture)["counters"] == {"1": [2, 3]}
    with pytest.raises(MalformedRecordError):
        checked_record("text", fixture)
