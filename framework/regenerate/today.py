"""What a candidate is held against: today's manifests, engine settings, models and goldens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from framework.run.session import readable_golden

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from framework.golden.store import Golden
    from framework.judge import Outcome
    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter
    from framework.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Today:
    """The working tree as it is; hashes are computed once a model. `fixtures` holds every fixture by name."""

    workspace: Workspace
    adapter: Adapter
    fixtures: Mapping[str, Fixture]
    _hashes: dict[Path, Mapping[str, str]] = field(default_factory=dict)

    def hashes(self, fixture: Fixture) -> Mapping[str, str] | None:
        """Return the hashes of a fixture's model and tokenizer, None where the model has to be fetched first.

        Raises:
            ManifestError: the model is not there and cannot be fetched.
        """
        if self.workspace.why_not_fetched(fixture):
            return None
        path = self.workspace.model_path(fixture)
        if path not in self._hashes:
            self._hashes[path] = self.adapter.model_hashes(path)
        return self._hashes[path]

    def golden(self, fixture: Fixture, platform: str) -> Golden | Outcome:
        """Return a fixture's golden in force, or the outcome that says why it cannot be relied on."""
        return readable_golden(self.workspace, fixture, platform, self.hashes(fixture))

    def revision(self) -> str:
        """Return what identifies the engine's code."""
        return self.adapter.revision()

    def settings(self) -> Mapping[str, Any]:
        """Return the engine's settings with their defaults."""
        return self.adapter.describe()
