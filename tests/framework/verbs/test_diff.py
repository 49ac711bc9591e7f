from __future__ import annotations

from pathlib import Path

import pytest

from tests.framework.git import commit, git
from tests.framework.quarantine.entries import entry_text, write_quarantine
from tests.framework.toy_root import ToyRoot, make_toy_root

DEFAULT = 'DEFAULT CHANGED async_sched_mode "async" → "legacy"'


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    """Two commits: in the second a default changed, three goldens were recorded again, one fixture left, one came."""
    root = make_toy_root(tmp_path_factory.mktemp("history") / "root")
    for name in ("first", "second", "third", "behind", "leaving"):
        root.write(name)
    root.write("pinned", engine="async_sched_mode: legacy")
    root.regen()
    git(root.path, "init", "--quiet")
    commit(root.path, "first")
    root.set_default_mode("legacy")
    for path in (root.golden_path("leaving"), root.path / "fixtures" / "leaving.yaml"):
        path.unlink()
    root.write("second", prompts="another")
    widened = root.write("third").read_text().replace("1.0e-5", "1.0e-3")
    (root.path / "fixtures" / "third.yaml").write_text(widened)
    root.write("coming", engine="async_sched_mode: legacy")
    names = ("first", "second", "third", "coming")
    done = root.golden("regen", *names, "--reason", "legacy is the default again", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    commit(root.path, "second")
    return root


def test_a_changed_default_and_three_goldens_fit_one_screen_with_what_changed_why_and_what_did_not(
    history: ToyRoot,
) -> None:
    done = history.golden("diff", "HEAD~1..HEAD")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 200
    assert lines[:6] == [
        "HEAD~1 → HEAD: 5 goldens not the same (3 changed, 1 added, 1 removed), 2 untouched; 4 manifests not the same.",
        f"{DEFAULT}; inherited, and recorded again, by 3 fixtures (first, second, third)",
        '  not recorded again, so still "async": 1 fixture (behind)',
        "  pinned, so not affected: 2 fixtures (coming, pinned)",
        "JUDGES LESS third.yaml: generated_logprobs: atol 1e-05, rtol 0.0 → atol 0.001, rtol 0.0",
        "1 manifest removed: leaving.yaml",
    ]
    assert lines[6:8] == ["1 manifest added: coming.yaml", "MANIFEST second.yaml: workload changed"]
    assert lines[-1] == "Not touched: 2 goldens."


def test_each_golden_has_its_reason_its_telling_figures_and_what_stayed_the_worst_first(history: ToyRoot) -> None:
    lines = history.golden("diff", "HEAD~1..HEAD").stdout.splitlines()
    heads = [line.split(":")[0] for line in lines if "/cpu.json" in line]
    assert heads == ["leaving/cpu.json", "second/cpu.json", "first/cpu.json", "third/cpu.json", "coming/cpu.json"]
    of_first = lines[lines.index("first/cpu.json: 2 COUNTER") :]
    why = of_first[1].partition(": ")
    assert why[0].startswith("  why (20")
    assert why[2] == "legacy is the default again"
    assert of_first[2] == "  figures: async_sched_step_count 6 → 0, step_count 7 → 6"
    assert of_first[3] == ("  not changed: finish_reason, generated_logprobs (6), generated_text, generated_tokens (6)")
    of_second = "\n".join(lines[lines.index(next(line for line in lines if line.startswith("second/"))) :])
    assert "  tokens: 6 of 6 changed, in 1 request, first requests" in of_second
    assert "  largest log-prob move: 0." in of_second
    assert "also changed: the manifest" in of_second


def test_the_document_holds_every_finding(history: ToyRoot) -> None:
    code, document = history.json("diff", "HEAD~1..HEAD")
    assert code == 0
    assert (document["schema"], document["unchanged"]) == ("golden.diff/1", 2)
    (default,) = document["defaults"]
    assert (default["setting"], default["old"], default["new"]) == ("async_sched_mode", "async", "legacy")
    assert (default["left_behind"], default["pinned_by"]) == (["behind"], ["coming", "pinned"])
    whats = {entry["golden"].partition("/")[0]: entry["what"] for entry in document["goldens"]}
    changed = dict.fromkeys(["first", "second", "third"], "changed")
    assert whats == {**changed, "coming": "added", "leaving": "removed"}
    (first,) = [entry for entry in document["goldens"] if entry["golden"].startswith("first/")]
    assert first["settings"] == [
        {
            "setting": "async_sched_mode",
            "old": "async",
            "old_source": "default",
            "new": "legacy",
            "new_source": "default",
        }
    ]
    assert {finding["class"] for finding in first["findings"]} == {"COUNTER"}
    (third,) = [entry for entry in document["manifests"] if entry["manifest"] == "third.yaml"]
    assert len(third["widened"]) == 1


def test_one_revision_is_compared_with_the_working_tree(history: ToyRoot, tmp_path: Path) -> None:
    root = history.copy(tmp_path / "root")
    assert root.golden("diff", "HEAD").stdout.startswith("HEAD → the working tree: 0 goldens not the same")
    path = root.golden_path("first")
    path.write_bytes(path.read_bytes()[:-20])
    assert "first/cpu.json: unreadable now: " in root.golden("diff", "HEAD").stdout


def test_three_dots_compare_with_where_the_branches_parted(history: ToyRoot, tmp_path: Path) -> None:
    root = history.copy(tmp_path / "root")
    git(root.path, "branch", "side", "HEAD~1")
    _, document = root.json("diff", "side...HEAD")
    assert len(document["goldens"]) == 5
    _, document = root.json("diff", "HEAD...side")
    assert document["goldens"] == []


def test_a_revision_from_before_the_first_golden_shows_all_as_added(history: ToyRoot, tmp_path: Path) -> None:
    root = history.copy(tmp_path / "root")
    git(root.path, "checkout", "--quiet", "--orphan", "empty")
    git(root.path, "rm", "-r", "--quiet", "--cached", ".")
    git(root.path, "commit", "--quiet", "--allow-empty", "--message", "nothing yet")
    _, document = root.json("diff", "empty")
    assert {entry["what"] for entry in document["goldens"]} == {"added"}
    done = root.golden("diff", "empty..empty")
    assert done.returncode == 2
    assert "neither empty nor empty holds a golden" in done.stderr


@pytest.mark.parametrize("revisions", ["nowhere..HEAD", "HEAD..nowhere", "--all", "HEAD~50", "HEAD....HEAD"])
def test_a_revision_that_is_none_is_a_usage_error(history: ToyRoot, revisions: str) -> None:
    done = history.golden("diff", "--", revisions)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("golden: ")


def test_a_root_outside_any_repository_is_a_usage_error(history: ToyRoot, tmp_path: Path) -> None:
    root = make_toy_root(tmp_path / "root")
    done = root.golden("diff", "HEAD", GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert done.returncode == 2
    assert "not a git repository" in done.stderr


def test_a_quarantine_that_was_renewed_or_excuses_more_is_said_before_any_golden(
    history: ToyRoot, tmp_path: Path
) -> None:
    root = history.copy(tmp_path / "root")
    write_quarantine(root.path, entry_text("first"), entry_text("second"))
    commit(root.path, "two in quarantine")
    write_quarantine(root.path, entry_text("first", left=9, age=1), entry_text("third", kind="[TOKEN, TEXT]"))
    lines = root.golden("diff", "HEAD").stdout.splitlines()
    assert lines[1].startswith("QUARANTINE RENEWED first on cpu: ")
    assert lines[1].endswith("with the same issue #12")
    assert lines[2] == "QUARANTINE REMOVED second on cpu: it excused TOKEN; issue #12"
    assert lines[3].startswith("QUARANTINE ADDED third on cpu: TOKEN, TEXT until ")
    _, document = root.json("diff", "HEAD~1..HEAD")
    assert [(change["change"], change["fixture"]) for change in document["quarantine"]] == [
        ("ADDED", "first"),
        ("ADDED", "second"),
    ]


def test_a_quarantine_that_cannot_be_read_is_said_and_the_rest_is_shown(history: ToyRoot, tmp_path: Path) -> None:
    root = history.copy(tmp_path / "root")
    (root.path / "quarantine.yaml").write_text("entries: [\n")
    done = root.golden("diff", "HEAD~1")
    assert done.returncode == 0
    assert "quarantine.yaml:" in done.stderr
    assert DEFAULT in done.stdout
