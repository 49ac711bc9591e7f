"""One judged run of many fixtures: the engine's side, and the order in which verdicts fall.

Goldens are checked first, so a fixture without a golden that can be believed costs no engine time. A fixture is judged
as soon as it and every selected fixture it is related to have run, in the caller's thread, so what is said of it is the
same however many runners there are.
"""

from __future__ import annotations

import dataclasses
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from framework.clock import today
from framework.errors import ExitCode, GoldenError, MissingGoldenError, worst_exit_code
from framework.explain.divergence import Aids
from framework.explain.drift import Drift, collect_drift
from framework.golden.store import Golden, read_golden_of
from framework.judge import (
    Outcome,
    Verdict,
    failed_outcome,
    judge,
    missing_outcome,
    skipped_outcome,
    stale_outcome,
    staleness,
    unreadable_outcome,
)
from framework.quarantine.entry import NO_QUARANTINE, Quarantine
from framework.quarantine.excuse import under_quarantine
from framework.run.adapter import DecodesTokens
from framework.run.durations import expected_seconds
from framework.run.lanes import run_in_lanes
from framework.run.measure import PAIRED_RATIO, Measurement, measure
from framework.run.place import Affinity, Work, needs_device
from framework.run.required import Seen
from framework.run.retry import NO_RETRIES, Retries
from framework.run.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter, SettingDescription
    from framework.run.durations import Durations
    from framework.run.task import Runner
    from framework.workspace import Workspace

PAIRING_RELATION = "async_equals_legacy"


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of every selected fixture, in the order of their names, and what drifted.

    `unmet` says why the run does not count where a device is required; it is empty elsewhere.
    """

    outcomes: tuple[Outcome, ...]
    drift: tuple[Drift, ...]
    unmet: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that the outcomes add up to: skipped fixtures count only if all were."""
        ran = [outcome.exit_code for outcome in self.outcomes if outcome.verdict is not Verdict.SKIP]
        return worst_exit_code(ran + [ExitCode.NOTHING_SELECTED] * bool(self.unmet or not ran))


@dataclass(slots=True)
class Session:
    """Runs and judges fixtures with one engine on one machine.

    `fixtures` holds every fixture of the workspace by name, since a partner need not be selected. `platform` is the one
    asked for, or None for the best one each fixture has here. `quarantine` excuses what it declares, on the day
    `today`. `retries` says how often an engine that gave no record may be tried again. With `more_runners` fixtures run
    beside each other, those that need one of the `devices` on no more runners than these; `durations` order them.
    """

    workspace: Workspace
    adapter: Adapter
    runner: Runner
    fixtures: Mapping[str, Fixture]
    platform: str | None = None
    quarantine: Quarantine = NO_QUARANTINE
    today: date = field(default_factory=today)
    retries: Retries = NO_RETRIES
    more_runners: Sequence[Runner] = ()
    devices: int = 0
    durations: Durations = field(default_factory=dict)
    _records: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _hashes: dict[Path, Mapping[str, str]] = field(default_factory=dict)
    _tried: set[str] = field(default_factory=set)
    _ahead: dict[str, Measurement] = field(default_factory=dict)
    _descriptions: Mapping[str, SettingDescription] | None = None

    def run(self, selected: Sequence[Fixture], announce: Callable[[Outcome], None]) -> Report:
        """Run the selected fixtures and judge each; `announce` hears every outcome as soon as it stands."""
        outcomes: dict[str, Outcome] = {}
        waiting: dict[str, tuple[Fixture, Golden, Measurement]] = {}
        to_run = {fixture.name: fixture for fixture in selected}
        goldens: dict[str, Golden] = {}

        def settle(outcome: Outcome) -> None:
            excused = self.under_quarantine(outcome)
            outcomes[outcome.fixture] = excused
            announce(excused)

        for fixture in selected:
            prepared = self.prepare(fixture)
            if isinstance(prepared, Outcome):
                settle(prepared)
                del to_run[fixture.name]
            else:
                goldens[fixture.name] = prepared
        works = [self.work_of(fixture) for fixture in to_run.values()]
        with closing(self._measured(works)) as measured:
            for fixture, measurement in measured:
                self._keep(fixture, measurement)
                del to_run[fixture.name]
                waiting[fixture.name] = (fixture, goldens.pop(fixture.name), measurement)
                for name, ready in list(waiting.items()):
                    if not any(relation.other in to_run for relation in ready[0].relations):
                        del waiting[name]
                        settle(self.judge(*ready))
        ordered = tuple(outcomes[fixture.name] for fixture in selected)
        return report_on(ordered, self.fixtures.values())

    def _measured(self, works: Sequence[Work]) -> Generator[tuple[Fixture, Measurement]]:
        """Yield what each fixture gave, in the order in which they end; its record is not kept yet."""

        def run_one(runner: Runner, work: Work) -> Measurement:
            return self._measure_on(runner, self.fixtures[work.name])

        runners = (self.runner, *self.more_runners)
        with closing(run_in_lanes(works, runners, run_one, devices=self.devices)) as ended:
            for work, measurement in ended:
                yield self.fixtures[work.name], measurement

    def work_of(self, fixture: Fixture) -> Work:
        """Return what is to be known of a fixture in order to place it.

        With one lane there is nothing to gain from times, and the order is the same in every run without them.
        """
        platform = self.platform_of(fixture)
        assert platform is not None, "only a fixture that has a platform here is run"
        durations = self.durations.get(platform, {})
        return Work(
            name=fixture.name,
            affinity=Affinity(platform, fixture.model),
            seconds=expected_seconds(durations, fixture.name) if self.more_runners else 0.0,
            needs_device=needs_device(platform),
            is_timed=bool(fixture.rules.asserts_in("performance")),
        )

    def seen(self, outcome: Outcome) -> Seen:
        """Return on which platform an outcome's fixture ran, and for which it is."""
        ran_on = "" if outcome.verdict is Verdict.SKIP else outcome.platform
        return Seen(outcome.fixture, ran_on, self.fixtures[outcome.fixture].platforms)

    def durations_of(self, outcomes: Iterable[Outcome]) -> dict[tuple[str, str], float]:
        """Return the seconds, by platform and name, of the outcomes that an engine gave a record for."""
        ran = [outcome for outcome in outcomes if outcome.fixture in self._records]
        return {(outcome.platform, outcome.fixture): outcome.seconds for outcome in ran}

    def run_one(self, fixture: Fixture, selected: Collection[str]) -> Outcome:
        """Run one fixture and judge it at once, with the verdict that it would get if all `selected` ran together.

        Selected fixtures that it is related to are run before it, unless they have run; what they gave is kept for
        their own turn. So the verdict depends neither on the order nor on which process runs the others.
        """
        prepared = self.prepare(fixture)
        if isinstance(prepared, Outcome):
            return self.under_quarantine(prepared)
        for name in sorted({relation.other for relation in fixture.relations}.intersection(selected) - {fixture.name}):
            self._run_ahead(name)
        self._tried.add(fixture.name)
        measurement = self._ahead.pop(fixture.name, None) or self.measure(fixture)
        return self.under_quarantine(self.judge(fixture, prepared, measurement))

    def _run_ahead(self, name: str) -> None:
        """Run a fixture before its turn, if it is one that a run would measure."""
        fixture = self.fixtures.get(name)
        if fixture is not None and name not in self._tried and isinstance(self.prepare(fixture), Golden):
            self._tried.add(name)
            self._ahead[name] = self.measure(fixture)

    def under_quarantine(self, outcome: Outcome) -> Outcome:
        """Return an outcome as the fixture's entry in the quarantine leaves it, if it has one; with its platform."""
        platform = self.platform_of(self.fixtures[outcome.fixture])
        placed = dataclasses.replace(outcome, platform=platform or "")
        return under_quarantine(placed, self.quarantine, platform, self.today)

    def prepare(self, fixture: Fixture) -> Golden | Outcome:
        """Return the golden to judge a fixture with, or the outcome where there is nothing to judge."""
        if why := self.why_skipped(fixture):
            return skipped_outcome(fixture, why)
        platform = self.platform_of(fixture)
        assert platform is not None, "without a platform it is skipped"
        return readable_golden(self.workspace, fixture, platform, self.hashes(fixture))

    def measure(self, fixture: Fixture, *, keep: bool = True) -> Measurement:
        """Run the fixture, in turn with its partner where a ratio of the two is judged.

        Its record is kept for fixtures that are related to it, unless this run is not the one that counts.
        """
        measurement = self._measure_on(self.runner, fixture)
        if keep:
            self._keep(fixture, measurement)
        return measurement

    def _keep(self, fixture: Fixture, measurement: Measurement) -> None:
        if measurement.record is not None:
            self._records[fixture.name] = measurement.record

    def _measure_on(self, runner: Runner, fixture: Fixture) -> Measurement:
        """Run a fixture, as often as it needs, on a runner; several threads may do so, each on its own."""
        platform = self.platform_of(fixture)
        assert platform is not None, "only a fixture that has a platform here is run"
        partner = self.fixtures.get(partner_of(fixture) or "")
        tasks = [Task(each, self.workspace.model_path(each), platform) for each in (fixture, partner) if each]
        once = partial(measure, runner, tasks[0], tasks[1] if partner else None)
        try:
            return self.retries.measured(fixture.name, once)
        finally:
            runner.rest()

    def judge(self, fixture: Fixture, golden: Golden, measurement: Measurement) -> Outcome:
        """Judge what a run gave."""
        if measurement.failure is not None:
            failed = failed_outcome(fixture, measurement.failure, measurement.seconds)
            return dataclasses.replace(failed, attempts=measurement.attempts)
        partners = self._partners(fixture)
        aids = self._aids(fixture, measurement)
        outcome = judge(fixture, golden, measurement.records, self.descriptions(), partners, aids=aids)
        return dataclasses.replace(outcome, seconds=measurement.seconds, attempts=measurement.attempts)

    def record_of(self, fixture_name: str) -> Mapping[str, Any] | None:
        """Return the record that a fixture gave in this session, if it ran."""
        return self._records.get(fixture_name)

    def descriptions(self) -> Mapping[str, SettingDescription]:
        """Return the engine's settings, asked for once."""
        if self._descriptions is None:
            self._descriptions = self.adapter.describe()
        return self._descriptions

    def hashes(self, fixture: Fixture) -> Mapping[str, str]:
        """Return the hashes of a fixture's model, computed once a model."""
        path = self.workspace.model_path(fixture)
        if path not in self._hashes:
            self._hashes[path] = self.adapter.model_hashes(path)
        return self._hashes[path]

    def platform_of(self, fixture: Fixture) -> str | None:
        """Return the platform a fixture runs on here: the one asked for, else the machine's best that it names."""
        wanted = self.adapter.platforms() if self.platform is None else (self.platform,)
        here = self.adapter.platforms()
        return next((name for name in wanted if name in here and name in fixture.platforms), None)

    def why_skipped(self, fixture: Fixture) -> str:
        """Return why a fixture cannot run here, or an empty string.

        It is for other platforms, or a model has to be fetched first: its own, or that of the one it is timed against.
        """
        if self.platform_of(fixture) is None:
            asked = f" and {self.platform} was asked for" if self.platform else ""
            here, its_own = ", ".join(self.adapter.platforms()), ", ".join(fixture.platforms)
            return f"it is for {its_own}; this machine has {here}{asked}"
        needed = (fixture, self.fixtures.get(partner_of(fixture) or ""))
        return next((why for each in needed if each and (why := self.workspace.why_not_fetched(each))), "")

    def _aids(self, fixture: Fixture, measurement: Measurement) -> tuple[Aids, ...]:
        """Return what helps to explain each run of a fixture."""
        decode = None
        if isinstance(self.adapter, DecodesTokens):
            decode = partial(self.adapter.decode, self.workspace.model_path(fixture))
        schedules = measurement.schedules or ((),) * len(measurement.records)
        return tuple(Aids(decode, schedule) for schedule in schedules)

    def _partners(self, fixture: Fixture) -> Mapping[str, Mapping[str, Any]]:
        partners: dict[str, Mapping[str, Any]] = {}
        for name in {relation.other for relation in fixture.relations}:
            if name in self._records:
                partners[name] = self._records[name]
            elif (document := self._partner_golden(name)) is not None:
                partners[name] = document
        return partners

    def _partner_golden(self, name: str) -> Mapping[str, Any] | None:
        other = self.fixtures.get(name)
        platform = self.platform_of(other) if other else None
        if other is None or platform is None:
            return None
        hashes = None if self.workspace.why_not_fetched(other) else self.hashes(other)
        prepared = readable_golden(self.workspace, other, platform, hashes)
        return prepared.document if isinstance(prepared, Golden) else None


def report_on(outcomes: Sequence[Outcome], fixtures: Iterable[Fixture]) -> Report:
    """Return the report that outcomes add up to, with every changed default said once.

    `fixtures` are all of the workspace: who pins a setting is said of those too that were not selected.
    """
    entries = [outcome.as_json() for outcome in outcomes]
    return Report(tuple(outcomes), collect_drift(entries, {fixture.name: fixture.engine for fixture in fixtures}))


def partner_of(fixture: Fixture) -> str | None:
    """Return the fixture that this one is timed against, if it asserts the ratio of the two."""
    if f"performance.{PAIRED_RATIO}" not in fixture.rules.asserted:
        return None
    return next((relation.other for relation in fixture.relations if relation.kind == PAIRING_RELATION), None)


def readable_golden(
    workspace: Workspace,
    fixture: Fixture,
    platform: str,
    hashes: Mapping[str, str] | None,
) -> Golden | Outcome:
    """Return a fixture's golden if it is there, sealed and not stale; else the outcome that says what is wrong.

    `hashes` are those of its model; None if it is not here, and then only the manifest can make the golden stale.
    """
    try:
        golden = read_golden_of(workspace.goldens_root, fixture.name, platform)
        _belongs_to(golden, fixture.name, platform)
    except MissingGoldenError as error:
        return missing_outcome(fixture, error)
    except GoldenError as error:
        return unreadable_outcome(fixture, error)
    stale = staleness(fixture, golden, hashes)
    return stale_outcome(fixture, stale) if stale else golden


def _belongs_to(golden: Golden, fixture_name: str, platform: str) -> None:
    """Refuse a golden that was copied or renamed to where another belongs."""
    own = (golden.document["fixture"], golden.document["platform"])
    if own != (fixture_name, platform):
        raise GoldenError(
            f"{golden.path}: golden unreadable: it was recorded for {own[0]} on {own[1]}, not for {fixture_name} on"
            f" {platform}; put it back where it belongs, and record this one with `golden regen`",
        )
