"""From a fixture to the change of its golden that its proof allows: what `golden regen` and pytest both do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from framework.regenerate.plan import plan_change
from framework.regenerate.prove import Prover
from framework.run.claim import Claim
from framework.run.subprocess_runner import SubprocessRunner

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from framework.manifest.fixture import Fixture
    from framework.regenerate.plan import Change
    from framework.run.session import Session


@dataclass(slots=True)
class Proposer:
    """Proves fixtures of a session and plans what becomes of their goldens; it writes nothing.

    What would be written lies under `target_root`. All engines of a proof share one `claim` on devices.
    """

    session: Session
    target_root: Path
    claim: Claim = field(default_factory=Claim)
    _prover: Prover = field(init=False)

    def __post_init__(self) -> None:
        session = self.session

        def make_runner(environment: Mapping[str, str]) -> SubprocessRunner:
            return SubprocessRunner(session.workspace, environment, claim=self.claim)

        self._prover = Prover(session.workspace, session.adapter, session.fixtures, make_runner)

    def change(self, fixture: Fixture) -> Change:
        """Prove a fixture that can run here, and return what that changes of its golden."""
        platform = self.session.platform_of(fixture)
        assert platform is not None, "without a platform it is skipped"
        self.session.runner.close()  # its engine may be on the device that the proof needs
        proof = self._prover.prove(fixture, platform)
        goldens_root = self.session.workspace.goldens_root
        return plan_change(proof, goldens_root, self.target_root, self.session.hashes(fixture))

    def close(self) -> None:
        """End every engine that was started."""
        self._prover.close()
