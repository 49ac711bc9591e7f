from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.errors import ExitCode
from framework.gate.merge import merged
from framework.gate.refusal import Refusal, RefusalClass
from framework.gate.verdict import Draft, markdown_summary, summary_lines
from framework.report.neutral import markdown_code

HEAD = "a" * 40
BASE = "b" * 40
FIXTURES = ("first", "second", "third")


def entry(name: str, verdict: str = "PASS") -> dict[str, Any]:
    return {"fixture": name, "verdict": verdict, "compared": 5, "seconds": 1.0, "findings": [], "why": "new"}


def shard(number: int, *names: str, of: int = 3) -> dict[str, Any]:
    draft = Draft(BASE, HEAD)
    draft.lane = {"name": "cpu", "platform": "cpu"}
    draft.shard = {"number": number, "of": of, "fixtures": list(names)}
    draft.lane_fixtures = FIXTURES
    draft.ran = [entry(name) for name in names]
    return draft.document()


@pytest.fixture
def documents() -> dict[str, Any]:
    return {f"{n}.json": shard(n, name) for n, name in enumerate(FIXTURES, start=1)}


def messages(document: dict[str, Any]) -> str:
    return "\n".join(f"{each['subject']}: {each['message']}" for each in document["refusals"])


def test_whole_and_green_shards_are_a_green_gate(documents: dict[str, Any]) -> None:
    document = merged(documents, HEAD, "cpu")
    assert (document["verdict"], document["exit_code"]) == ("PASS", 0), messages(document)
    assert [each["fixture"] for each in document["fixtures"]] == list(FIXTURES)
    assert len(document["shards"]) == 3


def test_one_red_shard_makes_the_whole_red(documents: dict[str, Any]) -> None:
    documents["2.json"]["fixtures"] = [entry("second", "FAIL")]
    documents["2.json"] |= {"verdict": "FAIL", "exit_code": 1}
    assert (merged(documents)["verdict"], merged(documents)["exit_code"]) == ("FAIL", 1)


def test_no_shard_at_all_is_a_refusal() -> None:
    assert merged({})["verdict"] == "REFUSED"
    assert "no verdict of a shard" in messages(merged({}))


ODDITIES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "missing": (lambda all_of: all_of.pop("2.json"), "shard 2: it is missing"),
    "doubled": (lambda all_of: all_of.update(again=copy.deepcopy(all_of["2.json"])), "shard 2: it is there 2 times"),
    "of another head": (lambda all_of: all_of["2.json"].update(head="c" * 40), "it validated cccc"),
    "of another base": (lambda all_of: all_of["2.json"].update(base="c" * 40), "another base"),
    "of another lane": (lambda all_of: all_of["2.json"].update(lane={"name": "gpu"}), "of the lane gpu, not of cpu"),
    "of another plan": (lambda all_of: all_of["2.json"]["shard"].update(of=4), "another number of shards"),
    "a torn file": (lambda all_of: all_of.update({"2.json": None}), "it is no golden.gate/1 document"),
    "another document": (lambda all_of: all_of.update({"2.json": {"schema": "golden.run/1"}}), "no golden.gate/1"),
    "a whole gate": (lambda all_of: all_of["2.json"].update(shard=None), "shard is missing"),
    "unfinished": (lambda all_of: all_of["2.json"].update(verdict="REFUSED"), "does not go with its exit code"),
    "green by hand": (
        lambda all_of: all_of["2.json"].update(fixtures=[entry("second", "FAIL")]),
        "it says PASS, and second stands in it",
    ),
    "short of a fixture": (lambda all_of: all_of["2.json"].update(fixtures=[]), "was to decide on ['second']"),
    "with another's fixture": (
        lambda all_of: (
            all_of["2.json"].update(fixtures=[entry("first")]),
            all_of["2.json"]["shard"].update(fixtures=["first"]),
        ),
        "second: no shard decided on it",
    ),
}


@pytest.mark.parametrize("name", ODDITIES)
def test_a_shard_that_is_odd_refuses_the_whole(documents: dict[str, Any], name: str) -> None:
    change, message = ODDITIES[name]
    change(documents)
    document = merged(documents, HEAD, "cpu")
    assert document["verdict"] == "REFUSED"
    assert document["exit_code"] != 0
    assert message in messages(document)


KEYS = ["schema", "shard", "lane", "fixtures", "verdict", "exit_code", "head"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=10,
)


@given(JSON)
def test_whatever_a_file_holds_the_merge_ends_in_a_refusal(value: Any) -> None:
    assert merged({"odd": value})["verdict"] == "REFUSED"
    whole = shard(1, "first", of=1)
    if isinstance(value, dict):
        assert merged({"odd": {**whole, **value}}).keys() == merged({}).keys()


def test_the_summary_takes_ten_seconds_to_read_and_ends_for_machines() -> None:
    draft = Draft(BASE, HEAD)
    draft.lane = {"name": "cpu", "platform": "cpu"}
    draft.run_code = ExitCode.REGRESSION
    draft.ran = [entry(f"fixture{number}", "FAIL") for number in range(200)]
    draft.refusals = [Refusal(RefusalClass.LANE_SHRUNK, "lane cpu", "x" * 1000 + "\x1b[31m\n")]
    draft.notices = ["a note"] * 50
    lines = summary_lines(draft.document())
    assert len(lines) <= 15
    assert max(map(len, lines[:-1])) <= 205
    assert lines[0].startswith("GATE REFUSED: aaaaaaaaaaaa (base bbbbbbbbbbbb), lane cpu")
    assert lines[1].startswith("  REFUSED LANE_SHRUNK lane cpu")
    assert f"verdict=REFUSED exit_code=1 head={HEAD}" in lines[-1]
    assert all(line.isprintable() for line in lines)


def test_markdown_of_a_summary_shows_what_others_wrote_as_text() -> None:
    draft = Draft(BASE, HEAD)
    draft.refusals = [Refusal(RefusalClass.ERROR, "gate", "<img src=x> @everyone [a](b) `c` | d")]
    lines = markdown_summary(draft.document()).splitlines()
    assert f"- {markdown_code('REFUSED ERROR gate: <img src=x> @everyone [a](b) `c` | d')}" in lines
