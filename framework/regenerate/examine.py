"""Whether a candidate may become a golden, from what it says and what the working tree is today; nothing is run.

A seal shows that a file is whole, not that it is true: anybody can compute one. So everything that a proof establishes
and that can be seen in the result is looked at again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.compare.compare import compare_records
from framework.compare.paths import look_up, parse_path
from framework.compare.witness import check_witnesses
from framework.errors import ExitCode, GoldenError
from framework.explain.drift import drift_findings
from framework.golden.codec import non_finite_paths
from framework.golden.seal import sealed_bytes
from framework.judge import staleness
from framework.regenerate.evidence import LEAST_RUNS, Evidence, evidence_of, margin_problems, missing_values
from framework.regenerate.prove import Problem
from framework.regenerate.tolerances import in_words, tolerance_problems, unrecorded_spreads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from framework.golden.store import Golden
    from framework.manifest.fixture import Fixture, Witness
    from framework.regenerate.today import Today

_MOST_SHOWN = 5
_ORIGIN = ("reason", "adapter", "engine_revision", "date")


def problems_of(fixture: Fixture, golden: Golden, today: Today) -> tuple[Problem, ...]:
    """Return why the candidate `golden` may not become the golden of `fixture`; its relations apart.

    Each step is taken only if those before it found nothing, since it relies on them: of today, well formed, proven,
    and then whether its values are fit.
    """
    steps = (_not_of_today, _malformed, _not_proven, _unfit)
    return next((tuple(found) for step in steps if (found := list(step(fixture, golden, today)))), ())


def _not_of_today(fixture: Fixture, golden: Golden, today: Today) -> Iterable[Problem]:
    for finding in staleness(fixture, golden, today.hashes(fixture)):
        yield Problem(ExitCode.GOLDEN, f"{finding.kind} {finding.path}: {finding.message}")
    if why := today.workspace.why_not_fetched(fixture):
        yield Problem(ExitCode.GOLDEN, f"it cannot be told whether it was recorded with today's model: {why}")


def _malformed(fixture: Fixture, golden: Golden, today: Today) -> Iterable[Problem]:
    del today
    document = golden.document
    try:
        is_canonical = sealed_bytes(document) == golden.data
    except ValueError as error:
        yield _unbelievable(f"it has no canonical form: {error}")
        return
    if not is_canonical:
        yield _unbelievable("it is not in canonical form, so `golden regen` did not write it")
    wanted = {str(index) for index in range(len(fixture.workload.prompts))}
    if document["requests"].keys() != wanted:
        yield _unbelievable(f"it has the requests {sorted(document['requests'])}, its manifest {sorted(wanted)}")
    for request_id, request in document["requests"].items():
        margins = request.get("margins", [])
        if not isinstance(margins, list) or not all(type(margin) in (int, float) for margin in margins):
            yield _unbelievable(f'requests["{request_id}"].margins is no list of numbers')


def _not_proven(fixture: Fixture, golden: Golden, today: Today) -> Iterable[Problem]:
    document = golden.document
    origin = document["provenance"]
    try:
        evidence = evidence_of(document["provenance"])
    except GoldenError as error:
        yield _unproven(f"{error}")
        return
    if evidence.runs < LEAST_RUNS:
        yield _unproven(f"it was run {evidence.runs} time(s), and a proof takes at least {LEAST_RUNS}")
    for name in unrecorded_spreads(fixture.rules, evidence.spread, document):
        yield _unproven(f"{name}: it was not recorded how far runs spread")
    for name in _ORIGIN:
        if not isinstance(origin.get(name), str) or not origin[name].strip():
            yield _unproven(f"its provenance has no {name}")
    if "previous_seal" not in origin or not isinstance(origin["previous_seal"], str | None):
        yield _unproven("its provenance does not say which golden it was planned against")
    if origin.get("adapter") not in (None, today.workspace.adapter_spec):
        yield _unproven(
            f"it was recorded with the engine {origin['adapter']!r}, and this is {today.workspace.adapter_spec!r};"
            " give `--adapter`",
        )


def _unfit(fixture: Fixture, golden: Golden, today: Today) -> Iterable[Problem]:
    document, evidence = golden.document, evidence_of(golden.document["provenance"])
    for path in non_finite_paths(document)[:_MOST_SHOWN]:
        yield Problem(ExitCode.REGRESSION, f"NON_FINITE {path}: a golden holds no NaN and no infinity")
    findings = [
        *drift_findings(document, today.settings()),
        *compare_records(document, document, fixture.rules).findings,
        *check_witnesses([witness for witness in fixture.witnesses if _is_held(witness, document)], document),
    ]
    for finding in findings[:_MOST_SHOWN]:
        yield Problem(ExitCode.REGRESSION, f"{finding.kind} {finding.path}: {finding.message}")
    if not findings:
        messages = _of_values(fixture, document, evidence)
        yield from (Problem(ExitCode.REGRESSION, message) for message in messages)


def _is_held(witness: Witness, document: Mapping[str, Any]) -> bool:
    """Say whether a golden has the value that a witness is about; one that is not asserted is not kept."""
    try:
        look_up(document, parse_path(witness.path))
    except LookupError:
        return False
    return True


def _of_values(fixture: Fixture, document: Mapping[str, Any], evidence: Evidence) -> list[str]:
    return [
        *missing_values(fixture, document),
        *in_words(tolerance_problems(fixture.rules, evidence.spread, document)),
        *margin_problems(fixture, document, evidence.instruction_set_error),
    ]


def _unbelievable(cause: str) -> Problem:
    return Problem(ExitCode.GOLDEN, f"{cause}. Take it again from where `golden regen` wrote it")


def _unproven(cause: str) -> Problem:
    return Problem(ExitCode.GOLDEN, f"not proven: {cause}. Record it with `golden regen`")
