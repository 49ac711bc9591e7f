"""What would change of a golden, decided before anything is asked or written."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from framework.errors import GoldenError, MissingGoldenError
from framework.golden.codec import MAX_BYTES
from framework.golden.seal import with_lf
from framework.golden.store import Golden, golden_path, read_golden_of
from framework.regenerate.difference import contents, difference, printable
from framework.regenerate.evidence import Evidence, evidence_of
from framework.regenerate.prove import Problem, candidate
from framework.regular_file import read_regular_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from framework.manifest.fixture import Fixture
    from framework.regenerate.prove import Proof

SHOWN_LINES = 12


class Kind(StrEnum):
    """What happens to a golden."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Change:
    """One golden's future.

    `document` is what would be written, provenance apart; `provenance` is what is known of where it comes from: the
    proof, and the seal of the golden it replaces. `old_data` are the bytes that lay at `path` when this was planned,
    None if there was no file.
    """

    fixture: str
    platform: str
    path: Path
    kind: Kind
    document: Mapping[str, Any] | None
    provenance: Mapping[str, Any]
    old_data: bytes | None
    by_class: Mapping[str, int]
    lines: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()

    def refused_for(self, problems: Sequence[Problem]) -> Change:
        """Return the change with more problems, and so refused; itself where there are none."""
        if not problems:
            return self
        return dataclasses.replace(self, kind=Kind.REFUSED, problems=(*self.problems, *problems))

    def as_json(self) -> dict[str, Any]:
        """Return the change as an entry of a `golden.regen/1`, `golden.accept/1` or `golden.review/1` document."""
        return {
            "fixture": self.fixture,
            "platform": self.platform,
            "path": str(self.path),
            "change": self.kind.value,
            "by_class": dict(self.by_class),
            **self._proof(),
            "problems": [problem.message for problem in self.problems],
            "warnings": list(self.warnings),
        }

    def in_words(self) -> str:
        """Return what a reviewer must see before this is written."""
        head = f"{self.fixture} [{self.platform}]: {self.kind}, after {self._proof()['runs']} runs"
        classes = ", ".join(f"{count} {name}" for name, count in sorted(self.by_class.items()))
        lines = [f"{head} ({classes})" if classes else head]
        lines.extend(f"  {line}" for line in self.lines[:SHOWN_LINES])
        if len(self.lines) > SHOWN_LINES:
            lines.append(f"  and {len(self.lines) - SHOWN_LINES} more")
        lines.extend(f"  refused: {problem.message}" for problem in self.problems)
        lines.extend(f"  warning: {warning}" for warning in self.warnings)
        return "\n".join(map(printable, lines))

    def _proof(self) -> dict[str, Any]:
        """Return the figures of the proof; what could not be read as one has none."""
        try:
            return evidence_of(self.provenance).as_json()
        except GoldenError:
            return Evidence(0, {}, None).as_json()


@dataclass(frozen=True, slots=True)
class InForce:
    """The golden that a run is judged with, if there is one, or why it cannot be believed.

    `seal` names exactly these bytes: the golden's own, or one made up for a file that is no golden; None without one.
    """

    golden: Golden | None = None
    seal: str | None = None
    error: GoldenError | None = None


def golden_in_force(goldens_root: Path, fixture_name: str, platform: str) -> InForce:
    """Read the golden that is in force for a fixture on a platform.

    Raises:
        GoldenError: there is a file that may not be read.
    """
    try:
        golden = read_golden_of(goldens_root, fixture_name, platform)
    except MissingGoldenError:
        return InForce()
    except GoldenError as error:
        data = data_at(golden_path(goldens_root, fixture_name, platform))
        what = "no file" if data is None else hashlib.sha256(with_lf(data)).hexdigest()
        return InForce(seal=f"unreadable: {what}", error=error)
    return InForce(golden, golden.document["seal"])


def plan_change(proof: Proof, goldens_root: Path, target_root: Path, hashes: Mapping[str, str]) -> Change:
    """Decide what a proof changes of the golden under `goldens_root`; it would be written under `target_root`.

    `hashes` are those of the fixture's model and tokenizer.
    """
    in_force = golden_in_force(goldens_root, proof.fixture.name, proof.platform)
    return change_to(
        proof.fixture,
        proof.platform,
        in_force,
        golden_path(target_root, proof.fixture.name, proof.platform),
        document=None if proof.problems else candidate(proof) | {"hashes": dict(hashes)},
        provenance={"proof": proof.evidence().as_json(), "previous_seal": in_force.seal},
        problems=proof.problems,
        warnings=proof.warnings,
    )


def change_to(
    fixture: Fixture,
    platform: str,
    in_force: InForce,
    path: Path,
    *,
    document: Mapping[str, Any] | None,
    provenance: Mapping[str, Any],
    problems: Sequence[Problem] = (),
    warnings: Sequence[str] = (),
) -> Change:
    """Decide what writing `document` at `path` would change of the golden in force; with problems, it is refused."""
    old_data = data_at(path)
    kind, by_class, lines = Kind.REFUSED, dict[str, int](), tuple[str, ...]()
    if document is None:
        assert problems, "what is not refused has a document"
    elif in_force.golden is not None:
        found = difference(fixture, in_force.golden, document, document["hashes"])
        kind, by_class, lines = Kind.CHANGED if found.lines else Kind.UNCHANGED, dict(found.by_class), found.lines
    elif in_force.error is not None:
        kind, lines = Kind.CHANGED, (f"replaces a broken one: {in_force.error}",)
    else:
        kind, lines = Kind.NEW, (contents(document),)
    return Change(
        fixture.name,
        platform,
        path,
        Kind.REFUSED if problems else kind,
        document,
        provenance,
        old_data,
        by_class,
        lines,
        tuple(problems),
        tuple(warnings),
    )


def why_outside(path: Path, goldens_root: Path) -> str:
    """Return why what is written at `path` would not lie below the goldens, or an empty string."""
    if path.parent.resolve().is_relative_to(goldens_root.resolve()):
        return ""
    return f"{path}: a link leads out of {goldens_root}; put a folder there"


def data_at(path: Path) -> bytes | None:
    """Return the bytes of a file, None where there is none.

    Raises:
        GoldenError: it cannot be read.
    """
    try:
        return read_regular_file(path, MAX_BYTES) if path.is_file() else None
    except OSError as error:
        raise GoldenError(f"{path}: cannot be read: {error.strerror or error}; make it readable") from None
