"""The verdict on one fixture: a pure function of its golden, its record, and what the engine says of its settings."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from framework.compare.compare import compare_records, in_order
from framework.compare.detectable import minimum_detectable_effect
from framework.compare.finding import Comparison, Finding, FindingClass
from framework.compare.relations import check_relation
from framework.compare.rule import Rule, RuleKind
from framework.compare.witness import check_witnesses
from framework.errors import ExitCode, SealError
from framework.explain.divergence import NO_AIDS, Aids, explain_tokens
from framework.explain.drift import drift_findings
from framework.golden.document import stored_names
from framework.run.measure import PAIRED_RATIO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from framework.compare.rules import Rules
    from framework.errors import GoldenError
    from framework.golden.store import Golden
    from framework.manifest.fixture import Fixture
    from framework.quarantine.entry import Note
    from framework.run.adapter import SettingDescription
    from framework.run.rerun import Reruns
    from framework.run.retry import Attempt
    from framework.run.task import Failure


_ANY_USABLE_FIGURE: Final = Rule(RuleKind.RATIO, low=0.0, high=math.inf)


class Verdict(StrEnum):
    """What became of a fixture; the names are part of the machine-readable interface."""

    PASS = "PASS"  # noqa: S105 - no password
    FAIL = "FAIL"
    SKIP = "SKIP"
    ERROR = "ERROR"
    MISSING = "MISSING"
    STALE = "STALE"
    FLAKY = "FLAKY"
    QUARANTINED = "QUARANTINED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on one fixture with its findings and how many values stand behind it.

    `reason` says why a fixture was skipped, or which figures were not judged here. `platform` is where it ran, empty if
    nowhere. `detectable` holds the smallest
    relative change that could have been noticed, by the name of each performance figure that was judged by samples.
    `quarantine` is what its entry in
    `quarantine.yaml` makes of it, where it has one. `attempts` are the tries that gave no record before the one that is
    judged, `reruns` what was learnt by running a mismatch again.
    """

    fixture: str
    verdict: Verdict
    exit_code: ExitCode
    findings: tuple[Finding, ...] = ()
    compared: int = 0
    informed: int = 0
    ignored: int = 0
    seconds: float = 0.0
    reason: str = ""
    platform: str = ""
    detectable: Mapping[str, float] = field(default_factory=dict)
    quarantine: Note | None = None
    attempts: tuple[Attempt, ...] = ()
    reruns: Reruns | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as an entry of the `golden.run/1` document."""
        entry: dict[str, Any] = {
            "fixture": self.fixture,
            "verdict": self.verdict.value,
            "compared": self.compared,
            "informed": self.informed,
            "ignored": self.ignored,
            "seconds": round(self.seconds, 3),
            "findings": [finding.as_json() for finding in self.findings],
        }
        if self.detectable:
            entry["minimum_detectable_effect"] = {name: round(size, 4) for name, size in self.detectable.items()}
        if self.platform:
            entry["platform"] = self.platform
        if self.reason:
            entry["reason"] = self.reason
        if self.quarantine is not None:
            entry["quarantine"] = self.quarantine.as_json()
        if self.attempts:
            entry["attempts"] = [attempt.as_json() for attempt in self.attempts]
        if self.reruns is not None:
            entry["reruns"] = self.reruns.as_json()
        return entry


def judge(
    fixture: Fixture,
    golden: Golden,
    records: Sequence[Mapping[str, Any]],
    descriptions: Mapping[str, SettingDescription],
    partners: Mapping[str, Mapping[str, Any]],
    *,
    aids: Sequence[Aids] = (),
) -> Outcome:
    """Judge what an engine gave for a fixture.

    `records` are its runs, the first one with the performance of all; `partners` holds, by fixture name, the record of
    this run (or the golden) of every fixture that a relation names. `aids` are what explains each run, if anything.
    """
    aids = aids or (NO_AIDS,) * len(records)
    record = records[0]
    rules, reason = rules_for_environment(fixture.rules, golden.document, record)
    comparison = _with_unusable_figures(fixture.rules, rules, golden.document, record)
    findings = (
        *drift_findings(golden.document, descriptions),
        *explain_tokens(comparison.findings, golden.document, record, aids[0]),
        *_findings_of_repeats(golden.document, list(zip(records, aids, strict=True))[1:], rules, comparison),
        *_relation_findings(fixture, record, partners),
        *check_witnesses(fixture.witnesses, record),
    )
    if not rules.asserted and not findings:
        return skipped_outcome(fixture, f"no assert rule could be judged; {reason}")
    outcome = _judged(fixture.name, findings, comparison, reason)
    return dataclasses.replace(outcome, detectable=_detectable(rules, golden.document, record))


def judge_files(golden: Mapping[str, Any], current: Mapping[str, Any], rules: Rules) -> Outcome:
    """Judge one record or golden by another, with nothing known of a fixture: every rule holds, wherever they ran."""
    comparison = compare_records(golden, current, rules)
    findings = explain_tokens(comparison.findings, golden, current)
    name = golden.get("fixture")
    outcome = _judged(name if isinstance(name, str) else "", findings, comparison, "")
    return dataclasses.replace(outcome, detectable=_detectable(rules, golden, current))


def judge_golden_alone(
    fixture: Fixture,
    golden: Golden,
    descriptions: Mapping[str, SettingDescription],
    partners: Mapping[str, Mapping[str, Any]],
) -> Outcome:
    """Judge what can be judged of a golden without an engine: its settings, its contents, its relations to others."""
    findings = (
        *drift_findings(golden.document, descriptions),
        *_findings_of_contents(fixture.rules, golden.document),
        *_relation_findings(fixture, golden.document, partners),
    )
    return _judged(fixture.name, findings, Comparison(findings, compared=0, informed=0, ignored=0), "")


def _detectable(rules: Rules, golden: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, float]:
    """Return the smallest change that each figure under a ratio rule could show, for those that come as samples."""
    sides = [side.get("performance") for side in (golden, record)]
    figures, others = (side if isinstance(side, dict) else {} for side in sides)
    effects = {}
    for name in sorted(figures.keys() & others.keys()):
        rule = rules.for_entry("performance", name).rule
        effect = minimum_detectable_effect(figures[name], others[name])
        if effect is not None and rule is not None and rule.kind is RuleKind.RATIO:
            effects[name] = effect
    return effects


def _judged(name: str, findings: tuple[Finding, ...], comparison: Comparison, reason: str) -> Outcome:
    return Outcome(
        fixture=name,
        verdict=Verdict.FAIL if findings else Verdict.PASS,
        exit_code=ExitCode.REGRESSION if findings else ExitCode.GOOD,
        findings=findings,
        compared=comparison.compared,
        informed=comparison.informed,
        ignored=comparison.ignored,
        reason=reason,
    )


def staleness(fixture: Fixture, golden: Golden, hashes: Mapping[str, str] | None) -> tuple[Finding, ...]:
    """Return a finding for everything the golden was recorded from that is not the same today.

    `hashes` are those of its model; None if it is not here, and then nothing is said of it.
    """
    recorded = golden.document["hashes"] if hashes is not None else {}
    hashes = hashes or {}
    pairs = [
        ("manifest_sha256", "the manifest", golden.document["manifest_sha256"], fixture.manifest_sha256),
        *(
            (f"hashes.{name}", f"the {name}", recorded.get(name), hashes.get(name))
            for name in sorted({*recorded, *hashes})
        ),
    ]
    return tuple(
        Finding(
            kind=FindingClass.STALE,
            path=path,
            rule="stale",
            message=f"{what} changed since this golden was recorded, so there is nothing to compare with. Undo the"
            f" change, or run `golden regen {fixture.name} --reason …`",
            golden=then,
            current=now,
        )
        for path, what, then, now in pairs
        if then != now
    )


def stale_outcome(fixture: Fixture, findings: tuple[Finding, ...]) -> Outcome:
    """Return the outcome of a fixture whose golden is stale."""
    return Outcome(fixture.name, Verdict.STALE, ExitCode.GOLDEN, findings)


def missing_outcome(fixture: Fixture, error: GoldenError) -> Outcome:
    """Return the outcome of a fixture that has no golden."""
    finding = Finding(kind=FindingClass.STRUCTURE, path="golden", rule="golden", message=str(error))
    return Outcome(fixture.name, Verdict.MISSING, ExitCode.GOLDEN, (finding,))


def unreadable_outcome(fixture: Fixture, error: GoldenError) -> Outcome:
    """Return the outcome of a fixture whose golden is there but cannot be believed."""
    kind = FindingClass.SEAL if isinstance(error, SealError) else FindingClass.STRUCTURE
    finding = Finding(kind=kind, path="golden", rule="golden", message=str(error))
    return Outcome(fixture.name, Verdict.ERROR, ExitCode.GOLDEN, (finding,))


def failed_outcome(fixture: Fixture, failure: Failure, seconds: float) -> Outcome:
    """Return the outcome of a fixture whose engine gave no record."""
    finding = Finding(kind=failure.kind, path="engine", rule="engine", message=failure.message)
    return Outcome(fixture.name, Verdict.ERROR, ExitCode.ENGINE, (finding,), seconds=seconds)


def skipped_outcome(fixture: Fixture, reason: str) -> Outcome:
    """Return the outcome of a fixture that does not run here."""
    return Outcome(fixture.name, Verdict.SKIP, ExitCode.NOTHING_SELECTED, reason=reason)


def rules_for_environment(rules: Rules, golden: Mapping[str, Any], record: Mapping[str, Any]) -> tuple[Rules, str]:
    """Return the rules that hold here, and why some do not.

    Times and rates mean something only on the machine they were recorded on; the ratio of two runs side by side means
    something everywhere.
    """
    names = [name for name in rules.asserts_in("performance") if name != f"performance.{PAIRED_RATIO}"]
    if not names or golden.get("environment") == record.get("environment"):
        return rules, ""
    remaining = {name: rule for name, rule in rules.asserted.items() if name not in names}
    reason = f"not judged here, since the environment is not that of the golden: {', '.join(sorted(names))}"
    return dataclasses.replace(rules, asserted=remaining, informed=rules.informed | frozenset(names)), reason


def _with_unusable_figures(
    written: Rules,
    rules: Rules,
    golden: Mapping[str, Any],
    record: Mapping[str, Any],
) -> Comparison:
    """Compare under `rules`; figures that only `written` judges must still be there, finite and above zero.

    A broken measurement is one on every machine.
    """
    comparison = compare_records(golden, record, rules)
    left_out = [name for name in written.asserted if name not in rules.asserted]
    if not left_out:
        return comparison
    usable = dataclasses.replace(
        written,
        asserted=dict.fromkeys(left_out, _ANY_USABLE_FIGURE),
        informed=written.informed | rules.asserted.keys(),
    )
    reference, value = ({**side, "requests": {}, "counters": {}} for side in (golden, record))
    known = {(finding.kind, finding.path) for finding in comparison.findings}
    broken = [
        dataclasses.replace(finding, rule="a usable figure")
        for finding in compare_records(reference, value, usable).findings
        if "performance" in finding.path and (finding.kind, finding.path) not in known
    ]
    return dataclasses.replace(comparison, findings=in_order([*comparison.findings, *broken]))


def _findings_of_repeats(
    golden: Mapping[str, Any],
    repeats: Sequence[tuple[Mapping[str, Any], Aids]],
    rules: Rules,
    first: Comparison,
) -> tuple[Finding, ...]:
    """Return what later runs of the same fixture show and the first did not: an engine that is not deterministic."""
    seen = {(finding.kind, finding.path) for finding in first.findings}
    findings = []
    for number, (record, aids) in enumerate(repeats, start=2):
        judged = {**record, "performance": golden.get("performance", {})}
        for finding in explain_tokens(compare_records(golden, judged, rules).findings, golden, record, aids):
            if (finding.kind, finding.path) not in seen:
                seen.add((finding.kind, finding.path))
                message = f"in run {number} of {len(repeats) + 1}, not in the first: {finding.message}"
                findings.append(dataclasses.replace(finding, message=message))
    return tuple(findings)


def _findings_of_contents(rules: Rules, golden: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return a finding for every assert rule that matches nothing in the golden, so that no run could pass it."""
    held = stored_names(golden)
    message = "the golden holds nothing that this rule could judge; record it again with `golden regen`"
    return tuple(
        Finding(kind=FindingClass.RULES, path=f"assert.{name}", rule=str(rule), message=message)
        for name, rule in rules.asserted.items()
        if not (any(entry.startswith(name[:-1]) for entry in held) if name.endswith(".*") else name in held)
    )


def _relation_findings(
    fixture: Fixture,
    record: Mapping[str, Any],
    partners: Mapping[str, Mapping[str, Any]],
) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    for relation in fixture.relations:
        if relation.other in partners:
            findings.extend(check_relation(relation, record, partners[relation.other], fixture.rules))
        else:
            message = (
                f"{relation.other} gave no record in this run and has no golden, so nothing could be related to it"
            )
            rule = f"{relation.kind} with {relation.other}"
            findings.append(Finding(kind=FindingClass.RELATION, path="requests", rule=rule, message=message))
    return tuple(findings)
