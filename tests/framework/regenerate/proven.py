"""Candidates of the toy engine, proven in this process, that a test may falsify and seal again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from framework.golden.seal import sealed_bytes
from framework.golden.store import read_golden
from framework.manifest.fixture import Fixture
from framework.manifest.load import load_all
from framework.regenerate.apply import provenance
from framework.regenerate.candidates import keep_candidates
from framework.regenerate.plan import Change, plan_change
from framework.regenerate.prove import Prover
from framework.regenerate.today import Today
from framework.run.in_process import InProcessRunner
from framework.workspace import Workspace
from tests.framework.toy_adapter import ToyEngine
from tests.framework.toy_root import ADAPTER, ToyRoot

ORIGIN = provenance("because", ADAPTER, "toy 1")


def workspace_of(toy: ToyRoot) -> Workspace:
    return Workspace(toy.path, ADAPTER)


def fixtures_of(toy: ToyRoot) -> dict[str, Fixture]:
    return {fixture.name: fixture for fixture in load_all(toy.path / "fixtures").fixtures}


def today_of(toy: ToyRoot) -> Today:
    return Today(workspace_of(toy), ToyEngine(), fixtures_of(toy))


def plan(toy: ToyRoot) -> list[Change]:
    adapter, workspace, fixtures = ToyEngine(), workspace_of(toy), fixtures_of(toy)
    prover = Prover(workspace, adapter, fixtures, lambda environment: InProcessRunner(adapter))
    goldens = workspace.goldens_root
    hashes = adapter.model_hashes(toy.path / "fixtures" / "models" / "toy")
    return [plan_change(prover.prove(fixture, "cpu"), goldens, goldens, hashes) for fixture in fixtures.values()]


def keep(toy: ToyRoot) -> list[Path]:
    return keep_candidates(workspace_of(toy), plan(toy), ORIGIN)


def falsify(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what a golden says, and seal it again: a seal shows that a file is whole, not that it is true."""
    document = read_golden(path).document
    change(document)
    path.write_bytes(sealed_bytes(document))
