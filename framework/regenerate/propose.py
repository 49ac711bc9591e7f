"""From a fixture to what would become of its golden: proven, then planned; nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.regenerate.plan import plan_change
from framework.regenerate.prove import Prover
from framework.run.subprocess_runner import SubprocessRunner

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from framework.manifest.fixture import Fixture
    from framework.regenerate.plan import Change
    from framework.run.adapter import Adapter
    from framework.run.session import Session
    from framework.workspace import Workspace


def new_prover(workspace: Workspace, adapter: Adapter, fixtures: Mapping[str, Fixture]) -> Prover:
    """Return a prover whose runs have processes of their own; `fixtures` are all of the workspace, by name."""
    return Prover(workspace, adapter, fixtures, lambda environment: SubprocessRunner(workspace, environment))


def proven_change(prover: Prover, session: Session, fixture: Fixture, target_root: Path) -> Change:
    """Prove a fixture that runs here, and return what would become of its golden, written under `target_root`."""
    platform = session.platform_of(fixture)
    assert platform is not None, "without a platform it is skipped"
    proof = prover.prove(fixture, platform)
    return plan_change(proof, session.workspace.goldens_root, target_root, session.hashes(fixture))
