from __future__ import annotations

from pathlib import Path

import pytest

from framework.manifest.lint import lint
from framework.manifest.linted import LintProblem, Severity
from framework.regenerate.apply import apply_changes
from tests.framework.regenerate.proven import ORIGIN, falsify, fixtures_of, plan
from tests.framework.toy_adapter import ToyEngine
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("a")
    apply_changes(plan(root), state_folder=root.path / ".golden", origin=ORIGIN)
    return root


def problems(toy: ToyRoot) -> list[LintProblem]:
    engine = ToyEngine()
    fixtures = list(fixtures_of(toy).values())
    found = lint(fixtures, root=toy.path, settings=engine.describe(), check_settings=engine.check_settings)
    return [problem for problem in found if problem.path.startswith("assert")]


def observed(toy: ToyRoot, spread: float) -> None:
    falsify(
        toy.golden_path("a"),
        lambda golden: golden["provenance"]["proof"].update(spread={"generated_logprobs": spread}),
    )


def test_a_tolerance_that_good_runs_exceed_is_an_error_at_its_line(toy: ToyRoot) -> None:
    observed(toy, 2e-5)
    (problem,) = problems(toy)
    assert problem.severity is Severity.ERROR
    assert str(problem) == (
        "fixtures/a.yaml:15: assert.generated_logprobs: atol 1e-05, rtol 0.0 allows 1e-05, less than the spread 2e-05"
        " observed between good runs for cpu. Write a tolerance above it, or find out why runs differ."
    )


def test_a_tolerance_far_above_the_spread_is_a_warning(toy: ToyRoot) -> None:
    path = toy.path / "fixtures" / "a.yaml"
    path.write_text(path.read_text().replace("atol: 1.0e-5", "atol: 1.0e-2"))
    (problem,) = problems(toy)
    assert problem.severity is Severity.WARNING
    assert "more than ten times the spread 0 observed" in problem.message


def test_a_relative_tolerance_counts_with_the_values_it_is_relative_to(toy: ToyRoot) -> None:
    path = toy.path / "fixtures" / "a.yaml"
    path.write_text(path.read_text().replace("atol: 1.0e-5, rtol: 0.0", "atol: 0.0, rtol: 1.0e-3"))
    observed(toy, 5e-4)
    assert problems(toy) == []
    observed(toy, 5e-2)
    assert [problem.severity for problem in problems(toy)] == [Severity.ERROR]


@pytest.mark.parametrize("spread", [0.0, 1e-6, 1e-5])
def test_a_tolerance_near_the_rounding_of_fp32_is_well_chosen(toy: ToyRoot, spread: float) -> None:
    observed(toy, spread)
    assert problems(toy) == []


@pytest.mark.parametrize("broken", [b"", b"<<<<<<< ours", b"{}", b'"spread": {' + b"[" * 100_000 + b"}"])
def test_a_golden_that_cannot_be_read_is_for_others_to_report(toy: ToyRoot, broken: bytes) -> None:
    toy.golden_path("a").write_bytes(broken)
    assert problems(toy) == []


def test_a_golden_without_evidence_says_nothing_of_tolerances(toy: ToyRoot) -> None:
    falsify(toy.golden_path("a"), lambda golden: golden["provenance"].clear())
    assert problems(toy) == []


def test_lint_ends_with_the_code_of_a_malformed_manifest(toy: ToyRoot) -> None:
    observed(toy, 2e-5)
    done = toy.golden("lint")
    assert done.returncode == 10
    assert "less than the spread" in done.stdout
