"""Runs a fixture with a mismatch again, to learn whether it is always the same one. It never makes it a pass.

A rerun that passes, gives no record or gives other compared values says that the fixture is `FLAKY`, which is a
failure of its own; both records are kept. One that gives the same says that the mismatch is there to be reproduced.
Each rerun has a process of its own, so a mismatch that another fixture left behind is found too.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from framework.compare.compare import compare_records
from framework.compare.finding import Finding, FindingClass
from framework.golden.store import Golden, write_atomically
from framework.judge import Outcome, Verdict, rules_for_environment
from framework.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from framework.run.measure import Measurement
    from framework.run.session import Session

FOLDER: Final = "flaky"
_SHOWN_DIFFERENCES: Final = 3
_STANDS_FOR_NAN: Final = -1e308
_NOT_OF_THE_RUN: Final = frozenset({FindingClass.SETTINGS_DRIFT})
"""Classes that are known before an engine starts: a rerun could say nothing of them."""


@dataclass(frozen=True, slots=True)
class Reruns:
    """What running a mismatch again has shown; `records` are the files that keep both runs where they differed."""

    count: int
    differed: bool
    message: str
    records: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as it stands under `reruns` in the entry of a `golden.run/1` document."""
        return {
            "count": self.count,
            "differed": self.differed,
            "message": self.message,
            "records": list(self.records),
        }


@dataclass(frozen=True, slots=True)
class _Rerun:
    """What one rerun showed: its record if there is one, how it differed, and what was found in it."""

    record: Mapping[str, Any] | None
    differences: tuple[str, ...]
    findings: tuple[Finding, ...]


def diagnosed(session: Session, outcomes: Sequence[Outcome], limit: int, hear: Callable[[str], None]) -> list[Outcome]:
    """Return the outcomes, those with a mismatch run again up to `limit` times; `hear` is told before each fixture."""
    found = []
    for outcome in outcomes:
        if limit and outcome.verdict is Verdict.FAIL and not _is_of_the_settings_alone(outcome):
            hear(f"RERUN       {outcome.fixture}, up to {limit} times, for diagnosis; its verdict stays a failure")
            found.append(_diagnose(session, outcome, limit))
        else:
            found.append(outcome)
    return found


def _is_of_the_settings_alone(outcome: Outcome) -> bool:
    return all(finding.kind in _NOT_OF_THE_RUN for finding in outcome.findings)


def _diagnose(session: Session, outcome: Outcome, limit: int) -> Outcome:
    fixture = session.fixtures[outcome.fixture]
    golden = session.prepare(fixture)
    first = session.record_of(fixture.name)
    if not isinstance(golden, Golden) or first is None:  # somebody took the golden away meanwhile
        return outcome
    seconds = outcome.seconds
    for number in range(1, limit + 1):
        session.runner.close()  # a fresh process, so that nothing is left of what ran before
        measurement = session.measure(fixture, keep=False)
        seconds += measurement.seconds
        rerun = _compared(session, outcome, golden, measurement)
        if rerun.differences:
            kept = _keep(session.workspace.state_folder, fixture.name, first, rerun.record, number)
            return _flaky(outcome, rerun, number, kept, seconds)
    message = f"same mismatch in {limit} rerun{'s' * (limit != 1)}: deterministic"
    return dataclasses.replace(outcome, reruns=Reruns(limit, differed=False, message=message), seconds=seconds)


def _compared(session: Session, outcome: Outcome, golden: Golden, measurement: Measurement) -> _Rerun:
    """Hold a rerun against the first run, under the fixture's own rules, and against the golden."""
    fixture = session.fixtures[outcome.fixture]
    first, again = session.record_of(fixture.name), measurement.record
    judged = session.judge(fixture, golden, measurement)
    if first is None or again is None:
        differences = [f"it gave no record: {finding.kind}: {_first_line(finding)}" for finding in judged.findings]
        return _Rerun(again, tuple(differences), judged.findings)
    rules, _ = rules_for_environment(fixture.rules, first, again)
    between = compare_records(_comparable(first), _comparable(again), rules).findings
    differences = [f"{finding.kind} {finding.path}: {_sides(finding)}" for finding in between]
    if judged.verdict is Verdict.PASS:
        differences.insert(0, "it passed")
    elif not differences and _keys(judged.findings) != _keys(outcome.findings):
        differences = [f"it found {_listed(judged.findings)}, and the first run {_listed(outcome.findings)}"]
    return _Rerun(again, tuple(differences), judged.findings)


def _comparable(value: Any) -> Any:
    """Return a record in which a NaN equals a NaN: what is asked is whether the engine does the same again."""
    if isinstance(value, dict):
        return {key: _comparable(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_comparable(child) for child in value]
    if isinstance(value, float) and not math.isfinite(value):
        return _STANDS_FOR_NAN if math.isnan(value) else math.copysign(sys.float_info.max, value)
    return value


def _keys(findings: Sequence[Finding]) -> set[tuple[FindingClass, str]]:
    return {(finding.kind, finding.path) for finding in findings}


def _listed(findings: Sequence[Finding]) -> str:
    return ", ".join(f"{finding.kind} {finding.path}" for finding in findings[:_SHOWN_DIFFERENCES])


def _sides(finding: Finding) -> str:
    """Return what stood there in the two runs, of which the first takes the golden's place in this comparison."""
    if finding.golden is None and finding.current is None:
        return _first_line(finding)
    return f"{_short(finding.golden)} in the first run, {_short(finding.current)} in this one"


def _first_line(finding: Finding) -> str:
    return finding.message.partition("\n")[0]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"  # noqa: PLR2004


def _flaky(outcome: Outcome, rerun: _Rerun, number: int, kept: tuple[str, ...], seconds: float) -> Outcome:
    hidden = len(rerun.differences) - _SHOWN_DIFFERENCES
    more = f"; and {hidden} more" if hidden > 0 else ""
    differed = "; ".join(rerun.differences[:_SHOWN_DIFFERENCES])
    known = _keys(outcome.findings)
    added = tuple(
        dataclasses.replace(finding, message=f"in rerun {number}, not in the first run: {finding.message}")
        for finding in rerun.findings
        if (finding.kind, finding.path) not in known
    )
    return dataclasses.replace(
        outcome,
        verdict=Verdict.FLAKY,
        findings=(*outcome.findings, *added),
        reruns=Reruns(
            number, differed=True, message=f"rerun {number} was not like the first run: {differed}{more}", records=kept
        ),
        seconds=seconds,
    )


def _keep(
    state_folder: Path,
    fixture_name: str,
    first: Mapping[str, Any],
    again: Mapping[str, Any] | None,
    number: int,
) -> tuple[str, ...]:
    """Keep the records of both runs, with their environment, for `golden compare`; return where they lie."""
    folder = state_folder.joinpath(FOLDER, *fixture_name.split("/"))
    redactor = Redactor.of(os.environ)
    records = {folder / "first.json": first} | ({folder / f"rerun-{number}.json": again} if again is not None else {})
    try:
        for path, record in records.items():
            text = json.dumps(redactor.value(record), indent=1, sort_keys=True)
            write_atomically(path, text.encode() + b"\n")
    except OSError as error:
        return (f"not kept: {error.filename or folder}: {error.strerror or error}",)
    return tuple(str(path) for path in records)
