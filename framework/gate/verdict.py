"""The verdict of a gate: one document for machines, and what a person reads of it in ten seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from framework.errors import ExitCode, worst_exit_code
from framework.explain.words import counted, cut, on_one_line, some
from framework.gate.refusal import Refusal
from framework.report.neutral import markdown_code

GATE_SCHEMA: Final = "golden.gate/1"
PASSED: Final = "PASS"
EXCUSED: Final = "QUARANTINED"
_SHOWN_HASH: Final = 12
_SHOWN_TROUBLES: Final = 7
_SHOWN_NAMES: Final = 4
_SHOWN_REASONS: Final = 20
_WIDTH: Final = 200


@dataclass(slots=True)
class Draft:
    """What a gate has found so far; whatever happens to it, this is what its verdict says."""

    base: str
    head: str
    vetted: str | None = None
    since: str | None = None
    lane: dict[str, Any] = field(default_factory=dict)
    shard: dict[str, Any] | None = None
    device: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    lane_fixtures: Sequence[str] = ()
    ran: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    settings_drift: list[dict[str, Any]] = field(default_factory=list)
    run_code: ExitCode = ExitCode.GOOD
    seconds: float = 0.0

    def document(self) -> dict[str, Any]:
        """Return the `golden.gate/1` document."""
        code = worst_exit_code([self.run_code, *(refusal.code for refusal in self.refusals)])
        return {
            "schema": GATE_SCHEMA,
            "verdict": "REFUSED" if self.refusals else "FAIL" if code is not ExitCode.GOOD else "PASS",
            "exit_code": int(code),
            "base": self.base,
            "head": self.head,
            "vetted": self.vetted,
            "since": self.since,
            "lane": self.lane,
            "shard": self.shard,
            "device": self.device,
            "environment": dict(self.environment),
            "lane_fixtures": list(self.lane_fixtures),
            "fixtures": self.ran,
            "left_out": self.left_out,
            "refusals": [refusal.as_json() for refusal in self.refusals],
            "notices": self.notices,
            "settings_drift": self.settings_drift,
            "seconds": round(self.seconds, 3),
        }


def golden_origin(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a golden comes from, for the verdict: seal, reasons, date, engine, proof and device."""
    origin = document["provenance"]
    environment = document["environment"]
    names = ("reason", "date", "engine_revision", "accepted")
    proof = origin.get("proof")
    return {
        "seal": document["seal"],
        **{name: origin.get(name) for name in names},
        "runs": proof.get("runs") if isinstance(proof, dict) else None,
        "recorded_on": {name: environment[name] for name in ("device", "cpu", "torch") if name in environment},
    }


def left_out_lines(document: Mapping[str, Any]) -> list[str]:
    """Return why each fixture was left out: a line for every reason, with the names that share it."""
    by_reason: dict[str, list[str]] = {}
    for entry in document["left_out"]:
        by_reason.setdefault(entry["why"], []).append(entry["fixture"])
    return [f"left out, {why}: {', '.join(names)}" for why, names in by_reason.items()]


def summary_lines(document: Mapping[str, Any]) -> list[str]:
    """Return the verdict in a few lines, the worst first."""
    lines = [_headline(document), *_cut_all(_troubles(document)), _what_was_looked_at(document)]
    lines += [cut(f"note: {on_one_line(notice)}", _WIDTH) for notice in document["notices"][:3]]
    return [*lines, _machine_line(document)]


def markdown_summary(document: Mapping[str, Any]) -> str:
    """Return the same for a job's summary page."""
    head, *rest = summary_lines(document)[:-1]
    lines = [f"### GATE {document['verdict']}", "", markdown_code(head), ""]
    lines += [
        f"- {markdown_code(cut(line.strip(), _WIDTH))}" for line in (*rest, *left_out_lines(document)[:_SHOWN_REASONS])
    ]
    return "\n".join(lines) + "\n"


def _headline(document: Mapping[str, Any]) -> str:
    lane = document["lane"].get("name", "?")
    shard = document["shard"]
    part = f", shard {shard['number']} of {shard['of']}" if shard else ""
    on = f" on {document['device']}" if document["device"] else ""
    what = f"{str(document['head'])[:_SHOWN_HASH]} (base {str(document['base'])[:_SHOWN_HASH]})"
    return f"GATE {document['verdict']}: {what}, lane {lane}{part}{on}"


def _troubles(document: Mapping[str, Any]) -> list[str]:
    lines = [
        f"REFUSED {each['class']} {each['subject']}: {each['message']}{_brought_by(each)}"
        for each in document["refusals"]
    ]
    for drift in document["settings_drift"]:
        count = counted(len(drift["inherited_by"]), "fixture")
        lines.append(
            f"DEFAULT CHANGED {drift['setting']}: {drift['golden']} → {drift['current']}, inherited by {count}"
        )
    lines += [_failed(entry) for entry in document["fixtures"] if entry["verdict"] not in (PASSED, EXCUSED)]
    hidden = len(lines) - _SHOWN_TROUBLES
    return lines if hidden <= 0 else [*lines[:_SHOWN_TROUBLES], f"and {hidden} more; the document has them all"]


def _failed(entry: Mapping[str, Any]) -> str:
    findings = entry["findings"]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    first = (
        f"{findings[0]['class']} {findings[0]['path']}: {findings[0]['message']}" if findings else entry.get("reason")
    )
    return f"{entry['verdict']} {entry['fixture']}: {first}{more}"


def _brought_by(refusal: Mapping[str, Any]) -> str:
    return f" [brought in by {refusal['commit'][:_SHOWN_HASH]}]" if refusal["commit"] else ""


def _what_was_looked_at(document: Mapping[str, Any]) -> str:
    ran, left_out = document["fixtures"], document["left_out"]
    compared = sum(entry["compared"] for entry in ran)
    numbers = document["lane"].get("head")
    gating = f"; {numbers['fixtures']} fixtures and {numbers['values']:,} values gate" if numbers else ""
    if not ran and left_out:
        why = f"nothing had to run: all {len(left_out)} unchanged since they passed"
    else:
        good = sum(entry["verdict"] == PASSED for entry in ran)
        why = f"{len(ran)} ran, {good} passed ({compared:,} values compared), {len(left_out)} left out as unchanged"
    return f"{why}{gating}; {document['seconds']:.1f} s"


def _machine_line(document: Mapping[str, Any]) -> str:
    failed = [e["fixture"] for e in document["fixtures"] if e["verdict"] not in (PASSED, EXCUSED)]
    about = f" fixtures={some(failed, _SHOWN_NAMES)}" if failed else ""
    return f"verdict={document['verdict']} exit_code={document['exit_code']} head={document['head']}{about}"


def _cut_all(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {cut(on_one_line(line), _WIDTH)}" for line in lines)
