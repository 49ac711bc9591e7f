"""`pytest --golden=candidates`: proven goldens that wait for a person, beside a verdict that stays what it is.

A process that runs items proves and seals; the bytes travel with the item's report, and only the controller writes.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from framework.errors import GoldenInferenceError
from framework.golden.store import golden_path
from framework.judge import Verdict
from framework.regenerate.apply import provenance
from framework.regenerate.candidates import candidate_bytes, candidates_folder, write_candidates
from framework.regenerate.plan import Kind
from framework.regenerate.propose import Proposer
from framework.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from framework.judge import Outcome
    from framework.manifest.fixture import Fixture
    from framework.run.session import Session

REASON: Final = "proven by pytest --golden=candidates"
_WORTH_PROVING: Final = (Verdict.MISSING, Verdict.STALE, Verdict.FAIL, Verdict.FLAKY)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What proving a fixture gave: what it would change, in words, and the sealed golden, if there is one to keep.

    `data` is ASCII: a golden's canonical bytes.
    """

    root: str
    fixture: str
    platform: str
    words: str
    data: str | None

    def as_text(self) -> str:
        """Return the text that travels from a worker to the controller."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Proposal:
        """Return the proposal that travelled."""
        values: dict[str, Any] = json.loads(text)
        return cls(**values)


def proposal(session: Session, fixture: Fixture, outcome: Outcome) -> Proposal | None:
    """Prove a fixture whose golden is missing, stale or not met; None where there is nothing to prove."""
    if outcome.verdict not in _WORTH_PROVING:
        return None
    workspace = session.workspace
    proposer = Proposer(session, candidates_folder(workspace))
    try:
        change = proposer.change(fixture)
        data = None
        if change.kind in (Kind.NEW, Kind.CHANGED):
            origin = provenance(REASON, workspace.adapter_spec, session.adapter.revision())
            data = candidate_bytes(change, origin).decode("ascii")
        words = change.in_words()
    except GoldenInferenceError as error:
        data, words = None, f"{fixture.name}: no candidate: {error}"
    finally:
        proposer.close()
    return Proposal(str(workspace.root), fixture.name, outcome.platform, words, data)


def keep(proposals: Iterable[Proposal], adapter: str | None) -> list[str]:
    """Write what was proven to where candidates wait, and return what to tell about it. The controller alone does."""
    lines: list[str] = []
    by_root: dict[str, dict[Path, bytes]] = {}
    for each in sorted(proposals, key=lambda one: (one.root, one.fixture)):
        lines.extend(each.words.splitlines())
        if each.data is not None:
            folder = candidates_folder(open_workspace(Path(each.root), adapter))
            files = by_root.setdefault(each.root, {})
            files[golden_path(folder, each.fixture, each.platform)] = each.data.encode("ascii")
    for root, files in by_root.items():
        try:
            write_candidates(open_workspace(Path(root), adapter), files)
        except GoldenInferenceError as error:
            lines.append(f"no candidate was kept: {error}")
            continue
        lines.extend(f"kept {path}" for path in files)
        lines.append("Next: `golden review` shows them, `golden accept --reason …` brings them in.")
    return lines
