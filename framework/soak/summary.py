"""What the runs of a fixture show together: a pure function of them."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from framework.errors import ExitCode, worst_exit_code
from framework.judge import Outcome, Verdict
from framework.soak.soak_run import SoakRun

SOAK_SCHEMA: Final = "golden.soak/1"
AS_WRITTEN: Final = "as written"


@dataclass(frozen=True, slots=True)
class FixtureSoak:
    """The runs of one fixture, `wanted` of them when it is complete.

    `rules` are the assert rules in words, by name; `environment` is the one its runs were made in. `refused` is set
    where nothing was run because there is no golden to judge by, or no platform here. `is_one_run` says that only one
    run was asked for, so that nothing can be said of variety. `engine` is the revision that was run.
    """

    fixture: str
    platform: str
    wanted: int
    runs: tuple[SoakRun, ...]
    rules: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] | None = None
    refused: Outcome | None = None
    is_one_run: bool = False
    engine: str = ""

    @classmethod
    def refused_by(cls, outcome: Outcome) -> FixtureSoak:
        """Return the soak of a fixture that could not be run, with the outcome that says why."""
        return cls(outcome.fixture, "", 0, (), refused=outcome)

    @property
    def failed_runs(self) -> tuple[SoakRun, ...]:
        """The runs that found something."""
        return tuple(run for run in self.runs if run.has_failed)

    @property
    def why_vacuous(self) -> str:
        """Why these runs would prove nothing even if none failed; empty if they do prove something."""
        varied = [run for run in self.runs if run.is_varied]
        if self.is_one_run:
            return "" if self.compared else "the run compared no value, so it could not fail"
        if len(self.runs) < self.wanted and not self.failed_runs:
            return f"only {len(self.runs)} of {self.wanted} runs were done"
        if not varied:
            return "no run was varied, so nothing but repetition was tested; give more `--runs`"
        if not any(run.compared for run in varied):
            return "the varied runs compared no value: the manifest asserts no per-request field"
        return ""

    @property
    def exit_code(self) -> ExitCode:
        """What the soak of this fixture ends with."""
        if self.refused is not None:
            return self.refused.exit_code
        codes = [run.exit_code for run in self.failed_runs]
        return worst_exit_code([*codes, ExitCode.REGRESSION] if self.why_vacuous else codes)

    @property
    def verdict(self) -> Verdict:
        """The verdict in a word."""
        if self.refused is not None:
            return self.refused.verdict
        words = {ExitCode.GOOD: Verdict.PASS, ExitCode.REGRESSION: Verdict.FAIL}
        return words.get(self.exit_code, Verdict.ERROR)

    @property
    def compared(self) -> int:
        """How many values were compared in all runs."""
        return sum(run.compared for run in self.runs)

    @property
    def kinds(self) -> dict[str, int]:
        """How many runs changed what; a run that changes several things counts for each."""
        counts = Counter(kind for run in self.runs for kind in run.kinds or (AS_WRITTEN,))
        return {kind: counts[kind] for kind in sorted(counts, key=lambda kind: (kind != AS_WRITTEN, kind))}

    @property
    def median_seconds(self) -> float | None:
        """The median time of a run; for information."""
        return statistics.median(run.seconds for run in self.runs) if self.runs else None

    @property
    def deviations(self) -> dict[str, float]:
        """The largest absolute difference from the golden, per field that is judged within a tolerance."""
        names = sorted({name for run in self.runs for name in run.deviations})
        return {name: max(run.deviations.get(name, 0.0) for run in self.runs) for name in names}

    def as_json(self) -> dict[str, Any]:
        """Return the soak as an entry of the `golden.soak/1` document."""
        entry: dict[str, Any] = {
            "fixture": self.fixture,
            "platform": self.platform,
            "verdict": self.verdict.value,
            "runs": len(self.runs),
            "wanted": self.wanted,
            "variations": self.kinds,
            "compared": self.compared,
            "median_seconds": self.median_seconds,
            "deviations": {
                name: {"largest": largest, "rule": self.rules.get(name)} for name, largest in self.deviations.items()
            },
            "failed_runs": [run.as_json() | {"again": self.command_for(run)} for run in self.failed_runs],
            "findings": [finding.as_json() for finding in self.refused.findings] if self.refused else [],
            "engine": self.engine,
            "environment": self.environment,
        }
        reason = self.refused.reason if self.refused else self.why_vacuous
        return entry | {"reason": reason} if reason else entry

    def command_for(self, run: SoakRun) -> str:
        """Return the command that does a run again."""
        return f"golden soak {self.fixture} --only {run.number}"


def amount(soaks: Sequence[FixtureSoak]) -> str:
    """Return how much was run and compared, in words."""
    runs, fixtures = sum(len(soak.runs) for soak in soaks), sum(bool(soak.runs) for soak in soaks)
    compared = sum(soak.compared for soak in soaks)
    return f"{counted(runs, 'run')} of {counted(fixtures, 'fixture')}, {counted(compared, 'value')} compared"


def counted(count: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def soak_exit_code(soaks: Sequence[FixtureSoak]) -> ExitCode:
    """Return what a soak of several fixtures ends with; those skipped count only if all were."""
    codes = [soak.exit_code for soak in soaks if soak.verdict is not Verdict.SKIP]
    return worst_exit_code(codes) if codes else ExitCode.NOTHING_SELECTED


def soak_document(soaks: Sequence[FixtureSoak]) -> dict[str, Any]:
    """Return the one document that a machine reads."""
    code = soak_exit_code(soaks)
    return {
        "schema": SOAK_SCHEMA,
        "verdict": "PASS" if code is ExitCode.GOOD else "FAIL",
        "exit_code": int(code),
        "fixtures": [soak.as_json() for soak in soaks],
    }
