"""What an engine may hand over beside its record: it explains, and neither stands in the record nor judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.compare.finding import FindingClass
from framework.manifest.load import load_manifest
from framework.run.adapter import DecodesTokens, TracesSchedule
from framework.run.in_process import InProcessRunner
from framework.run.measure import measure
from framework.run.reference_engine import ReferenceEngine
from framework.run.subprocess_runner import SubprocessRunner
from framework.run.task import Task, execute
from framework.workspace import Workspace
from tests.framework.toy_adapter import ToyEngine
from tests.framework.toy_root import REPOSITORY, make_toy_root

MODEL = REPOSITORY / "fixtures" / "models" / "storyteller-llama-1m"
SCHEDULE = [{"step": 0, "rows": [["0", 0, 5], ["1", 0, 5]]}, {"step": 1, "rows": [["1", 5, 1]]}]


class TellingToy(ToyEngine):
    """A toy that tells a schedule."""

    def __init__(self, told: Any = SCHEDULE) -> None:
        super().__init__()
        self._told = told

    def schedule(self) -> Any:
        return self._told


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    root = make_toy_root(tmp_path_factory.mktemp("toy"))
    path = root.write("two", prompts="hello, world")
    return Task(load_manifest(path, fixtures_root=root.path / "fixtures"), root.path / "fixtures/models/toy", "cpu")


def test_a_schedule_travels_beside_the_record(task: Task) -> None:
    result = execute(TellingToy(), task)
    assert result.record is not None
    assert "schedule" not in result.record
    assert result.schedule == SCHEDULE


def test_an_engine_need_not_tell_one(task: Task) -> None:
    assert execute(ToyEngine(), task).schedule == ()


def test_requests_in_another_order_are_named_by_their_place_in_the_manifest(task: Task) -> None:
    swapped = Task(task.fixture, task.model_path, task.platform, order=(1, 0))
    assert execute(TellingToy(), swapped).schedule == [
        {"step": 0, "rows": [["1", 0, 5], ["0", 0, 5]]},
        {"step": 1, "rows": [["0", 5, 1]]},
    ]


def test_every_run_of_a_measurement_has_its_own(task: Task) -> None:
    measurement = measure(InProcessRunner(TellingToy()), task, None)
    assert measurement.schedules == (SCHEDULE,)


@pytest.mark.parametrize("told", [None, [{"step": 0}], [{"step": 0, "rows": [["2", 0, 1]]}]])
def test_a_malformed_schedule_is_a_fault_of_the_adapter(task: Task, told: Any) -> None:
    failure = execute(TellingToy(told), task).failure
    assert failure is not None
    assert failure.kind is FindingClass.ENGINE_CRASH
    assert "the adapter's schedule is malformed" in failure.message


def test_the_shipped_engine_tells_what_its_steps_computed_from_a_process_of_its_own() -> None:
    path = REPOSITORY / "fixtures" / "scheduling" / "async_default.yaml"
    fixture = load_manifest(path, fixtures_root=REPOSITORY / "fixtures")
    runner = SubprocessRunner(Workspace(REPOSITORY, "framework.run.reference_engine:ReferenceEngine"))
    try:
        result = runner.run(Task(fixture, MODEL, "cpu"), time_limit_s=60)
    finally:
        runner.close()
    assert result.record is not None
    prompt, generated = (len(result.record["requests"]["0"][name]) for name in ("prompt_tokens", "generated_tokens"))
    assert list(result.schedule) == [
        {"step": 0, "rows": [["0", 0, prompt]]},
        *({"step": step, "rows": [["0", prompt + step - 1, 1]]} for step in range(1, generated)),
    ]


def test_the_shipped_engine_decodes_without_being_loaded() -> None:
    engine = ReferenceEngine()
    assert isinstance(engine, DecodesTokens)
    assert isinstance(engine, TracesSchedule)
    assert engine.decode(MODEL, [545, 902]) == " Nora fetched"
    assert engine.schedule() == []


def test_a_model_without_a_tokenizer_cannot_decode(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="No such file"):
        ReferenceEngine().decode(tmp_path, [1])
