"""The workflows of the repository: what they may do, what they run on, and that no untrusted text reaches a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framework.cli import _parser
from framework.manifest.strict_yaml import load_file

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = sorted((REPOSITORY / ".github").rglob("*.yml"))
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")


def load(path: Path) -> dict[str, Any]:
    value = load_file(path).value
    assert isinstance(value, dict)
    return value


def workflow(name: str) -> dict[str, Any]:
    return load(REPOSITORY / ".github" / "workflows" / f"{name}.yml")


def steps_of(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in document.get("jobs", {}).values():
        yield from job.get("steps", ())
    yield from document.get("runs", {}).get("steps", ())


def golden_commands(text: str) -> Iterator[list[str]]:
    for found in re.finditer(r"\.venv/bin/golden ([^\n)]*)", text):
        words = shlex.split(found[1])
        yield ["1" if word.startswith("$SHARDS") else word for word in words]


def test_there_is_a_workflow_for_each_way_a_commit_is_judged() -> None:
    names = {path.stem for path in WORKFLOWS}
    assert names == {"gate", "merge_group", "nightly", "pull_request", "regenerate"}
    triggers = {name: set(workflow(name)["on"]) for name in names}
    assert triggers["pull_request"] == {"pull_request"}, "pull_request_target would run a fork's code with our rights"
    assert triggers["merge_group"] == {"merge_group"}
    assert triggers["nightly"] == {"schedule", "workflow_dispatch"}
    assert triggers["regenerate"] == {"workflow_dispatch"}
    assert triggers["gate"] == {"workflow_call"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_and_nothing_else(path: Path) -> None:
    document = load(path)
    assert document["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in document["jobs"].values())
    assert "secrets" not in path.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_expression_stands_in_a_script(path: Path) -> None:
    for step in steps_of(load(path)):
        assert EXPRESSION.search(step.get("run", "")) is None, step


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_action_is_the_repositorys_own_or_pinned_to_a_commit(path: Path) -> None:
    document = load(path)
    used = [step["uses"] for step in steps_of(document) if "uses" in step]
    used += [job["uses"] for job in document.get("jobs", {}).values() if "uses" in job]
    assert all(each.startswith("./.github/") or PINNED.fullmatch(each) for each in used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_checkout_leaves_no_credentials_and_every_job_ends(path: Path) -> None:
    document = load(path)
    for step in steps_of(document):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    assert all("timeout-minutes" in job for job in document["jobs"].values() if "steps" in job)


def test_the_gate_has_the_whole_history_of_the_head_in_every_job() -> None:
    jobs = workflow("gate")["jobs"]
    assert set(jobs) == {"plan", "shard", "verdict"}
    for job in jobs.values():
        (checkout,) = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
        assert checkout["with"]["fetch-depth"] == 0
        assert checkout["with"]["ref"] == "${{ inputs.head }}"


def test_shards_come_from_the_plan_and_the_verdict_comes_whatever_they_did() -> None:
    jobs = workflow("gate")["jobs"]
    assert jobs["shard"]["strategy"] == {"fail-fast": False, "matrix": "${{ fromJSON(needs.plan.outputs.matrix) }}"}
    assert jobs["plan"]["outputs"]["matrix"] == "${{ steps.plan.outputs.matrix }}"
    assert jobs["verdict"]["if"] == "${{ always() }}"
    assert jobs["verdict"]["needs"] == ["plan", "shard"]
    (upload,) = [step for step in jobs["shard"]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert upload["if"] == "${{ always() }}"
    assert upload["with"]["include-hidden-files"] is True, "the verdict lies in a hidden folder"


def test_passes_are_kept_only_after_a_green_verdict() -> None:
    steps = workflow("gate")["jobs"]["verdict"]["steps"]
    save = next(index for index, step in enumerate(steps) if "cache/save" in step.get("uses", ""))
    verdict = next(index for index, step in enumerate(steps) if "gate verdict" in step.get("run", ""))
    assert verdict < save
    assert "if" not in steps[save], "without a condition a step runs only if those before it were good"


def test_the_queue_validates_exactly_the_commit_that_it_made() -> None:
    jobs = workflow("merge_group")["jobs"]
    gates = [job for job in jobs.values() if job.get("uses") == "./.github/workflows/gate.yml"]
    assert {job["with"]["lane"] for job in gates} == {"cpu", "nvidia-h200"}
    for job in gates:
        assert job["with"]["head"] == "${{ github.event.merge_group.head_sha }}"
        assert job["with"]["base"] == "${{ github.event.merge_group.base_sha }}"


def test_a_fork_never_runs_on_our_machines() -> None:
    assert "self-hosted" not in (REPOSITORY / ".github" / "workflows" / "pull_request.yml").read_text()


def test_lanes_that_workflows_name_are_in_the_lanes_file() -> None:
    lanes = load(REPOSITORY / "gate.yaml")["lanes"]
    for path in WORKFLOWS:
        for job in load(path)["jobs"].values():
            lane = job.get("with", {}).get("lane")
            assert lane is None or lane in lanes


def test_regeneration_uploads_candidates_and_cannot_write_a_golden() -> None:
    text = (REPOSITORY / ".github" / "workflows" / "regenerate.yml").read_text()
    assert "--out candidates" in text
    commands = [step.get("run", "") for step in steps_of(workflow("regenerate"))]
    assert not any(word in " ".join(commands) for word in ("git push", "git commit", "golden accept"))
    (upload,) = [step for step in steps_of(workflow("regenerate")) if "upload-artifact" in step.get("uses", "")]
    assert upload["with"]["path"] == "candidates"


def test_every_command_that_workflows_give_is_one() -> None:
    commands = [
        words
        for path in FILES
        for step in steps_of(load(path))
        for words in golden_commands(step.get("run", "").replace("\\\n", " "))
    ]
    assert len(commands) >= 6
    for words in commands:
        assert _parser().parse_args(words) is not None


def test_what_make_lint_checks_holds_the_workflows_too() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    assert re.search(r"zizmor .*--min-severity medium \.github", makefile)
