"""The history of goldens, as `framework.gate.both_sides` asks for it, from git's own objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framework.errors import GoldenError
from framework.gate.both_sides import Landed
from framework.gate.repository import common_ancestor, files_at, steps, versions
from framework.golden.revisions import blobs
from framework.golden.store import parse_golden


@dataclass(slots=True)
class GitHistory:
    """Reads every commit and every golden once."""

    root: Path
    _goldens: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _seals: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)

    def landed(self, since: str, head: str) -> tuple[Landed, ...]:
        """Return the commits from `since` to `head` along first parents, the oldest first."""
        found = steps(self.root, since, head)
        return tuple(Landed(commit, before, tuple(merged)) for commit, before, *merged in found)

    def goldens_at(self, commit: str) -> Mapping[str, str]:
        """Return the goldens of a commit: path to the name of its content."""
        if commit not in self._goldens:
            self._goldens[commit] = files_at(self.root, commit, "goldens")
        return self._goldens[commit]

    def ancestor(self, one: str, other: str) -> str | None:
        """Return where two commits parted."""
        return common_ancestor(self.root, one, other)

    def seals(self, content: str) -> tuple[str | None, str | None]:
        """Return the seal of a golden and that of the golden it was planned against, None where it says none."""
        if content not in self._seals:
            (data,) = blobs(self.root, [content])
            try:
                document = parse_golden(data, Path(content)).document
            except GoldenError:
                self._seals[content] = None, None
            else:
                planned = document["provenance"].get("previous_seal")
                self._seals[content] = document["seal"], planned if isinstance(planned, str) else None
        return self._seals[content]

    def earlier(self, commit: str, path: str) -> Sequence[str]:
        """Return the names of the contents that a golden had in the history of a commit, the latest first."""
        return versions(self.root, commit, path)

    def commit_of(self, path: str, landed: Sequence[Landed]) -> str:
        """Return the latest of the commits that changed a golden, an empty string if none did."""
        for step in reversed(landed):
            if self.goldens_at(step.commit).get(path) != self.goldens_at(step.before).get(path):
                return step.commit
        return ""
