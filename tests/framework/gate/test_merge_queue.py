"""Ten changes to a repository, each with the verdict that a reviewer would give, alone and in a batch."""

from __future__ import annotations

import shutil

import pytest

from tests.framework.gate.queue import (
    Queue,
    classes,
    declare,
    finding_classes,
    make_queue,
    regen,
    verdicts,
)
from tests.framework.git import commit, git
from tests.framework.quarantine.entries import entry_text, write_quarantine
from tests.framework.toy_root import ToyRoot


def documentation(root: ToyRoot) -> None:
    (root.path / "docs" / "notes.md").write_text("more notes\n")
    (root.path / "README.md").write_text("read me\n")


def default_flip(root: ToyRoot) -> None:
    root.set_default_mode("legacy")


def deletion(root: ToyRoot) -> None:
    (root.path / "fixtures" / "second.yaml").unlink()
    shutil.rmtree(root.path / "goldens" / "second")


def declared_deletion(root: ToyRoot) -> None:
    deletion(root)
    declare(root, second="first covers it since both run async")


def widening(root: ToyRoot) -> None:
    path = root.path / "fixtures" / "second.yaml"
    path.write_text(path.read_text().replace("atol: 1.0e-5", "atol: 1.0e-3"))


def regenerated_widening(root: ToyRoot) -> None:
    widening(root)
    regen(root, "second", reason="proven under the wider tolerance")


def declared_widening(root: ToyRoot) -> None:
    regenerated_widening(root)
    declare(root, second="kernels of two vendors differ by 4e-4")


def hang(root: ToyRoot) -> None:
    (root.path / "toy_default_fault").write_text("hang")


def crash(root: ToyRoot) -> None:
    (root.path / "toy_default_fault").write_text("crash")


def half_renaming(root: ToyRoot) -> None:
    """Rename a manifest and move its golden, which then says that it was recorded for another fixture."""
    text = (root.path / "fixtures" / "second.yaml").read_text()
    (root.path / "fixtures" / "second.yaml").unlink()
    (root.path / "fixtures" / "renamed.yaml").write_text(text.replace("name: second", "name: renamed"))
    (root.path / "goldens" / "second").rename(root.path / "goldens" / "renamed")


def renaming(root: ToyRoot) -> None:
    half_renaming(root)
    regen(root, "renamed", reason="second has a better name now")


def addition(root: ToyRoot) -> None:
    root.write("fourth", prompts="more", engine="async_sched_mode: legacy", more="time_limit_s: 2")
    regen(root, "fourth", reason="a fourth prompt")


def record(root: ToyRoot, prompt: str) -> None:
    root.write("second", prompts=prompt, more="time_limit_s: 2")
    regen(root, "second", reason=f"{prompt} is the better prompt")


def improvement(root: ToyRoot) -> None:
    root.set_default_mode("legacy")
    root.write("first", engine="async_sched_mode: async", more="time_limit_s: 2")
    regen(root, "first", "second", reason="legacy is the default again; first still shows async")


def expired_quarantine(root: ToyRoot) -> None:
    write_quarantine(root.path, entry_text("second", age=20, left=-1))


FLAKY = "[TOKEN, TEXT, LOGPROB, LENGTH]"


def quarantined_fault(root: ToyRoot) -> None:
    """An engine that draws other tokens each time, of which `second` alone is hit, and left to its owner for a week."""
    (root.path / "toy_default_fault").write_text("random")
    root.write("first", engine="fault: none", more="time_limit_s: 2")
    root.write("third", engine="fault: none, async_sched_mode: legacy", more="time_limit_s: 2")
    regen(root, "first", "third", reason="pinned, so that they still show what they did")
    write_quarantine(root.path, entry_text("second", kind=FLAKY, left=7))


def quarantined_everything(root: ToyRoot) -> None:
    (root.path / "toy_default_fault").write_text("random")
    write_quarantine(root.path, *(entry_text(name, kind=FLAKY, left=7) for name in ("first", "second")))


CHANGES = {
    "documentation": documentation,
    "default flip": default_flip,
    "deletion": deletion,
    "declared deletion": declared_deletion,
    "widening": widening,
    "regenerated widening": regenerated_widening,
    "declared widening": declared_widening,
    "expired quarantine": expired_quarantine,
    "quarantined fault": quarantined_fault,
    "quarantined everything": quarantined_everything,
    "hang": hang,
    "crash": crash,
    "half renaming": half_renaming,
    "renaming": renaming,
    "addition": addition,
    "improvement": improvement,
}


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Queue:
    made = make_queue(tmp_path_factory.mktemp("queue") / "root")
    code, document = made.gate(made.base)
    assert (code, document["verdict"]) == (0, "PASS"), document
    for name, change in CHANGES.items():
        made.make(name, change)
    return made


def test_documentation_alone_runs_nothing_and_says_why(queue: Queue) -> None:
    code, document = queue.gate(queue.heads["documentation"])
    assert (code, document["verdict"], document["fixtures"]) == (0, "PASS", [])
    assert {entry["fixture"] for entry in document["left_out"]} == {"first", "second", "third"}
    assert all(f"unchanged since it passed at {queue.base[:12]}" in e["why"] for e in document["left_out"])


def test_a_default_flip_fails_where_it_is_inherited_and_is_named_first(queue: Queue) -> None:
    code, document = queue.gate(queue.heads["default flip"])
    assert (code, document["verdict"]) == (1, "FAIL")
    (drift,) = document["settings_drift"]
    assert (drift["setting"], drift["inherited_by"]) == ("async_sched_mode", ["first", "second"])
    assert verdicts(document)["first"] == "FAIL"
    left_out = {entry["fixture"] for entry in document["left_out"]}
    assert "third" not in left_out, "a file that the engine may read has come"


def test_a_fixture_that_is_deleted_shrinks_the_lane_unless_the_change_says_why(queue: Queue) -> None:
    code, document = queue.gate(queue.heads["deletion"])
    assert (code, document["verdict"], classes(document)) == (1, "REFUSED", ["LANE_SHRUNK"])
    (refusal,) = document["refusals"]
    assert refusal["subject"] == "second"
    assert "−1 fixture" in refusal["message"]
    assert queue.gate(queue.heads["declared deletion"])[:1] == (0,)


def test_a_reason_of_the_base_excuses_nothing_new(queue: Queue) -> None:
    def declares(root: ToyRoot) -> None:
        declare(root, second="first covers it since both run async")

    base = queue.make("declares", declares)
    head = queue.make("deletes later", deletion, base)
    code, document = queue.gate(head, base=base)
    assert (code, classes(document)) == (1, ["LANE_SHRUNK"])


def test_a_widened_tolerance_is_stale_until_proven_and_refused_until_said_why(queue: Queue) -> None:
    code, document = queue.gate(queue.heads["widening"])
    assert (code, document["verdict"], classes(document)) == (12, "REFUSED", ["JUDGES_LESS"])
    assert verdicts(document) == {"second": "STALE"}
    code, document = queue.gate(queue.heads["regenerated widening"])
    assert (code, classes(document)) == (1, ["JUDGES_LESS"])
    assert "atol 1e-05, rtol 0.0 → atol 0.001, rtol 0.0" in document["refusals"][0]["message"]
    code, document = queue.gate(queue.heads["declared widening"])
    assert (code, verdicts(document)) == (0, {"second": "PASS"})
    assert "declared: second: kernels of two vendors differ by 4e-4" in document["notices"]


def test_a_quarantine_that_expired_excuses_nothing_any_more(queue: Queue) -> None:
    code, document = queue.gate(queue.heads["expired quarantine"])
    assert (code, document["verdict"], classes(document)) == (10, "REFUSED", ["MALFORMED"])
    assert "expired on" in document["refusals"][0]["message"]
    assert document["fixtures"] == []


def test_a_fixture_in_quarantine_runs_and_is_excused_by_name(queue: Queue) -> None:
    code, document = queue.gate(queue.heads["quarantined fault"])
    assert (code, document["verdict"]) == (0, "PASS"), document["refusals"]
    assert verdicts(document)["second"] == "QUARANTINED"
    assert any(notice.startswith("in quarantine: second until 20") for notice in document["notices"])
    code, document = queue.gate(queue.heads["quarantined fault"])
    assert verdicts(document) == {"second": "QUARANTINED"}, "it is never left out"


def test_a_quarantine_cannot_empty_a_lane(queue: Queue) -> None:
    code, document = queue.gate(queue.heads["quarantined everything"])
    assert (code, classes(document)) == (1, ["LANE_SHRUNK"])
    messages = [refusal["message"] for refusal in document["refusals"]]
    assert any("no async fixture gates it" in message for message in messages)


@pytest.mark.parametrize(("name", "kind"), [("hang", "TIME_LIMIT"), ("crash", "ENGINE_CRASH")])
def test_an_engine_that_hangs_or_crashes_is_no_regression_and_no_pass(queue: Queue, name: str, kind: str) -> None:
    code, document = queue.gate(queue.heads[name])
    assert (code, document["verdict"]) == (11, "FAIL")
    assert set(verdicts(document).values()) == {"ERROR"}
    assert finding_classes(document) == {kind}


def test_a_renamed_fixture_passes_once_its_golden_is_its_own(queue: Queue) -> None:
    code, document = queue.gate(queue.heads["half renaming"])
    assert code == 12
    assert verdicts(document)["renamed"] == "ERROR"
    code, document = queue.gate(queue.heads["renaming"])
    assert (code, verdicts(document)) == (0, {"renamed": "PASS"}), document["refusals"]
    assert "renamed: second → renamed" in document["notices"]


def test_an_improvement_with_its_regeneration_passes_with_its_reason_in_the_verdict(queue: Queue) -> None:
    code, document = queue.gate(queue.heads["improvement"])
    assert (code, document["verdict"]) == (0, "PASS"), document["refusals"]
    reasons = {entry["fixture"]: entry["golden"]["reason"] for entry in document["fixtures"]}
    assert reasons["second"] == "legacy is the default again; first still shows async"


@pytest.mark.parametrize("way", ["merged", "squashed"])
def test_a_golden_that_was_regenerated_on_both_sides_is_refused(queue: Queue, way: str) -> None:
    base = queue.make(f"theirs {way}", lambda root: record(root, "planet"))
    ours = queue.make(f"ours {way}", lambda root: record(root, "globe"))
    queue.go_to(base)
    path = queue.root.path
    if way == "merged":
        git(path, "merge", "--quiet", "--no-ff", "--no-commit", "--strategy", "ours", ours)
    git(path, "checkout", "--quiet", ours, "--", "fixtures", "goldens")
    head = commit(path, "took ours")
    code, document = queue.gate(head, base=base)
    assert (code, document["verdict"], classes(document)) == (12, "REFUSED", ["STALE_REGEN"])
    (refusal,) = document["refusals"]
    assert (refusal["subject"], refusal["commit"]) == ("goldens/second/cpu.json", head)


@pytest.mark.parametrize("writes", [True, False])
def test_both_sides_pass_once_the_golden_was_recorded_again_on_the_merged_tree(queue: Queue, writes: bool) -> None:
    """Without a word, it is the base's golden: where the merged tree still gives that, nothing is written."""
    base = queue.make(f"planet {writes}", lambda root: record(root, "planet"))
    ours = queue.make(f"globe {writes}", lambda root: record(root, "globe"))
    queue.go_to(base)
    path = queue.root.path
    git(path, "merge", "--quiet", "--no-ff", "--no-commit", "--strategy", "ours", ours)
    if writes:
        git(path, "checkout", "--quiet", ours, "--", "fixtures")
        regen(queue.root, "second", reason="globe it is, proven on the merged tree")
    head = commit(path, "merged")
    code, document = queue.gate(head, base=base)
    assert (code, document["verdict"]) == (0, "PASS"), document["refusals"]


def test_a_head_that_parted_before_the_base_moved_is_refused_for_the_same_golden(queue: Queue) -> None:
    base = queue.make("their side", lambda root: record(root, "planet"))
    head = queue.make("our side", lambda root: record(root, "globe"))
    code, document = queue.gate(head, base=base)
    assert (code, classes(document)) == (12, ["STALE_REGEN"])
    assert any("does not hold all of the base" in notice for notice in document["notices"])


def test_good_changes_pass_in_one_batch(queue: Queue) -> None:
    code, document = queue.gate(queue.batch("documentation", "renaming", "addition"))
    assert (code, document["verdict"]) == (0, "PASS"), document["refusals"]
    decided = {entry["fixture"] for entry in (*document["fixtures"], *document["left_out"])}
    assert decided == {"first", "third", "fourth", "renamed"}
    assert verdicts(document)["fourth"] == "PASS"


@pytest.mark.parametrize(
    ("name", "code", "kinds"),
    [
        ("default flip", 1, []),
        ("deletion", 1, ["LANE_SHRUNK"]),
        ("regenerated widening", 1, ["JUDGES_LESS"]),
        ("expired quarantine", 10, ["MALFORMED"]),
        ("crash", 11, []),
    ],
)
def test_a_bad_change_has_its_verdict_in_a_batch_of_good_ones(
    queue: Queue, name: str, code: int, kinds: list[str]
) -> None:
    head = queue.batch("documentation", "addition", name)
    found, document = queue.gate(head)
    assert (found, classes(document)) == (code, kinds)
    assert document["verdict"] == ("REFUSED" if kinds else "FAIL")
