from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.golden.store import golden_path, read_golden
from tests.framework.pytest_plugin.driving import run_pytest
from tests.framework.toy_root import ToyRoot


def goldens(toy: ToyRoot) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(toy.path.glob("goldens/**/*.json"))}


def waiting(toy: ToyRoot, name: str) -> Path:
    return golden_path(toy.path / ".golden" / "candidates", name, "cpu")


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_what_differs_and_what_is_missing_is_proven_and_kept_and_still_fails(
    toy: ToyRoot, workers: tuple[str, ...]
) -> None:
    toy.set_default_mode("legacy")
    toy.golden_path("mode/legacy").unlink()
    before = goldens(toy)
    done = run_pytest(toy, "fixtures", "--golden=candidates", "--golden-report=run.json", *workers)
    assert done.returncode == 1, done.stdout
    assert goldens(toy) == before
    assert "candidate   default [cpu]: changed (" in done.stdout
    assert "candidate   mode/legacy [cpu]: new" in done.stdout
    assert "`golden review` shows the 2 candidate(s), `golden accept --reason …`" in done.stdout
    assert json.loads((toy.path / "run.json").read_text())["exit_code"] == 12
    candidate = read_golden(waiting(toy, "default")).document
    assert candidate["counters"]["async_sched_step_count"] == 0
    assert "pytest --golden=candidates, since the verdict was FAIL" in candidate["provenance"]["reason"]
    assert candidate["provenance"]["proof"]["runs"] >= 3
    accepted = toy.golden("accept", "--reason", "legacy is the default again", "--yes")
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    assert run_pytest(toy, "fixtures", "--golden=candidates").returncode == 0
    assert not waiting(toy, "default").exists()


def test_a_candidate_is_the_one_that_golden_regen_would_keep(toy: ToyRoot) -> None:
    toy.set_default_mode("legacy")
    run_pytest(toy, "fixtures", "--golden=candidates", "-k", "default")
    ours = read_golden(waiting(toy, "default")).document
    assert toy.golden("regen", "default", "--reason", "because").returncode == 2, "nobody was there to be asked"
    theirs = read_golden(waiting(toy, "default")).document
    for document in (ours, theirs):
        del document["seal"], document["provenance"]["reason"]
    assert ours == theirs


def test_every_worker_of_each_proves_and_one_candidate_is_kept(toy: ToyRoot) -> None:
    toy.set_default_mode("legacy")
    done = run_pytest(toy, "fixtures", "--golden=candidates", "-n", "2", "--dist", "each", "-k", "default")
    assert done.stdout.count("candidate   default [cpu]: changed") == 1
    assert "`golden review` shows the 1 candidate(s)" in done.stdout
    assert toy.golden("review").returncode == 0


def test_what_is_not_deterministic_gets_no_candidate(toy: ToyRoot) -> None:
    toy.set_default("fault", "random")
    done = run_pytest(toy, "fixtures", "--golden=candidates", "-k", "default")
    assert done.returncode == 1
    assert "candidate   default [cpu]: refused: a second run in the same process disagrees" in done.stdout
    assert "golden accept" not in done.stdout
    assert not waiting(toy, "default").exists()


def test_a_mismatch_that_the_proof_does_not_show_again_keeps_the_golden(toy: ToyRoot) -> None:
    toy.misbehave("random", runs=1)
    done = run_pytest(toy, "fixtures", "--golden=candidates", "-k", "default")
    assert done.returncode == 1
    assert "candidate   default [cpu]: unchanged: none, the golden in force was proven to stand" in done.stdout
    assert not waiting(toy, "default").exists()


def test_an_engine_that_gives_no_record_proposes_nothing(toy: ToyRoot) -> None:
    toy.set_default("fault", "crash")
    done = run_pytest(toy, "fixtures", "--golden=candidates", "-k", "default")
    assert done.returncode == 1
    assert "candidate " not in done.stdout


def test_under_ci_candidates_go_only_where_a_folder_was_named(toy: ToyRoot) -> None:
    toy.set_default_mode("legacy")
    done = run_pytest(toy, "fixtures", "--golden=candidates", CI="true")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "`--golden-out DIR`" in done.stderr
    out = ("--golden=candidates", "--golden-out", "proposed")
    assert run_pytest(toy, "fixtures", *out, "-n", "2", CI="true").returncode == 1
    assert not (toy.path / ".golden" / "candidates").exists()
    assert toy.golden("review", "proposed").returncode == 0
    assert toy.golden("accept", "proposed", "--reason", "legacy it is", "--yes").returncode == 0


@pytest.mark.parametrize("folder", ["goldens", "goldens/deep", "", "pytest.ini/x"])
def test_a_folder_that_candidates_do_not_go_into_is_refused_first(toy: ToyRoot, folder: str) -> None:
    done = run_pytest(toy, "fixtures", "--golden=candidates", f"--golden-out={folder}")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--golden-out" in done.stderr


def test_a_folder_without_candidates_is_refused(toy: ToyRoot) -> None:
    assert run_pytest(toy, "fixtures", "--golden-out=x").returncode == pytest.ExitCode.USAGE_ERROR
