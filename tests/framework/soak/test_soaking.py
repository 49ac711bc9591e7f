from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from framework.errors import ExitCode
from framework.judge import Verdict
from framework.manifest.fixture import Fixture
from framework.manifest.load import load_all
from framework.run.in_process import InProcessRunner
from framework.run.session import Session
from framework.soak.soak_run import SoakRun
from framework.soak.soaking import ENOUGH_FAILED_RUNS, Length, Soaker
from framework.soak.summary import FixtureSoak, soak_document, soak_exit_code
from framework.workspace import Workspace
from tests.framework.toy_adapter import ToyEngine
from tests.framework.toy_root import ADAPTER, ToyRoot, make_toy_root

Fault = Callable[[dict[str, Any], Fixture, Mapping[str, Any]], None]


class Flaky(ToyEngine):
    """A toy whose records a fault may spoil, seeing what it was asked to run; it counts its runs."""

    def __init__(self, fault: Fault | None = None) -> None:
        super().__init__()
        self._fault = fault
        self.count = 0

    def run(self, fixture: Fixture, **named: Any) -> dict[str, Any]:
        self.count += 1
        record = super().run(fixture, **named)
        if self._fault is not None:
            self._fault(record, fixture, named["overrides"])
        return record


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("soak"))
    root.write("a", prompts="one, two, three")
    root.write("counters", workload="", prompts="x")
    path = root.path / "fixtures" / "counters.yaml"
    text = path.read_text()
    for name in ("generated_tokens", "generated_text", "finish_reason"):
        text = text.replace(f"  {name}: exact\n", "")
    text = text.replace("  generated_logprobs: {atol: 1.0e-5, rtol: 0.0}\n", "")
    path.write_text(
        text.replace(
            "inform: [performance]",
            "inform: [performance, generated_tokens, generated_text, finish_reason, generated_logprobs]",
        )
    )
    figures = "  performance: {tokens_per_second: {ratio: [0.9, 1.1]}}"
    root.write("timed", rules=figures)
    timed = root.path / "fixtures" / "timed.yaml"
    timed.write_text(timed.read_text().replace("inform: [performance]\n", ""))
    root.regen()
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


def soaker(toy: ToyRoot, engine: ToyEngine, *, runs: int = 40, announce: Callable[[FixtureSoak], None]) -> Soaker:
    workspace = Workspace(toy.path, ADAPTER)
    fixtures = {fixture.name: fixture for fixture in load_all(workspace.fixtures_root).fixtures}
    session = Session(workspace, engine, InProcessRunner(engine), fixtures)
    return Soaker(session, Length(runs=runs), announce)


def soak(
    toy: ToyRoot,
    engine: ToyEngine,
    *,
    name: str = "a",
    runs: int = 40,
    fresh: bool = False,
    announce: Callable[[FixtureSoak], None] = lambda so_far: None,
) -> FixtureSoak:
    made = soaker(toy, engine, runs=runs, announce=announce)
    return made.soak(made.session.fixtures[name], fresh=fresh)


def test_a_faithful_engine_raises_no_alarm(toy: ToyRoot) -> None:
    found = soak(toy, Flaky())
    assert (found.verdict, found.exit_code, len(found.runs), found.why_vacuous) == (Verdict.PASS, ExitCode.GOOD, 40, "")
    assert found.kinds["as written"] == 10
    assert sum(found.kinds[f"num_threads {count}"] for count in (1, 2, 3, 4)) == 30
    assert found.compared == 30 * 3 * 14 + 10 * (3 * 14 + 2)
    assert found.deviations == {"generated_logprobs": 0.0}


def wrong_on_three_threads(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
    if overrides.get("num_threads") == 3:
        record["requests"]["1"]["generated_tokens"][2] += 1


def wrong_when_first_comes_last(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
    if fixture.workload.prompts[-1].text == "one":
        record["requests"]["2"]["generated_logprobs"][0] += 1.0


def wrong_when_late(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
    for index, prompt in enumerate(fixture.workload.prompts):
        if prompt.text == "two" and (prompt.arrival_step or 0) > 5:
            record["requests"][str(index)]["generated_text"] += "!"


def wrong_in_legacy(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
    if record["settings"]["async_sched_mode"]["value"] == "legacy":
        record["requests"]["0"]["finish_reason"] = "stop"


def loses_a_request(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
    if overrides.get("num_threads") == 2:
        del record["requests"]["1"]


@pytest.mark.parametrize(
    ("fault", "is_hit", "path"),
    [
        (wrong_on_three_threads, lambda run: run.overrides.get("num_threads") == 3, ".generated_tokens[2]"),
        (wrong_when_first_comes_last, lambda run: (run.order or (2,))[-1] == 0, 'requests["0"].generated_logprobs[0]'),
        (wrong_when_late, lambda run: (run.arrivals or (0, 0, 0))[1] > 5, 'requests["1"].generated_text'),
        (wrong_in_legacy, lambda run: "async_sched_mode legacy" in run.kinds, ".finish_reason"),
        (loses_a_request, lambda run: run.overrides.get("num_threads") == 2, "requests["),
    ],
)
def test_a_fault_in_one_way_of_running_is_caught_there_and_nowhere_else(
    toy: ToyRoot, fault: Fault, is_hit: Callable[[SoakRun], bool], path: str
) -> None:
    found = soak(toy, Flaky(fault))
    assert (found.verdict, found.exit_code) == (Verdict.FAIL, ExitCode.REGRESSION)
    assert found.failed_runs == tuple(run for run in found.runs if is_hit(run))
    for run in found.failed_runs:
        assert path in run.findings[0]["path"]
    first = found.failed_runs[0]
    again = soaker(toy, Flaky(fault), announce=lambda so_far: None)
    one = again.repeat(again.session.fixtures["a"], first.number)
    assert one.runs[0] == dataclasses.replace(first, seconds=one.runs[0].seconds)
    assert one.exit_code is ExitCode.REGRESSION
    assert found.command_for(first) == f"golden soak a --only {first.number}"


def test_counters_are_judged_in_the_runs_as_written(toy: ToyRoot) -> None:
    def miscounts(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
        record["counters"]["step_count"] += 1

    found = soak(toy, Flaky(miscounts), runs=12)
    assert [run.number for run in found.failed_runs] == [0, 4, 8]
    assert found.failed_runs[0].findings[0]["class"] == "COUNTER"


def test_witnesses_are_asked_for_in_the_runs_as_written(toy: ToyRoot) -> None:
    def idles(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
        record["counters"]["step_count"] = 0

    found = soak(toy, Flaky(idles), runs=8)
    assert [finding["class"] for finding in found.failed_runs[0].findings] == ["COUNTER", "WITNESS"]


def test_performance_is_never_judged(toy: ToyRoot) -> None:
    def stalls(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
        record["performance"]["tokens_per_second"] = float("nan")

    assert soak(toy, Flaky(stalls), name="timed", runs=12).verdict is Verdict.PASS


def test_a_deviation_within_the_tolerance_is_shown_and_no_alarm(toy: ToyRoot) -> None:
    def drifts(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
        record["requests"]["0"]["generated_logprobs"][3] += 1e-6 * overrides.get("num_threads", 0)

    found = soak(toy, Flaky(drifts), runs=30)
    assert found.verdict is Verdict.PASS
    assert found.deviations["generated_logprobs"] == pytest.approx(4e-6)
    assert found.as_json()["deviations"]["generated_logprobs"]["rule"] == "atol 1e-05, rtol 0.0"


def test_a_soak_that_was_stopped_does_exactly_the_runs_that_are_missing(toy: ToyRoot) -> None:
    def stop(so_far: FixtureSoak) -> None:
        if len(so_far.runs) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        soak(toy, Flaky(), announce=stop)
    engine = Flaky()
    resumed = soak(toy, engine)
    assert (engine.count, [run.number for run in resumed.runs]) == (33, list(range(40)))
    assert soak(toy, engine) == resumed
    assert engine.count == 33
    whole = soak(toy, engine, fresh=True)
    assert engine.count == 73
    assert [dataclasses.replace(run, seconds=0) for run in whole.runs] == [
        dataclasses.replace(run, seconds=0) for run in resumed.runs
    ]


def test_fewer_runs_are_reported_where_fewer_are_wanted(toy: ToyRoot) -> None:
    soak(toy, Flaky())
    engine = Flaky()
    assert len(soak(toy, engine, runs=25).runs) == 25
    assert engine.count == 0


def test_a_new_golden_or_engine_starts_anew(toy: ToyRoot) -> None:
    soak(toy, Flaky(), runs=8)
    toy.write("a", prompts="one, two, three", more="time_limit_s: 30")
    same, engine = Flaky(), Flaky()
    soak(toy, same, runs=8)
    assert same.count == 0
    toy.write("a", prompts="one, two, four")
    toy.regen("a")
    soak(toy, engine, runs=8)
    assert engine.count == 8

    class Newer(Flaky):
        def revision(self) -> str:
            return "toy 2"

    newer = Newer()
    soak(toy, newer, runs=8)
    assert newer.count == 8


def test_a_fixture_that_keeps_failing_is_given_up_on(toy: ToyRoot) -> None:
    def falls_over(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
        raise RuntimeError("the toy fell over")

    engine = Flaky(falls_over)
    found = soak(toy, engine)
    assert (found.verdict, found.exit_code, engine.count) == (Verdict.ERROR, ExitCode.ENGINE, ENOUGH_FAILED_RUNS)
    assert found.runs[0].findings[0]["class"] == "ENGINE_CRASH"
    assert soak(toy, engine) == found
    assert engine.count == ENOUGH_FAILED_RUNS


def test_one_crash_among_good_runs_is_an_engine_failure(toy: ToyRoot) -> None:
    engine = Flaky()

    def falls_over_once(record: dict[str, Any], fixture: Fixture, overrides: Mapping[str, Any]) -> None:
        if engine.count == 5:
            raise RuntimeError("the toy fell over")

    engine._fault = falls_over_once
    found = soak(toy, engine, runs=12)
    assert (found.exit_code, [run.number for run in found.failed_runs]) == (ExitCode.ENGINE, [4])


def test_a_soak_without_a_varied_run_is_not_green(toy: ToyRoot) -> None:
    found = soak(toy, Flaky(), runs=1)
    assert found.exit_code is ExitCode.REGRESSION
    assert "no run was varied" in found.as_json()["reason"]


def test_a_soak_whose_varied_runs_compare_nothing_is_not_green(toy: ToyRoot) -> None:
    found = soak(toy, Flaky(), name="counters", runs=8)
    assert (found.exit_code, found.compared) == (ExitCode.REGRESSION, 2 * 2)
    assert "compared no value" in found.as_json()["reason"]


def test_a_fixture_without_a_golden_is_not_run(toy: ToyRoot) -> None:
    toy.write("new")
    engine = Flaky()
    found = soak(toy, engine, name="new")
    assert (found.verdict, found.exit_code, engine.count) == (Verdict.MISSING, ExitCode.GOLDEN, 0)
    assert found.as_json()["findings"][0]["path"] == "golden"


def run_of(seconds: float) -> SoakRun:
    return SoakRun(number=0, kinds=(), exit_code=ExitCode.GOOD, compared=1, seconds=seconds, date="2026-01-02")


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        ([1.0] * 20, 200),
        ([1.0] * 19, 20),
        ([3.0] * 20, 20),
        ([9.0] * 9 + [1.0] * 11, 200),
        ([1.0] * 20 + [9.0] * 99, 200),
    ],
)
def test_the_median_of_the_first_runs_decides_how_many_there_are(seconds: list[float], wanted: int) -> None:
    assert Length().wanted(dict(enumerate(map(run_of, seconds)))) == wanted


def test_the_worst_fixture_decides_and_skipped_ones_only_if_all_are(toy: ToyRoot) -> None:
    good = soak(toy, Flaky(), runs=8)
    made = soaker(toy, Flaky(), announce=lambda so_far: None)
    made.session.platform = "nvidia-h200"
    skipped = made.soak(made.session.fixtures["a"], fresh=False)
    assert skipped.verdict is Verdict.SKIP
    assert soak_exit_code([good, skipped]) is ExitCode.GOOD
    assert soak_exit_code([skipped]) is ExitCode.NOTHING_SELECTED
    assert soak_document([good, skipped])["verdict"] == "PASS"
    bad = soak(toy, Flaky(wrong_in_legacy), runs=8, fresh=True)
    assert soak_exit_code([good, bad]) is ExitCode.REGRESSION
