from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.framework.toy_adapter import toy_model
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("jobs"))
    toy_model(root.path / "fixtures" / "models" / "other")
    root.write("default", prompts="hello, world")
    legacy = "relations: [{kind: async_equals_legacy, with: default}]"
    root.write("mode/legacy", engine="async_sched_mode: legacy", prompts="hello, world", more=legacy)
    for number in range(4):
        path = root.write(f"many/{number}", prompts=f"p{number}")
        if number % 2:
            path.write_text(path.read_text().replace("model: toy", "model: other"))
    root.regen()
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


def timeless(document: dict[str, Any]) -> str:
    document = json.loads(json.dumps(document), object_hook=lambda entry: {**entry, "seconds": 0})
    document.pop("timing", None)
    return json.dumps(document)


def test_the_report_is_the_same_for_every_number_of_engines(toy: ToyRoot) -> None:
    toy.set_default_mode("legacy")
    toy.golden_path("many/2").unlink()
    done = {jobs: toy.json("run", "-j", jobs) for jobs in ("1", "2", "4", "auto")}
    assert {code for code, _ in done.values()} == {12}
    assert len({timeless(document) for _, document in done.values()}) == 1


def test_a_crash_takes_only_its_own_fixture_with_it(toy: ToyRoot) -> None:
    toy.misbehave("die", runs=1)
    code, document = toy.json("run", "-j", "2")
    verdicts = [entry["verdict"] for entry in document["fixtures"]]
    assert code == 11
    assert sorted(verdicts) == ["ERROR", "PASS", "PASS", "PASS", "PASS", "PASS"]


def test_seconds_are_recorded_for_those_that_ran(toy: ToyRoot) -> None:
    toy.golden_path("many/2").unlink()
    toy.golden("run", "-j", "2", "many/*")
    recorded = json.loads((toy.path / ".golden" / "durations.json").read_text())["seconds"]["cpu"]
    assert sorted(recorded) == ["many/0", "many/1", "many/3"]


def test_damaged_times_are_a_warning_and_no_more(toy: ToyRoot) -> None:
    (toy.path / ".golden").mkdir(exist_ok=True)
    (toy.path / ".golden" / "durations.json").write_text("{")
    done = toy.golden("run", "-j", "2")
    assert done.returncode == 0
    assert "durations.json" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("jobs", ["0", "-1", "1.5", "many", "", "257", "٣"])
def test_a_number_of_engines_that_makes_no_sense_is_refused(toy: ToyRoot, jobs: str) -> None:
    done = toy.golden("run", f"--jobs={jobs}")
    assert done.returncode == 2
    assert f"{jobs!r} is no number from 1 to 256" in done.stderr
