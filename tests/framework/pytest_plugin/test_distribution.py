from __future__ import annotations

import json

import pytest

from framework.manifest.load import load_all
from framework.pytest_sessions import groups
from tests.framework.pytest_plugin.driving import run_pytest, verdicts
from tests.framework.toy_root import ToyRoot

MODES = ["load", "loadscope", "loadfile", "loadgroup", "worksteal", "each", "no"]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_judges_as_golden_run_does(toy: ToyRoot, mode: str) -> None:
    toy.set_default("fault", "random")  # a related fixture is judged by what its partner gave, not by its golden
    code, expected = toy.json("run")
    done = run_pytest(toy, "fixtures", "-n", "2", "--dist", mode, "--golden-report", "report.json")
    assert done.returncode == code == 1, done.stdout
    document = json.loads((toy.path / "report.json").read_text())
    found, wanted = (
        {
            entry["fixture"]: sorted({(each["class"], each["path"]) for each in entry["findings"]})
            for entry in each["fixtures"]
        }
        for each in (document, expected)
    )
    assert {name: [kind for kind, _ in every] for name, every in found.items()} == {
        name: [kind for kind, _ in every] for name, every in wanted.items()
    }
    assert verdicts(document) == verdicts(expected)
    assert any(kind == "RELATION" for kind, _ in found["mode/legacy"])


def test_each_names_a_fixture_once_and_says_where_verdicts_differ(toy: ToyRoot) -> None:
    toy.misbehave("random", runs=1)
    done = run_pytest(toy, "fixtures", "-n", "2", "--dist", "each", "-k", "default", "--golden-report", "report.json")
    assert done.returncode == 1
    assert verdicts(json.loads((toy.path / "report.json").read_text())) == {"default": "FAIL"}
    assert "default: its verdicts differ: FAIL on gw" in done.stdout
    assert "1 fixture, " in done.stdout
    verdict = json.loads((toy.path / ".golden" / "last_verdicts.json").read_text())["default"]["verdict"]
    assert verdict == "FAIL", "a pass beside it does not hide it"


def test_the_last_verdict_is_there_for_golden_explain(toy: ToyRoot) -> None:
    run_pytest(toy, "fixtures", "-n", "2")
    _, document = toy.json("explain", "default")
    assert "PASS" in json.dumps(document)


def test_fixtures_that_share_a_model_or_a_relation_run_on_one_worker(toy: ToyRoot) -> None:
    done = run_pytest(toy, "fixtures", "-n", "2", "--dist", "loadgroup", "-v")
    assert done.returncode == 0
    workers = {line.partition("]")[0] for line in done.stdout.splitlines() if " PASSED " in line}
    assert len(workers) == 1
    assert "fixtures/default.yaml::default@toy" in done.stdout


def test_groups_join_models_through_relations(toy: ToyRoot) -> None:
    relation = "relations: [{kind: same_outputs_as, with: other}]"
    for name, model, more in (
        ("a", "m", ""),
        ("b", "m", ""),
        ("c", "nn", relation),
        ("other", "m", ""),
        ("d", "o", ""),
    ):
        path = toy.write(name, more=more)
        path.write_text(path.read_text().replace("model: toy", f"model: {model}"))
    found = groups(load_all(toy.path / "fixtures").fixtures)
    assert found == {
        "a": "m", "b": "m", "c": "m", "other": "m", "d": "o", "default": "toy", "mode/legacy": "toy",
    }  # fmt: skip


def test_a_worker_that_dies_is_no_pass_in_the_report(toy: ToyRoot) -> None:
    (toy.path / "conftest.py").write_text(
        "import os\ndef pytest_runtest_call(item):\n    if item.name == 'default': os._exit(7)\n"
    )
    done = run_pytest(toy, "fixtures", "-n", "1", "--max-worker-restart=0", "--golden-report", "report.json")
    assert done.returncode == 1
    document = json.loads((toy.path / "report.json").read_text())
    assert (document["verdict"], document["exit_code"]) == ("FAIL", 11)
    assert "default" in document["error"]
    assert "NO VERDICT  fixtures/default.yaml" in done.stdout
