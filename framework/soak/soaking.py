"""Runs a fixture over and over on one warm engine and judges every run against its golden."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from framework.clock import today
from framework.errors import ExitCode
from framework.golden.store import Golden
from framework.judge import Outcome
from framework.regenerate.evidence import Spread, per_request_rules, rules_without
from framework.run.measure import Measurement
from framework.run.task import Result, Task
from framework.soak.plan import PLAN_VERSION, plan_for
from framework.soak.soak_run import KEPT_FINDINGS, SoakRun
from framework.soak.state import SoakState, open_state, state_path
from framework.soak.summary import FixtureSoak

if TYPE_CHECKING:
    from framework.manifest.fixture import Fixture
    from framework.run.session import Session
    from framework.soak.plan import PlannedRun

ENOUGH_FAILED_RUNS: Final = 10
"""After so many failed runs a fixture's soak ends: more of them would only say the same more often."""


@dataclass(frozen=True, slots=True)
class Length:
    """How often a fixture is run: `runs` times, `slow_runs` times if a run takes more than `slow_after_s` seconds."""

    runs: int = 200
    slow_runs: int = 20
    slow_after_s: float = 2.0

    def wanted(self, runs: Mapping[int, SoakRun]) -> int:
        """Return how many runs there should be, so far as the first ones show: their median decides, once."""
        sample = min(self.runs, self.slow_runs)
        seconds = [runs[number].seconds for number in range(sample) if number in runs]
        if len(seconds) < sample or statistics.median(seconds) > self.slow_after_s:
            return sample
        return self.runs


@dataclass(frozen=True, slots=True)
class Soaker:
    """Soaks fixtures one after another with the engine of a session.

    `announce` hears of every run as soon as it is kept: the soak so far.
    """

    session: Session
    length: Length
    announce: Callable[[FixtureSoak], None]

    def soak(self, fixture: Fixture, *, fresh: bool) -> FixtureSoak:
        """Do the runs of a fixture that are missing and return what all of them show; `fresh` starts anew."""
        golden = self.session.prepare(fixture)
        if isinstance(golden, Outcome):
            return FixtureSoak.refused_by(golden)
        plan = plan_for(fixture, self.session.adapter)
        platform = golden.document["platform"]
        path = state_path(self.session.workspace.state_folder, fixture.name, platform)
        state = open_state(path, self._key(fixture, golden), fresh=fresh)
        while (number := self._next(state)) is not None:
            planned = plan.run(number)
            run, environment = self._run(fixture, golden, planned, kept=KEPT_FINDINGS)
            state.add(run, environment)
            self.announce(self._so_far(fixture, platform, state))
        return self._so_far(fixture, platform, state)

    def repeat(self, fixture: Fixture, number: int) -> FixtureSoak:
        """Do one run again, with all of its findings; nothing is kept."""
        golden = self.session.prepare(fixture)
        if isinstance(golden, Outcome):
            return FixtureSoak.refused_by(golden)
        planned = plan_for(fixture, self.session.adapter).run(number)
        run, environment = self._run(fixture, golden, planned, kept=None)
        platform = golden.document["platform"]
        return FixtureSoak(
            fixture.name,
            platform,
            1,
            (run,),
            _tolerances(fixture),
            environment,
            is_one_run=True,
            engine=self.session.adapter.revision(),
        )

    def _key(self, fixture: Fixture, golden: Golden) -> dict[str, str]:
        """Return what the runs are runs of: when any of it changes, they say nothing any more."""
        return {
            "adapter": self.session.workspace.adapter_spec,
            "engine": self.session.adapter.revision(),
            "golden": golden.document["seal"],
            "manifest": fixture.manifest_sha256,
            "plan": str(PLAN_VERSION),
        }

    def _next(self, state: SoakState) -> int | None:
        if sum(run.has_failed for run in state.runs.values()) >= ENOUGH_FAILED_RUNS:
            return None
        wanted = self.length.wanted(state.runs)
        return next((number for number in range(wanted) if number not in state.runs), None)

    def _so_far(self, fixture: Fixture, platform: str, state: SoakState) -> FixtureSoak:
        wanted = self.length.wanted(state.runs)
        runs = tuple(run for number, run in sorted(state.runs.items()) if number < wanted)
        return FixtureSoak(
            fixture.name,
            platform,
            wanted,
            runs,
            _tolerances(fixture),
            state.environment,
            engine=state.key["engine"],
        )

    def _run(
        self, fixture: Fixture, golden: Golden, planned: PlannedRun, *, kept: int | None
    ) -> tuple[SoakRun, Mapping[str, Any] | None]:
        """Do one run and judge it; return it with the environment its record names."""
        model_path = self.session.workspace.model_path(fixture)
        task = planned.variation.of(Task(fixture, model_path, golden.document["platform"]))
        runner = self.session.runner
        failure = runner.prepare(task)
        started = time.monotonic()
        result = Result(None, failure) if failure else runner.run(task, time_limit_s=fixture.time_limit_s)
        seconds = round(time.monotonic() - started, 4)
        runner.rest()
        records = () if result.record is None else (result.record,)
        judged = judged_as(fixture, planned)
        outcome = self.session.judge(judged, golden, Measurement(records, result.failure, seconds))
        spread = Spread()
        if result.record is not None:
            spread.add_asserted(golden.document, result.record, judged.rules)
        run = SoakRun(
            number=planned.number,
            kinds=planned.kinds,
            exit_code=outcome.exit_code if outcome.findings else ExitCode.GOOD,
            compared=outcome.compared,
            seconds=seconds,
            date=today().isoformat(),
            overrides=planned.variation.overrides,
            order=planned.variation.order,
            arrivals=planned.variation.arrivals,
            deviations=spread.as_json(),
            findings=tuple(finding.as_json() for finding in outcome.findings[:kept]),
            finding_count=len(outcome.findings),
        )
        return run, None if result.record is None else result.record["environment"]


def judged_as(fixture: Fixture, planned: PlannedRun) -> Fixture:
    """Return a fixture with what a run of it can be judged by.

    Figures of performance mean nothing in a soak. A varied run is scheduled otherwise, so its counters, and the
    witnesses that read them, rightly differ; each request, and its relation to those of other fixtures, does not.
    """
    if planned.is_varied:
        return dataclasses.replace(fixture, rules=per_request_rules(fixture.rules), witnesses=())
    return dataclasses.replace(fixture, rules=rules_without(fixture.rules, ("performance",)))


def _tolerances(fixture: Fixture) -> dict[str, str]:
    return {name: str(rule) for name, rule in fixture.rules.asserted.items()}
