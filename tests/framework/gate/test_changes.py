"""What is refused of goldens that a change brings, on goldens of the toy engine that tests falsify and seal again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framework.compare.rules import parse_rules
from framework.gate.changes import GoldenChange, Sibling, refusals_of, unrefreshed
from framework.gate.refusal import Refusal
from framework.golden.seal import sealed_bytes
from framework.golden.store import parse_golden
from framework.manifest.fixture import Fixture, Workload
from tests.framework.gate.queue import Queue, classes, make_queue
from tests.framework.regenerate.proven import falsify

PATH = "goldens/first/cpu.json"


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Queue:
    return make_queue(tmp_path_factory.mktemp("changes") / "root")


@pytest.fixture(scope="module")
def golden(queue: Queue) -> bytes:
    return (queue.root.path / PATH).read_bytes()


def edited(golden: bytes, *changes: Callable[[dict[str, Any]], object]) -> bytes:
    document = parse_golden(golden, Path(PATH)).document
    for change in changes:
        change(document)
    return sealed_bytes(document)


def other_tokens(document: dict[str, Any]) -> None:
    document["requests"]["0"]["generated_tokens"][-1] += 1


def other_logprob(document: dict[str, Any]) -> None:
    document["requests"]["0"]["generated_logprobs"][0] -= 1e-3


def other_reason(document: dict[str, Any]) -> None:
    document["provenance"]["reason"] = "another reason"


def accepted(*only: str) -> Callable[[dict[str, Any]], object]:
    scope: dict[str, Any] = {"reason": "looks right", "date": "2026-12-01"}
    scope |= {"only": list(only)} if only else {}
    return lambda document: document["provenance"].update(accepted=scope)


def a_little_other_logprob(document: dict[str, Any]) -> None:
    document["requests"]["0"]["generated_logprobs"][0] -= 1e-7


FIXTURE = Fixture(
    name="first",
    path=Path("fixtures/first.yaml"),
    summary="",
    model="toy",
    engine={},
    workload=Workload((), {}),
    rules=parse_rules(
        {
            "assert": {
                "generated_tokens": "exact",
                "generated_text": "exact",
                "finish_reason": "exact",
                "generated_logprobs": {"atol": 1e-5, "rtol": 0.0},
                "counters": {"*": "exact"},
            }
        }
    ),
)


def found(old: bytes | None, new: bytes | None, *problems: str) -> list[str]:
    refusals = refusals_of(GoldenChange(PATH, old, new), FIXTURE, lambda *_: problems)
    return [refusal.kind.value for refusal in refusals]


def test_values_that_moved_need_a_reason_of_their_own(golden: bytes) -> None:
    assert found(golden, edited(golden, other_tokens)) == ["NO_REASON"]
    assert found(golden, edited(golden, other_tokens, other_reason)) == []
    assert found(golden, edited(golden, other_tokens, accepted())) == []


def test_a_new_golden_and_one_that_went_have_nothing_to_be_compared_with(golden: bytes) -> None:
    assert found(None, golden) == []
    assert found(golden, None) == []


def test_what_speaks_against_a_golden_is_said_and_so_is_one_that_cannot_be_read(golden: bytes) -> None:
    assert found(None, golden, "not proven: it was run once") == ["NOT_PROVEN"]
    assert found(golden, golden[:-30]) == ["NOT_PROVEN"]
    assert found(b"nonsense", edited(golden, other_reason)) == []


def test_more_may_not_move_than_was_accepted(golden: bytes) -> None:
    moved = edited(golden, other_tokens, accepted("LOGPROB"))
    assert found(golden, moved) == ["OUT_OF_SCOPE"]
    assert found(golden, edited(golden, other_logprob, accepted("LOGPROB"))) == []
    assert found(golden, edited(golden, other_logprob, accepted("TOKEN"))) == ["OUT_OF_SCOPE"]
    assert found(golden, edited(golden, a_little_other_logprob, accepted("TOKEN"))) == [], "within its tolerance"
    assert found(golden, edited(golden, other_logprob, other_tokens, accepted("LOGPROB", "TOKEN"))) == []


def stayed(old: bytes, new: bytes, *declared: str, is_stale: bool = False) -> list[Refusal]:
    sibling = Sibling("first", "nvidia-h200", is_stale)
    return list(unrefreshed(GoldenChange(PATH, old, new), [sibling], frozenset(declared)))


def test_a_sibling_has_to_follow_in_what_platforms_share(golden: bytes) -> None:
    (refusal,) = stayed(golden, edited(golden, other_tokens))
    assert (refusal.kind, refusal.subject) == ("SIBLING", "first on nvidia-h200")
    assert "TOKEN moved on cpu" in refusal.message
    assert stayed(golden, edited(golden, other_logprob)) == [], "log-probs are a platform's own"
    assert stayed(golden, edited(golden, other_tokens), "first on nvidia-h200") == []
    assert stayed(golden, edited(golden, other_tokens), "first") != []


def test_a_sibling_that_is_stale_now_cannot_be_excused(golden: bytes) -> None:
    (refusal,) = stayed(golden, edited(golden, other_reason), "first on nvidia-h200", is_stale=True)
    assert "another manifest or model" in refusal.message


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ([other_tokens], ["NO_REASON"]),
        ([other_reason, lambda document: document["provenance"]["proof"].update(runs=1)], ["NOT_PROVEN"]),
        ([other_reason, lambda document: document["requests"]["0"]["margins"].__setitem__(0, 0.0)], ["NOT_PROVEN"]),
        ([other_reason, lambda document: document["provenance"].pop("proof")], ["NOT_PROVEN"]),
    ],
)
def test_a_golden_that_was_edited_and_sealed_again_is_refused_by_the_gate(
    queue: Queue, changes: list[Callable[[dict[str, Any]], object]], kinds: list[str]
) -> None:
    def edit(document: dict[str, Any]) -> None:
        for change in changes:
            change(document)

    head = queue.make("edited", lambda root: falsify(root.path / PATH, edit))
    code, document = queue.gate(head)
    assert (document["verdict"], classes(document)) == ("REFUSED", kinds)
    assert code in (1, 12)
    assert {refusal["commit"] for refusal in document["refusals"]} == {head}


def test_a_golden_whose_seal_is_broken_is_refused(queue: Queue) -> None:
    def edit(path: Path) -> None:
        path.write_bytes(path.read_bytes().replace(b'"reason": "first', b'"reason": "third'))

    code, document = queue.gate(queue.make("broken", lambda root: edit(root.path / PATH)))
    assert (code, document["verdict"]) == (12, "REFUSED")
    assert classes(document) == ["LANE_SHRUNK", "NOT_PROVEN"], "what cannot be believed does not gate either"


def test_the_golden_of_another_platform_has_to_follow_a_new_manifest(queue: Queue) -> None:
    both = "time_limit_s: 2\nplatforms: [cpu, nvidia-h200]"

    def two_platforms(document: dict[str, Any]) -> None:
        document["platform"] = "nvidia-h200"

    def add(root: Any) -> None:
        root.write("first", more=both)
        path = root.golden_path("first").with_name("nvidia-h200.json")
        path.write_bytes(root.golden_path("first").read_bytes())
        falsify(path, two_platforms)

    def change(root: Any) -> None:
        root.write("first", prompts="another", more=both)
        done = root.golden("regen", "first", "--platform", "cpu", "--reason", "another prompt", "--yes")
        assert done.returncode == 0, done.stderr

    base = queue.make("two platforms", add)
    code, document = queue.gate(queue.make("one of two", change, base), base=base)
    assert (code, document["verdict"], classes(document)) == (12, "REFUSED", ["SIBLING"])
    assert document["refusals"][0]["subject"] == "first on nvidia-h200"
