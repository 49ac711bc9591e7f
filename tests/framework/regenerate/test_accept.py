from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from framework.compare.finding import FindingClass
from framework.errors import ExitCode, UsageError
from framework.golden.seal import sealed_bytes
from framework.golden.store import golden_path, read_golden
from framework.regenerate.accept import VALUE_CLASSES, plan_acceptance, value_class
from framework.regenerate.apply import acceptance, apply_changes
from framework.regenerate.candidates import candidates_folder, find_candidates
from framework.regenerate.plan import Change, Kind
from tests.framework.regenerate.proven import falsify, keep, plan, today_of, workspace_of
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("a", prompts="hello, world")
    return root


def candidate(toy: ToyRoot, name: str = "a") -> Path:
    return golden_path(candidates_folder(workspace_of(toy)), name, "cpu")


def planned(toy: ToyRoot, only: Sequence[FindingClass] = ()) -> list[Change]:
    return plan_acceptance(find_candidates(candidates_folder(workspace_of(toy))), today_of(toy), only)


def accept(toy: ToyRoot, changes: list[Change]) -> list[Path]:
    return apply_changes(changes, state_folder=toy.path / ".golden", origin=acceptance("reviewed"))


def record(toy: ToyRoot) -> None:
    keep(toy)
    accept(toy, planned(toy))


def refusals(toy: ToyRoot, only: Sequence[FindingClass] = ()) -> str:
    changes = planned(toy, only)
    assert all(change.kind is Kind.REFUSED for change in changes)
    return "\n".join(problem.message for change in changes for problem in change.problems)


def test_a_sound_candidate_becomes_the_golden_with_both_reasons(toy: ToyRoot) -> None:
    keep(toy)
    (change,) = planned(toy)
    assert (change.kind, change.problems, change.warnings) == (Kind.NEW, (), ())
    assert accept(toy, [change]) == [toy.golden_path("a")]
    proven, golden = read_golden(candidate(toy)).document, read_golden(toy.golden_path("a")).document
    origin = golden["provenance"]
    assert (origin["reason"], origin["accepted"]["reason"]) == ("because", "reviewed")
    assert {**origin, "accepted": None} == {**proven["provenance"], "accepted": None}
    assert {**golden, "provenance": 0, "seal": 0} == {**proven, "provenance": 0, "seal": 0}


def test_what_is_in_force_already_changes_nothing(toy: ToyRoot) -> None:
    record(toy)
    before = toy.golden_path("a").stat()
    (change,) = planned(toy)
    assert change.kind is Kind.UNCHANGED
    assert accept(toy, [change]) == []
    assert toy.golden_path("a").stat().st_mtime_ns == before.st_mtime_ns


def test_values_within_their_tolerance_change_nothing(toy: ToyRoot) -> None:
    record(toy)
    seal = read_golden(toy.golden_path("a")).document["seal"]

    def nudge(document: dict[str, Any]) -> None:
        document["requests"]["0"]["generated_logprobs"][0] += 1e-7
        document["provenance"]["previous_seal"] = seal

    falsify(candidate(toy), nudge)
    assert [change.kind for change in planned(toy)] == [Kind.UNCHANGED]


def _first_request(document: dict[str, Any]) -> dict[str, Any]:
    request: dict[str, Any] = document["requests"]["0"]
    return request


def _proof(document: dict[str, Any]) -> dict[str, Any]:
    proof: dict[str, Any] = document["provenance"]["proof"]
    return proof


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda d: d.update(manifest_sha256="x"), 12, "STALE manifest_sha256"),
        (lambda d: d["hashes"].update(model="x"), 12, "STALE hashes.model"),
        (lambda d: d["hashes"].update(tokenizer="x"), 12, "STALE hashes.tokenizer"),
        (lambda d: d["hashes"].clear(), 12, "STALE hashes.model"),
        (lambda d: d.update(fixture="b"), 12, "put it back"),
        (lambda d: d.update(platform="nvidia-h200"), 12, "put it back"),
        (lambda d: d["provenance"].pop("proof"), 12, "no proof"),
        (lambda d: _proof(d).update(runs=2), 12, "at least 3"),
        (lambda d: _proof(d).update(runs=True), 12, "how many runs"),
        (lambda d: _proof(d).update(spread={}), 12, "how far runs spread"),
        (lambda d: _proof(d).update(spread=5), 12, "how far runs spread"),
        (lambda d: d["provenance"].pop("previous_seal"), 12, "which golden it was planned against"),
        (lambda d: d["provenance"].update(previous_seal=7), 12, "which golden it was planned against"),
        (lambda d: d["provenance"].update(reason=" "), 12, "no reason"),
        (lambda d: d["provenance"].update(engine_revision=None), 12, "no engine_revision"),
        (lambda d: d["provenance"].update(adapter="other:Engine"), 12, "give `--adapter`"),
        (lambda d: d["provenance"].update(previous_seal="0" * 64), 12, "STALE_REGEN"),
        (lambda d: d["requests"].pop("1"), 12, "it has the requests ['0']"),
        (lambda d: d["requests"].update({"x": {}}), 12, "it has the requests"),
        (lambda d: _first_request(d).update(margins="wide"), 12, "no list of numbers"),
        (lambda d: _first_request(d).update(margins=["wide"]), 12, "no list of numbers"),
        (lambda d: _first_request(d).pop("margins"), 1, "a margin for each token"),
        (lambda d: _first_request(d)["margins"].__setitem__(2, 0.0), 1, "exact tie"),
        (lambda d: _proof(d).update(instruction_set_error=0.5), 1, "another CPU could choose another token"),
        (lambda d: _proof(d).update(spread={"generated_logprobs": 1e-4}), 1, "less than the spread 0.0001"),
        (lambda d: d["settings"]["async_sched_mode"].update(value="legacy"), 1, "SETTINGS_DRIFT"),
        (lambda d: d["counters"].update(step_count=0), 1, "WITNESS counters.step_count > 0"),
        (lambda d: d.pop("counters"), 1, "RULES assert.counters"),
        (lambda d: [r.pop("generated_text") for r in d["requests"].values()], 1, "RULES assert.generated_text"),
        (lambda d: _first_request(d)["generated_tokens"].clear(), 1, "RULES requests"),
        (lambda d: _first_request(d)["generated_tokens"].pop(), 1, "a margin for each token"),
        (lambda d: _first_request(d).update(generated_tokens="abc"), 1, "STRUCTURE"),
        (lambda d: _first_request(d).update(surprise=[1]), 1, "RULES"),
    ],
)
def test_what_may_not_become_a_golden_is_refused_however_well_it_is_sealed(
    toy: ToyRoot,
    change: Callable[[dict[str, Any]], object],
    code: int,
    words: str,
) -> None:
    keep(toy)
    falsify(candidate(toy), change)
    (found,) = planned(toy)
    assert found.kind is Kind.REFUSED
    assert words in "\n".join(problem.message for problem in found.problems)
    assert {problem.exit_code for problem in found.problems} == {ExitCode(code)}
    assert accept(toy, [found]) == []
    assert words.split("\n", maxsplit=1)[0] in found.in_words()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[: len(data) // 2], "truncated"),
        (lambda data: data.replace(b'"length"', b'"tight!"'), "seal is broken"),
        (lambda data: b"<<<<<<< ours\n" + data, "merge-conflict markers"),
        (lambda data: b"[]", "not a record"),
        (lambda data: b"", "empty"),
    ],
)
def test_what_cannot_be_believed_is_refused(toy: ToyRoot, change: Callable[[bytes], bytes], words: str) -> None:
    keep(toy)
    candidate(toy).write_bytes(change(candidate(toy).read_bytes()))
    assert words in refusals(toy)


def test_sealed_bytes_that_are_not_canonical_are_refused(toy: ToyRoot) -> None:
    keep(toy)
    document = read_golden(candidate(toy)).document
    text = sealed_bytes(document).decode().replace('"fixture": "a"', '"fixture":  "a"')
    blank = text.replace(document["seal"], "0" * 64)
    start = blank.index('\n  "seal": "')
    end = blank.index("\n", start + 1)
    digest = hashlib.sha256((blank[:start] + blank[end:]).encode()).hexdigest()
    candidate(toy).write_text(blank.replace("0" * 64, digest))
    assert "not in canonical form" in refusals(toy)


def test_a_candidate_of_no_fixture_or_for_no_platform_is_refused(toy: ToyRoot) -> None:
    keep(toy)
    candidate(toy).rename(candidate(toy).with_name("nvidia-h200.json"))
    assert "a is for cpu, not for nvidia-h200" in refusals(toy)
    (toy.path / "fixtures" / "a.yaml").unlink()
    toy.write("aa")
    assert 'there is no fixture "a". Did you mean "aa"?' in refusals(toy)


def test_a_golden_that_changed_since_the_proof_is_not_replaced(toy: ToyRoot) -> None:
    keep(toy)
    other = candidate(toy).read_bytes()
    toy.golden_path("a").parent.mkdir()
    toy.golden_path("a").write_bytes(other)
    falsify(toy.golden_path("a"), lambda document: document["counters"].update(step_count=99))
    assert "STALE_REGEN: it was planned against no golden" in refusals(toy)


@pytest.mark.parametrize("broken", [b"<<<<<<< ours", b"", b"{}"])
def test_a_broken_golden_is_replaced_if_it_is_the_one_the_proof_saw(toy: ToyRoot, broken: bytes) -> None:
    toy.golden_path("a").parent.mkdir()
    toy.golden_path("a").write_bytes(broken)
    keep(toy)
    (change,) = planned(toy)
    assert (change.kind, change.lines[0][:21]) == (Kind.CHANGED, "replaces a broken one")
    toy.golden_path("a").write_bytes(broken + b" ")
    assert "STALE_REGEN" in refusals(toy)


def test_a_golden_outside_the_folder_is_never_written(toy: ToyRoot, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    toy.golden_path("a").parent.symlink_to(tmp_path / "elsewhere")
    keep(toy)
    assert "a link leads out of" in refusals(toy)


def changed_by(toy: ToyRoot, change: Callable[[dict[str, Any]], object]) -> None:
    """Make the golden in force one from which the candidate differs by the opposite of `change`."""
    record(toy)
    falsify(toy.golden_path("a"), change)
    seal = read_golden(toy.golden_path("a")).document["seal"]
    falsify(candidate(toy), lambda document: document["provenance"].update(previous_seal=seal))


@pytest.mark.parametrize(
    ("change", "only", "words"),
    [
        (lambda d: d["counters"].update(step_count=99), "counters", ""),
        (lambda d: d["counters"].update(step_count=99), "TOKEN", "COUNTER moved too"),
        (lambda d: _first_request(d)["generated_tokens"].__setitem__(0, 1), "tokens", ""),
        (lambda d: _first_request(d)["generated_tokens"].__setitem__(0, 1), "counters", "TOKEN moved too"),
        (lambda d: _first_request(d)["generated_logprobs"].__setitem__(0, -9.0), "log-probs", ""),
        (lambda d: _first_request(d).update(generated_text="x"), "logprobs", "TEXT moved too"),
        (lambda d: d.update(manifest_sha256="older") or d["counters"].update(step_count=9), "counters", ""),
        (lambda d: _first_request(d).update(prompt_logprobs=[-1.0]), "counters", "RULES moved too"),
    ],
)
def test_only_what_was_allowed_may_move(
    toy: ToyRoot,
    change: Callable[[dict[str, Any]], object],
    only: str,
    words: str,
) -> None:
    changed_by(toy, change)
    (found,) = planned(toy, [value_class(only)])
    assert found.kind is (Kind.REFUSED if words else Kind.CHANGED)
    assert words in "\n".join(problem.message for problem in found.problems)


def test_a_field_that_leaves_the_golden_moves_in_its_own_class(toy: ToyRoot) -> None:
    path = toy.write("a", prompts="hello, world")
    record(toy)
    text = path.read_text().replace("  generated_text: exact\n", "")
    path.write_text(text.replace("[performance]", "[performance, generated_text]"))
    keep(toy)
    assert "TEXT moved too" in refusals(toy, [FindingClass.COUNTER])
    assert [change.kind for change in planned(toy, [FindingClass.TEXT])] == [Kind.CHANGED]


def test_where_there_was_no_golden_everything_is_new(toy: ToyRoot) -> None:
    keep(toy)
    assert "everything is new" in refusals(toy, VALUE_CLASSES)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("counters", "COUNTER"),
        ("Counter", "COUNTER"),
        ("TOKENS", "TOKEN"),
        ("log-probs", "LOGPROB"),
        ("logprob", "LOGPROB"),
        (" texts ", "TEXT"),
        ("routings", "ROUTING"),
        ("rule", "RULES"),
        ("performance", "PERFORMANCE"),
        ("structures", "STRUCTURE"),
        ("lengths", "LENGTH"),
    ],
)
def test_a_class_is_named_in_any_case_and_number(word: str, kind: str) -> None:
    assert value_class(word).value == kind


@pytest.mark.parametrize("word", ["", "s", "ENGINE_CRASH", "stale", "seal", "everything", "countrs"])
def test_what_is_no_class_of_values_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="there is no such class"):
        value_class(word)


RELATED = "relations: [{kind: same_outputs_as, with: a}]"


def test_relations_hold_between_the_goldens_that_will_be_in_force(toy: ToyRoot) -> None:
    toy.write("b", prompts="hello, world", engine="async_sched_mode: legacy", more=RELATED)
    keep(toy)
    assert [change.kind for change in planned(toy)] == [Kind.NEW, Kind.NEW]
    candidate(toy).unlink()
    assert "RELATION b same_outputs_as a: a has no golden on cpu that can be relied on" in refusals(toy)


def test_a_relation_of_a_fixture_that_is_not_touched_holds_too(toy: ToyRoot) -> None:
    toy.write("b", prompts="hello, world", engine="async_sched_mode: legacy", more=RELATED)
    record(toy)
    candidate(toy, "b").unlink()

    def other_token(document: dict[str, Any]) -> None:
        _first_request(document)["generated_tokens"][0] = 1
        document["provenance"]["previous_seal"] = read_golden(toy.golden_path("a")).document["seal"]

    falsify(candidate(toy), other_token)
    assert 'RELATION b same_outputs_as a: requests["0"].generated_tokens[0]' in refusals(toy)


def test_one_that_was_broken_before_stops_nobody_else(toy: ToyRoot) -> None:
    toy.write("b", prompts="hello, world", engine="async_sched_mode: legacy", more=RELATED)
    keep(toy)
    candidate(toy, "b").unlink()
    toy.golden_path("b").parent.mkdir()
    toy.golden_path("b").write_text("broken")
    assert [change.kind for change in planned(toy)] == [Kind.NEW]


def test_a_plan_from_a_regeneration_is_what_its_candidate_would_do(toy: ToyRoot) -> None:
    (proven,) = plan(toy)
    keep(toy)
    (found,) = planned(toy)
    assert (found.kind, found.lines, found.path) == (proven.kind, proven.lines, proven.path)
    assert {**(found.document or {}), "provenance": {}} == proven.document


def test_a_golden_for_a_platform_that_is_not_here_comes_in_with_its_relations(toy: ToyRoot) -> None:
    for name, more in (("a", ""), ("b", RELATED)):
        toy.write(name, prompts="hello, world", more=f"{more}\nplatforms: [cpu, nvidia-h200]")
    record(toy)
    for name in ("a", "b"):
        path = candidate(toy, name)
        falsify(path, lambda document: document.update(platform="nvidia-h200"))
        falsify(path, lambda document: document["provenance"].update(previous_seal=None))
        path.rename(path.with_name("nvidia-h200.json"))
    changes = planned(toy)
    assert [(change.kind, change.platform) for change in changes] == [(Kind.NEW, "nvidia-h200")] * 2
    assert accept(toy, changes) == [toy.golden_path(name).with_name("nvidia-h200.json") for name in ("a", "b")]


def test_a_candidate_of_other_code_is_warned_about(toy: ToyRoot) -> None:
    keep(toy)
    falsify(candidate(toy), lambda document: document["provenance"].update(engine_revision="toy 0"))
    (change,) = planned(toy)
    assert change.kind is Kind.NEW
    assert "proven with the engine 'toy 0', and this is 'toy 1'" in change.in_words()
