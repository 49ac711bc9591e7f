"""The gate itself: what is asked of a change in which order, and everything that is found written into one draft."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.errors import GoldenInferenceError, UsageError
from framework.gate.change_checks import changed_refusals, lane_refusals
from framework.gate.key import Ground, groups_of, key_of, reached
from framework.gate.lanes import LANES_FILE
from framework.gate.passes import Pass, Passes, read_passes, write_passes
from framework.gate.refusal import Refusal, RefusalClass
from framework.gate.repository import resolve, why_not_exactly
from framework.gate.running import ReachRunner
from framework.gate.scene import Scene, always_run, open_scene
from framework.gate.select import Decision, decide
from framework.gate.verdict import Draft, golden_origin
from framework.golden.store import golden_path, read_golden
from framework.judge import Verdict
from framework.manifest.lint import lint_with
from framework.manifest.linted import Severity
from framework.quarantine.passes import count_passes
from framework.report.terminal import progress_line, retry_line
from framework.run.place import needs_device
from framework.run.rerun import diagnosed
from framework.run.retry import Retries
from framework.run.session import Report, Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from framework.gate.plan import Share
    from framework.manifest.fixture import Fixture
    from framework.run.reach import Reach
    from framework.workspace import Workspace


@dataclass(frozen=True, slots=True)
class GateRequest:
    """What is validated: two revisions, the SHA that somebody vetted, a lane, one share of it, and the passes known.

    `reruns` and `retries` are second looks, as `golden run` takes them.
    """

    base: str
    head: str
    vetted: str | None
    lane: str | None
    share: Share | None
    passes: Path
    reruns: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True)
class _Run:
    """One fixture that ran: why, what its worker had used by then, its devices, and the one that its record names."""

    decision: Decision
    reach: Reach | None
    leased: tuple[str, ...]
    device: str

    def as_json(self, platform: str) -> dict[str, Any]:
        """Return what it adds to the entry of a fixture that ran."""
        where = {"platform": platform, "ran_on": self.device, "leased": list(self.leased)}
        return {**where, "why": self.decision.why}

    def why_elsewhere(self, platform: str) -> str:
        """Return why a pass says nothing of the lane, or an empty string."""
        if not needs_device(platform):
            return ""
        if self.device == "cpu":
            return f"it is for {platform}, and its record says that it ran on the CPU"
        return "" if self.leased else f"it is for {platform}, and it held no lease of a device"


@dataclass(slots=True)
class Gate:
    """Validates one head. `draft` holds what was found, whatever becomes of the rest."""

    workspace: Workspace
    request: GateRequest
    draft: Draft
    say: Callable[[str], None]
    _passes: Passes = field(default_factory=Passes)

    def validate(self) -> None:
        """Ask everything that is asked of a change, and write down what was found.

        Raises:
            GoldenInferenceError: the gate cannot go on; what was found by then stands in the draft.
        """
        scene = self._open()
        if scene is None:
            return
        self.draft.refusals += lane_refusals(scene, self.draft)
        self.draft.refusals += changed_refusals(scene)
        members = self._members(scene)
        if not members:
            return
        ground = scene.ground()
        self.draft.environment = ground.environment
        self.draft.device = _device(ground)
        self._passes = read_passes(self.request.passes)
        if self._passes.problem:
            self.draft.notices.append(self._passes.problem)
        decisions = decide(members, ground, self._passes, always_run(scene))
        self._leave_out(scene, [each for each in decisions if not each.runs])
        self._run(scene, ground, [each for each in decisions if each.runs])

    def _open(self) -> Scene | None:
        """Return the scene, None where the head is not what is here or nothing of it can be judged."""
        root = self.workspace.root
        span = resolve(root, self.request.base, self.request.head)
        self.draft.base, self.draft.head, self.draft.since = span.base, span.head, span.since
        if why := _why_not_vetted(self.request.vetted, span.head) or why_not_exactly(root, span.head):
            self.draft.refusals.append(Refusal(RefusalClass.NOT_THE_HEAD, span.head[:12], why))
            return None
        if not span.contains_base:
            self.draft.notices.append(f"the head does not hold all of the base: they parted at {span.since[:12]}")
        scene = open_scene(self.workspace, span, self.request.lane)
        self.draft.lane = {"name": scene.lane.name, "platform": scene.lane.platform}
        for problem in lint_with(scene.adapter, list(scene.fixtures.values()), root):
            if problem.severity is Severity.ERROR:
                self.draft.refusals.append(Refusal(RefusalClass.MALFORMED, problem.file, str(problem)))
        return scene

    def _members(self, scene: Scene) -> list[Fixture]:
        """Return the fixtures to decide on; none where the lane cannot be run here, or is empty."""
        members, lane = scene.members(), scene.lane
        self.draft.lane_fixtures = [fixture.name for fixture in members]
        why = ""
        if lane.platform not in (here := scene.adapter.platforms()):
            why = f"it needs {lane.platform}, and this machine has {', '.join(here)}; run it where that is"
        elif not members:
            why = f"no fixture is for {lane.platform}, so nothing would gate"
        if why:
            self.draft.refusals.append(Refusal(RefusalClass.NOTHING_SELECTED, f"lane {lane.name}", why))
            return []
        for fixture in members:
            if why := scene.workspace.why_not_fetched(fixture):
                message = f"{why} Or leave its model out of the lane, under `models_left_out` in {LANES_FILE}"
                self.draft.refusals.append(Refusal(RefusalClass.NOT_RUN, fixture.name, message))
        members = [fixture for fixture in members if not scene.workspace.why_not_fetched(fixture)]
        return members if self.request.share is None else self._shared(members, self.request.share)

    def _shared(self, members: Sequence[Fixture], share: Share) -> list[Fixture]:
        self.draft.shard = {"number": share.number, "of": share.of, "fixtures": list(share.fixtures)}
        by_name = {fixture.name: fixture for fixture in members}
        strangers = [name for name in share.fixtures if name not in by_name]
        if strangers:
            raise UsageError(
                f"--shard: {', '.join(strangers)}: not in the lane at this head; make the plan of this head"
            )
        if not share.fixtures:
            self.draft.refusals.append(Refusal(RefusalClass.NOTHING_SELECTED, f"shard {share}", "it holds no fixture"))
        return [by_name[name] for name in share.fixtures]

    def _leave_out(self, scene: Scene, decisions: Iterable[Decision]) -> None:
        for each in decisions:
            assert each.proof is not None, "only a fixture with a pass is left out"
            self.draft.left_out.append(
                {
                    "fixture": each.fixture.name,
                    "platform": scene.lane.platform,
                    "why": each.why,
                    "key": each.key,
                    "passed_at": each.proof.head,
                    "compared": each.proof.compared,
                    "golden": _golden_of(scene, each.fixture),
                }
            )

    def _run(self, scene: Scene, ground: Ground, decisions: Sequence[Decision]) -> None:
        """Run what could not be left out, and keep its passes if the verdict is green."""
        if not decisions:
            return
        runner = ReachRunner(scene.workspace, self.say)
        runner.start()
        platform, quarantine = scene.lane.platform, scene.quarantine
        retries = Retries(self.request.retries, lambda *heard: self.say(retry_line(*heard)))
        session = Session(scene.workspace, scene.adapter, runner, scene.fixtures, platform, quarantine, retries=retries)
        by_model = sorted((each.fixture for each in decisions), key=lambda fixture: (fixture.model, fixture.name))
        try:
            report = session.run(by_model, lambda outcome: self.say(progress_line(outcome)))
            outcomes = diagnosed(session, report.outcomes, self.request.reruns, self.say)
        finally:
            runner.close()
        report = Report(count_passes(scene.workspace.state_folder, outcomes), report.drift)
        if why := why_not_exactly(scene.root, scene.span.head):
            message = f"while it was validated, {why}"
            self.draft.refusals.append(Refusal(RefusalClass.NOT_THE_HEAD, scene.span.head[:12], message))
        names = {each.fixture.name: each for each in decisions}
        runs = {
            name: _Run(each, runner.reaches.get(name), runner.leased.get(name, ()), _device_of(session.record_of(name)))
            for name, each in names.items()
        }
        self._record(scene, ground, report, runs)

    def _record(self, scene: Scene, ground: Ground, report: Report, runs: Mapping[str, _Run]) -> None:
        self.draft.settings_drift = [drift.as_json() for drift in report.drift]
        self.draft.run_code = report.exit_code
        found: list[Pass] = []
        for outcome in sorted(report.outcomes, key=lambda outcome: outcome.fixture):
            run, platform = runs[outcome.fixture], scene.lane.platform
            fixture = run.decision.fixture
            entry = outcome.as_json() | run.as_json(platform)
            why = outcome.reason if outcome.verdict is Verdict.SKIP else ""
            why = run.why_elsewhere(platform) if outcome.verdict is Verdict.PASS else why
            if why:
                self.draft.refusals.append(Refusal(RefusalClass.NOT_RUN, outcome.fixture, why))
            if outcome.verdict is Verdict.PASS and run.reach is not None:
                used = reached(ground, run.reach, str(scene.root))
                groups = groups_of(fixture, ground, used)
                entry["key"] = key_of(groups)
                head, seconds, compared = scene.span.head, outcome.seconds, outcome.compared
                found.append(Pass(outcome.fixture, platform, groups, used, head, seconds, compared))
            self.draft.ran.append(entry | {"golden": _golden_of(scene, fixture)})
        unfinished = [each for each in self.draft.refusals if each.kind is not RefusalClass.UNFINISHED]
        if not unfinished and report.exit_code == 0:
            self._keep(found)

    def _keep(self, found: Iterable[Pass]) -> None:
        """Keep passes for later gates; where they cannot be kept, later ones run more, and this verdict stands."""
        try:
            write_passes(self.request.passes, self._passes.with_more(found))
        except OSError as error:
            why = error.strerror or str(error)
            self.draft.notices.append(f"{self.request.passes}: the passes could not be kept: {why}")


def _why_not_vetted(vetted: str | None, head: str) -> str:
    if vetted is None or vetted.lower() == head:
        return ""
    return f"{vetted!r} was vetted and the head is {head}; vet the head, or validate what was vetted (a whole SHA)"


def _device_of(record: Mapping[str, Any] | None) -> str:
    """Return the device that a record says it was made on, an empty string where it says none."""
    environment = record.get("environment") if record else None
    return str(environment.get("device", "")) if isinstance(environment, dict) else ""


def _golden_of(scene: Scene, fixture: Fixture) -> dict[str, object] | None:
    path = golden_path(scene.workspace.goldens_root, fixture.name, scene.lane.platform)
    try:
        return golden_origin(read_golden(path).document)
    except GoldenInferenceError:
        return None


def _device(ground: Ground) -> str:
    name = ground.environment["GPUs"] if ground.platform != "cpu" else ground.environment.get("CPU: model name", "")
    return f"{ground.platform} ({name})" if name else ground.platform
