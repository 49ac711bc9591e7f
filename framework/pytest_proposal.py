"""`--golden=candidates`: what is proven of a fixture that does not hold, as a text that travels to the controller."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from framework.errors import ExitCode, GoldenInferenceError
from framework.judge import Verdict
from framework.regenerate.apply import provenance
from framework.regenerate.candidates import Proposal, proposals

if TYPE_CHECKING:
    from framework.judge import Outcome
    from framework.regenerate.propose import Proposer


def may_be_proposed(outcome: Outcome) -> bool:
    """Say whether another golden could be what is wanted: it is missing, stale, cannot be believed, or differs.

    An engine that gave no record has nothing to propose; a fixture in quarantine is known to be wrong.
    """
    settled = (Verdict.PASS, Verdict.SKIP, Verdict.QUARANTINED)
    return outcome.verdict not in settled and outcome.exit_code is not ExitCode.ENGINE


def proposal_text(proposer: Proposer, outcome: Outcome) -> str:
    """Prove a fixture and return what is proposed for it, or why nothing is; nothing is written here."""
    session = proposer.session
    fixture, workspace = session.fixtures[outcome.fixture], session.workspace
    platform = session.platform_of(fixture) or ""
    text: dict[str, Any] = {
        "root": str(workspace.root),
        "adapter": workspace.adapter_spec,
        "fixture": fixture.name,
        "platform": platform,
        "change": "refused",
    }
    try:
        change = proposer.change(fixture)
        origin = provenance(_reason(outcome), workspace.adapter_spec, session.adapter.revision())
        proposed = proposals([change], origin)
    except GoldenInferenceError as error:
        return json.dumps(text | {"problems": [str(error)]})
    text |= {
        "change": change.kind.value,
        "by_class": dict(change.by_class),
        "problems": [problem.message for problem in change.problems],
    }
    for each in proposed:
        text["data"] = None if each.data is None else each.data.decode("ascii")
    return json.dumps(text)


def read_proposal(text: dict[str, Any]) -> Proposal | None:
    """Return what a text proposes; None where the proof was refused."""
    if "data" not in text:
        return None
    data = text["data"]
    return Proposal(text["fixture"], text["platform"], None if data is None else data.encode("ascii"))


def values_of(proposal: Proposal) -> Any:
    """Return what a proposal would let a golden hold; where it comes from apart."""
    if proposal.data is None:
        return None
    document = json.loads(proposal.data)
    return {name: value for name, value in document.items() if name not in ("provenance", "seal")}


def _reason(outcome: Outcome) -> str:
    counts = Counter(finding.kind.value for finding in outcome.findings)
    classes = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"proposed by pytest --golden=candidates, since the verdict was {outcome.verdict}: {classes}"
