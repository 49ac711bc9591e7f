"""What the pytest plugin says at the end, from the outcomes that the reports brought.

An outcome travels from a worker to the controller as JSON text: ASCII, so nothing a model can write breaks it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.compare.finding import FindingClass
from framework.errors import ExitCode, GoldenInferenceError, internal_error, worst_exit_code
from framework.explain.drift import Drift, collect_drift
from framework.explain.words import cut
from framework.judge import Outcome, Verdict
from framework.report.json_report import RUN_SCHEMA, run_document
from framework.report.streams import json_text
from framework.report.text import severity
from framework.run.required import Seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from framework.manifest.fixture import Fixture

SHOWN_DRIFTS = 10
SHOWN_FAILURES = 20
_LINE_WIDTH = 200
_QUIET = (Verdict.PASS, Verdict.SKIP, Verdict.QUARANTINED)


@dataclass(frozen=True, slots=True)
class Heard:
    """An outcome as it arrived: the entry of a `golden.run/1` document, and what the document needs beside it.

    `pinned` are the settings that fixtures of the root pin, where a setting drifted; `worker` is who ran it, empty for
    the only process. `platforms` are those that the fixture is for.
    """

    entry: Mapping[str, Any]
    exit_code: ExitCode
    pinned: Mapping[str, Sequence[str]]
    root: str
    worker: str = ""
    platforms: Sequence[str] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict of the entry."""
        return Verdict(self.entry["verdict"])


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A manifest or an item that ended without a verdict: a broken manifest, or a process that died."""

    place: str
    message: str
    exit_code: ExitCode


def outcome_text(outcome: Outcome, fixtures: Mapping[str, Fixture], root: Path) -> str:
    """Return an outcome as the text that travels.

    `fixtures` are all of the root: who pins a setting that drifted is said of those too that did not run.
    """
    has_drift = any(finding.kind is FindingClass.SETTINGS_DRIFT for finding in outcome.findings)
    pinned = {name: sorted(fixture.engine) for name, fixture in fixtures.items()} if has_drift else {}
    entry, code = outcome.as_json(), int(outcome.exit_code)
    platforms = fixtures[outcome.fixture].platforms if outcome.fixture in fixtures else ()
    travelling = {"entry": entry, "exit_code": code, "pinned": pinned, "root": str(root), "platforms": platforms}
    return json_text(travelling)


def read_outcome(text: str, worker: str) -> Heard:
    """Return the outcome that a text tells of."""
    heard = json.loads(text)
    return Heard(
        heard["entry"], ExitCode(heard["exit_code"]), heard["pinned"], heard["root"], worker, heard["platforms"]
    )


def seen(heard: Heard) -> Seen:
    """Return on which platform a fixture ran, and for which it is."""
    ran_on = "" if heard.verdict is Verdict.SKIP else heard.entry.get("platform", "")
    return Seen(heard.entry["fixture"], ran_on, tuple(heard.platforms))


def error_text(error: Exception) -> str:
    """Return why there is no outcome, as the text that travels."""
    if isinstance(error, GoldenInferenceError):
        return json_text({"message": str(error), "exit_code": int(error.exit_code)})
    return json_text({"message": internal_error(error), "exit_code": int(ExitCode.ENGINE)})


def one_for_each_fixture(outcomes: Iterable[Heard]) -> list[Heard]:
    """Return one outcome for each fixture, by name: the worst, where several processes ran it or one ran it again."""
    worst: dict[tuple[str, str], Heard] = {}
    for heard in sorted(outcomes, key=lambda each: (severity(each.verdict), each.worker)):
        worst.setdefault((heard.entry["fixture"], heard.root), heard)
    return [worst[key] for key in sorted(worst)]


def contradictions(outcomes: Iterable[Heard]) -> list[str]:
    """Return a line for each fixture on which the processes that ran it do not agree."""
    verdicts: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for heard in outcomes:
        verdicts[heard.entry["fixture"], heard.root].add((heard.verdict.value, heard.worker))
    lines = []
    for (name, _), found in sorted(verdicts.items()):
        if len({said for said, _ in found}) > 1:
            differ = ", ".join(f"{said} on {who or 'the only process'}" for said, who in sorted(found))
            lines.append(f"{name}: its verdicts differ: {differ}; the worst one counts")
    return lines


def run_report(outcomes: Sequence[Heard], unjudged: Sequence[Unjudged], unmet: str = "") -> dict[str, Any]:
    """Return the `golden.run/1` document; `error` says what has no verdict, and the exit code counts it.

    So it does if a device was required and that was `unmet`.
    """
    ran = [heard.exit_code for heard in outcomes if heard.verdict is not Verdict.SKIP]
    codes = [*ran, *(each.exit_code for each in unjudged)]
    code = worst_exit_code([*codes, *[ExitCode.NOTHING_SELECTED] * bool(unmet or not codes)])
    document = run_document([dict(heard.entry) for heard in outcomes], drift_of(outcomes), code, RUN_SCHEMA)
    if unmet:
        document["unmet"] = unmet
    if unjudged:
        document["error"] = "\n".join(each.message for each in unjudged)
    return document


def drift_of(outcomes: Iterable[Heard]) -> tuple[Drift, ...]:
    """Return every changed default once."""
    every = list(outcomes)
    pinned = {name: settings for heard in every for name, settings in heard.pinned.items()}
    return collect_drift([heard.entry for heard in every], pinned)


def summary_lines(outcomes: Sequence[Heard], unjudged: Sequence[Unjudged]) -> list[str]:
    """Return what is to be said first: changed defaults, then what failed, the worst first; each of them bounded."""
    drifts = drift_of(outcomes)
    lines = [f"DEFAULT CHANGED: {drift.in_words()}." for drift in drifts[:SHOWN_DRIFTS]]
    if len(drifts) > SHOWN_DRIFTS:
        lines.append(f"and {len(drifts) - SHOWN_DRIFTS} more changed defaults; --golden-report FILE has them all")
    worst = [
        *(f"{'NO VERDICT':<11} {each.place}: {each.message.partition(chr(10))[0]}" for each in unjudged),
        *(_line(heard) for heard in sorted(outcomes, key=_gravity) if heard.verdict not in _QUIET),
    ]
    lines.extend(worst[:SHOWN_FAILURES])
    if len(worst) > SHOWN_FAILURES:
        lines.append(f"and {len(worst) - SHOWN_FAILURES} more that did not pass; --golden-report FILE has them all")
    excused = [_quarantine_line(heard.entry) for heard in outcomes if "quarantine" in heard.entry]
    lines.extend(excused[:SHOWN_FAILURES])
    if len(excused) > SHOWN_FAILURES:
        lines.append(f"and {len(excused) - SHOWN_FAILURES} more in quarantine; `golden quarantine` lists them")
    return lines


def count_line(outcomes: Sequence[Heard]) -> str:
    """Return how much was judged, and how it went."""
    compared = sum(heard.entry["compared"] for heard in outcomes)
    seconds = sum(heard.entry["seconds"] for heard in outcomes)
    counts = Counter(heard.verdict for heard in outcomes)
    said = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    words = "fixture" if len(outcomes) == 1 else "fixtures"
    return f"{len(outcomes)} {words}, {compared} values compared in {seconds:.1f} s" + (f": {said}" if said else "")


def _gravity(heard: Heard) -> tuple[bool, int, str]:
    """Sort changed defaults first, since they explain what follows, then by verdict and name."""
    has_drift = FindingClass.SETTINGS_DRIFT.value in _classes(heard)
    return not has_drift, severity(heard.verdict), heard.entry["fixture"]


def _line(heard: Heard) -> str:
    entry, classes = heard.entry, _classes(heard)
    platform = f" [{entry['platform']}]" if entry.get("platform") else ""
    found = ", ".join(f"{count} {name}" for name, count in classes.items())
    first = entry["findings"][0] if entry["findings"] else {}
    message = str(first.get("message", "")).partition("\n")[0]
    return cut(f"{heard.verdict.value:<11} {entry['fixture']}{platform}: {found}; {message}", _LINE_WIDTH)


def _quarantine_line(entry: Mapping[str, Any]) -> str:
    note = entry["quarantine"]
    why_not = f"; {note['why_not']}" if note["why_not"] else ""
    return (
        f"IN QUARANTINE: {entry['fixture']}, which gave {entry['verdict']}: for {', '.join(note['class'])} until"
        f" {note['expires']} ({note['days_left']} days left); owner {note['owner']}, issue {note['issue']}{why_not}"
    )


def _classes(heard: Heard) -> dict[str, int]:
    """Return how many findings of each class there are, in their order, changed defaults first."""
    return dict(Counter(finding["class"] for finding in heard.entry["findings"]))
