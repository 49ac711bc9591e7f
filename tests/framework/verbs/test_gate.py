"""`golden gate` as a command: which commit it is, what it refuses, and that it fails closed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.framework.gate.queue import Queue, classes, make_queue, verdicts
from tests.framework.git import commit, git
from tests.framework.toy_root import ToyRoot

SEES_FUNCTIONS = sys.version_info >= (3, 12)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Queue:
    queue = make_queue(tmp_path_factory.mktemp("gate") / "root")
    assert queue.gate(queue.base)[0] == 0
    return queue


@pytest.fixture
def queue(made: Queue, tmp_path: Path) -> Queue:
    """A copy that a test may change, with what passed in the original."""
    return Queue(made.root.copy(tmp_path / "root"), made.base)


def refusal(queue: Queue, *arguments: str, code: int) -> dict[str, str]:
    found, document = queue.root.json("gate", "--base", queue.base, "--head", "HEAD", *arguments)
    assert (found, document["verdict"]) == (code, "REFUSED"), document
    (only,) = document["refusals"]
    assert document["fixtures"] == document["left_out"] == []
    return {"class": only["class"], "subject": only["subject"], "message": only["message"]}


def test_a_vetted_commit_that_is_not_the_head_is_refused(queue: Queue) -> None:
    code, document = queue.gate(queue.base, "--vetted", queue.base)
    assert (code, document["vetted"]) == (0, queue.base)
    for vetted in ("c" * 40, "HEAD", queue.base[:12], ""):
        found = refusal(queue, "--vetted", vetted, code=2)
        assert found["class"] == "NOT_THE_HEAD"
        assert queue.base in found["message"]


def test_a_working_tree_that_is_elsewhere_is_refused(queue: Queue) -> None:
    head = queue.make("another", lambda root: (root.path / "docs" / "notes.md").unlink())
    queue.go_to(queue.base)
    code, document = queue.root.json("gate", "--base", queue.base, "--head", head)
    assert (code, classes(document)) == (2, ["NOT_THE_HEAD"])
    assert "git checkout" in document["refusals"][0]["message"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("fixtures/first.yaml", "# changed\n"),
        ("docs/notes.md", "changed, and tracked"),
        ("fixtures/stray.yaml", "manifest: 1\n"),
        ("goldens/first/stray.json", "{}"),
        ("torch.py", "raise RuntimeError('in the place of the real one')\n"),
    ],
)
def test_a_working_tree_that_holds_anything_else_is_refused(queue: Queue, path: str, text: str) -> None:
    file = queue.root.path / path
    file.write_text(file.read_text() + text if file.exists() else text)
    found = refusal(queue, code=2)
    assert found["class"] == "NOT_THE_HEAD"
    assert path in found["message"]


def test_a_file_that_git_was_told_to_overlook_is_refused(queue: Queue) -> None:
    git(queue.root.path, "update-index", "--assume-unchanged", "toy_adapter.py")
    file = queue.root.path / "toy_adapter.py"
    file.write_text(file.read_text() + "\n# not in the commit\n")
    assert "toy_adapter.py: git was told not to look" in refusal(queue, code=2)["message"]


def test_reports_of_earlier_steps_may_lie_about(queue: Queue) -> None:
    (queue.root.path / "verdict.json").write_text("{}")
    assert queue.root.json("gate", "--base", queue.base, "--head", "HEAD")[0] == 0


@pytest.mark.parametrize(("flag", "value"), [("--base", "nowhere"), ("--head", "nowhere"), ("--base", "--all")])
def test_a_commit_that_is_not_here_is_refused_with_the_way_out(queue: Queue, flag: str, value: str) -> None:
    names = {"--base": queue.base, "--head": "HEAD", flag: value}
    code, document = queue.root.json("gate", *(f"{name}={commit}" for name, commit in names.items()))
    assert (code, document["verdict"]) == (2, "REFUSED")
    assert "fetch-depth: 0" in document["refusals"][0]["message"]


def test_base_and_head_have_to_be_named(queue: Queue) -> None:
    code, document = queue.root.json("gate")
    assert (code, document["verdict"]) == (2, "REFUSED")
    assert "--base is missing" in document["refusals"][0]["message"]


def test_histories_that_share_nothing_are_refused(queue: Queue) -> None:
    git(queue.root.path, "checkout", "--quiet", "--orphan", "other")
    commit(queue.root.path, "from nothing")
    code, document = queue.root.json("gate", "--base", queue.base, "--head", "HEAD")
    assert (code, document["verdict"]) == (2, "REFUSED")
    assert "share no history" in document["refusals"][0]["message"]


def test_a_lane_that_cannot_run_here_is_refused_and_not_skipped(queue: Queue) -> None:
    def other_platform(root: ToyRoot) -> None:
        path = root.path / "gate.yaml"
        lane = "  gpu: {platform: nvidia-h200, fixtures: 1, values: 1}\ndeclared:"
        path.write_text(path.read_text().replace("declared:", lane))

    head = queue.make("a lane", other_platform)
    code, document = queue.gate(head, "--lane", "gpu")
    assert (code, document["verdict"]) == (1, "REFUSED")
    assert {"NOTHING_SELECTED", "LANE_SHRUNK"} == set(classes(document))
    assert "this machine has cpu" in json.dumps(document["refusals"])
    assert "no such lane" in refusal(queue, "--lane", "cpus", code=2)["message"]


def test_without_a_lanes_file_the_platform_is_the_lane_and_every_kind_is_needed(queue: Queue) -> None:
    def forget(root: ToyRoot) -> None:
        (root.path / "gate.yaml").unlink()

    base = queue.make("no lanes", forget)
    assert queue.gate(base, base=base)[0] == 0
    code, document = queue.gate(base)
    assert (code, classes(document)) == (1, ["LANE_SHRUNK"])
    assert "it is gone" in document["refusals"][0]["message"]

    def only_async(root: ToyRoot) -> None:
        (root.path / "fixtures" / "third.yaml").unlink()
        (root.path / "goldens" / "third" / "cpu.json").unlink()

    code, document = queue.gate(queue.make("no legacy", only_async, base), base=base)
    assert "no legacy fixture gates it" in json.dumps(document["refusals"])


def test_a_lane_without_a_fixture_is_refused(queue: Queue) -> None:
    def nothing_left(root: ToyRoot) -> None:
        for name in ("first", "second", "third"):
            (root.path / "fixtures" / f"{name}.yaml").unlink()
            (root.path / "goldens" / name / "cpu.json").unlink()
        (root.path / "goldens" / "README.md").write_text("none\n")

    code, document = queue.gate(queue.make("empty", nothing_left))
    assert document["verdict"] == "REFUSED"
    assert code != 0
    assert "NOTHING_SELECTED" in classes(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gate: 1\n", "lanes"),
        ("gate: 1\nlanes: {}\n", "lanes"),
        ("gate: 1\nlanes: {cpu: {platform: cpu, fixtures: 0, values: 1}}\n", "fixtures"),
        ("gate: 1\nlanes: {cpu: {platform: cpu, fixtures: 1, values: 1, neds: []}}\n", "needs"),
        ("- 1\n", "gate.yaml"),
        ("gate: 1\nlanes: [\n", "not YAML"),
    ],
)
def test_a_broken_lanes_file_is_malformed(queue: Queue, text: str, message: str) -> None:
    head = queue.make("broken", lambda root: (root.path / "gate.yaml").write_text(text))
    code, document = queue.gate(head)
    assert (code, classes(document)) == (10, ["MALFORMED"])
    assert message in document["refusals"][0]["message"]


def test_damaged_passes_count_for_nothing_and_it_says_so(queue: Queue) -> None:
    path = queue.root.path / ".golden" / "gate-passes.json"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"compared": ', b'"compared": 1', 1))
    code, document = queue.gate(queue.base)
    assert (code, set(verdicts(document))) == (0, {"first", "second", "third"})
    assert any("checksum does not fit" in notice for notice in document["notices"])
    assert all("is damaged" in entry["why"] for entry in document["fixtures"])
    assert queue.gate(queue.base)[1]["fixtures"] == [], "a green gate has written it anew"


def test_a_gate_that_is_not_green_keeps_no_pass(queue: Queue) -> None:
    path = queue.root.path / ".golden" / "gate-passes.json"
    before = path.read_bytes()
    head = queue.make("crash in one", lambda root: (root.path / "toy_default_mode").write_text("legacy"))
    code, document = queue.gate(head)
    assert (code, verdicts(document)["third"]) == (1, "PASS")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("path", "text", "ran"),
    [
        ("fixtures/first.yaml", "\n# a comment\n", {"first"}),
        ("toy_adapter.py", "\n# a comment\n", {"first", "second", "third"}),
        ("another_module.py", "VALUE = 1\n", {"first", "second", "third"}),
        ("fixtures/prompts.txt", "a prompt\n", {"first", "second", "third"}),
        ("settings.toml", "a = 1\n", {"first", "second", "third"}),
        ("pyproject.toml", "\n# a comment\n", {"first", "second", "third"}),
        ("fixtures/models/toy/notes.json", "{}", set()),
        ("tests/test_something.py", "def test_it(): ...\n", set()),
        ("docs/more.md", "more\n", set()),
        (".github/workflows/gate.yml", "name: gate\n", set()),
    ],
)
def test_what_a_fixture_may_use_makes_it_run_and_nothing_else_does(
    queue: Queue, path: str, text: str, ran: set[str]
) -> None:
    def touch(root: ToyRoot) -> None:
        file = root.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((file.read_text() if file.exists() else "") + text)

    code, document = queue.gate(queue.make(path, touch))
    assert (code, set(verdicts(document))) == (0, ran), document
    for entry in document["fixtures"]:
        assert path in entry["why"] or "names of modules" in entry["why"], entry["why"]


@pytest.mark.parametrize(
    ("old", "new", "matters"),
    [
        ("return 1", "return 2", not SEES_FUNCTIONS),
        ("LIMIT = 1", "LIMIT = 2", True),
    ],
)
def test_a_module_that_only_defines_counts_by_what_it_defines(queue: Queue, old: str, new: str, matters: bool) -> None:
    """Where Python tells which functions start: before 3.12, a module that is imported counts as a whole."""

    def add(root: ToyRoot) -> None:
        (root.path / "idle.py").write_text("LIMIT = 1\n\n\ndef function():\n    return 1\n")
        adapter = root.path / "toy_adapter.py"
        adapter.write_text(adapter.read_text().replace("import hashlib\n", "import hashlib\nimport idle\n", 1))

    def change(root: ToyRoot) -> None:
        path = root.path / "idle.py"
        path.write_text(path.read_text().replace(old, new))

    base = queue.make("an idle module", add)
    assert len(queue.gate(base, base=base)[1]["fixtures"]) == 3
    code, document = queue.gate(queue.make("changed", change, base), base=base)
    assert (code, bool(document["fixtures"])) == (0, matters)


def test_another_environment_makes_everything_run(queue: Queue) -> None:
    code, document = queue.root.json("gate", "--base", queue.base, "--head", "HEAD", OMP_NUM_THREADS="1")
    assert (code, len(document["fixtures"])) == (0, 3)
    assert "environment variable OMP_NUM_THREADS" in document["fixtures"][0]["why"]


def test_a_secret_of_the_environment_reaches_no_verdict(queue: Queue) -> None:
    value = "of nobody's concern"
    variables = {"HF_TOKEN": value, "GOLDEN_ENGINE_ENVIRONMENT": "HF_TOKEN"}
    assert queue.root.json("gate", "--base", queue.base, "--head", "HEAD", **variables)[0] == 0
    for name in ("gate-verdict.json", "gate-passes.json"):
        assert value not in (queue.root.path / ".golden" / name).read_text()


def test_a_gate_that_is_killed_leaves_no_green_verdict_behind(queue: Queue) -> None:
    head = queue.make("slow", lambda root: (root.path / "settings.toml").write_text("a = 1"))
    path = queue.root.path / ".golden" / "gate-verdict.json"
    command = [sys.executable, "-m", "framework", "gate", "--base", queue.base, "--head", head]
    environment = queue.root.environment(TOY_SECONDS="1.5")
    with subprocess.Popen(command, cwd=queue.root.path, env=environment, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 30
        while json.loads(path.read_bytes())["head"] != head:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()
    document = json.loads(path.read_bytes())
    assert (document["verdict"], classes(document)) == ("REFUSED", ["UNFINISHED"])


def test_an_internal_fault_ends_in_a_verdict_too(queue: Queue, tmp_path: Path) -> None:
    outside = tmp_path / "site"
    outside.mkdir()
    broken = "import framework.gate.environment as it\ndef broken(_): raise ZeroDivisionError('boom')\n"
    (outside / "sitecustomize.py").write_text(f"{broken}it.environment = broken\n")
    python_path = f"{outside}:{queue.root.environment()['PYTHONPATH']}"
    code, document = queue.root.json("gate", "--base", queue.base, "--head", "HEAD", PYTHONPATH=python_path)
    assert (code, document["verdict"], classes(document)) == (11, "REFUSED", ["ERROR"])
    assert "boom" in document["refusals"][0]["message"]


def test_a_person_reads_the_reasons_and_then_the_verdict(queue: Queue, tmp_path: Path) -> None:
    done = queue.root.golden("gate", "--base", queue.base, "--head", "HEAD", "--summary", str(tmp_path / "summary.md"))
    assert done.returncode == 0, done.stderr
    first, headline, looked_at, machine = done.stdout.splitlines()
    assert first.startswith("left out, unchanged since it passed at")
    assert first.endswith(": first, second, third")
    assert headline.startswith(f"GATE PASS: {queue.base[:12]}")
    assert looked_at.startswith("nothing had to run: all 3 unchanged since they passed; 3 fixtures and ")
    assert machine == f"verdict=PASS exit_code=0 head={queue.base}"
    assert "### GATE PASS" in (tmp_path / "summary.md").read_text()


def test_shards_of_a_plan_make_one_verdict(queue: Queue, tmp_path: Path) -> None:
    root = queue.root
    (root.path / ".golden" / "gate-passes.json").unlink()
    planned = root.golden("gate", "plan", "--shards", "2")
    assert planned.returncode == 0, planned.stderr
    assert len(planned.stdout.splitlines()) == 1, "it has to be one line to be an output of a job"
    shares = [entry["shard"] for entry in json.loads(planned.stdout)["include"]]
    assert len(shares) == 2
    for number, share in enumerate(shares):
        folder = tmp_path / "shards" / str(number)
        options = ("--verdict", str(folder / "gate-verdict.json"), "--state", str(folder / "gate-passes.json"))
        folder.mkdir(parents=True)
        code, document = root.json("gate", "--base", queue.base, "--head", "HEAD", "--shard", share, *options)
        assert (code, document["shard"]["of"]) == (0, 2)
    merge = ["gate", "verdict", str(tmp_path / "shards"), "--head", queue.base, "--lane", "cpu"]
    merge += ["--state", str(root.path / ".golden" / "gate-passes.json")]
    code, document = root.json(*merge)
    assert (code, document["verdict"], set(verdicts(document))) == (0, "PASS", {"first", "second", "third"})
    assert queue.gate(queue.base)[1]["fixtures"] == [], "the passes of both shards were kept"
    (tmp_path / "shards" / "1" / "gate-verdict.json").unlink()
    code, document = root.json(*merge)
    assert (code, document["verdict"]) == (11, "REFUSED")
    assert "shard 2: it is missing" in "\n".join(f"{e['subject']}: {e['message']}" for e in document["refusals"])


def test_a_share_of_another_plan_is_refused(queue: Queue) -> None:
    code, document = queue.root.json("gate", "--base", queue.base, "--head", "HEAD", "--shard", "1/2: gone first")
    assert (code, document["verdict"]) == (2, "REFUSED")
    assert "gone: not in the lane at this head" in document["refusals"][0]["message"]
    assert document["fixtures"] == []


def test_times_of_a_run_balance_a_plan(queue: Queue, tmp_path: Path) -> None:
    (queue.root.path / ".golden" / "gate-passes.json").unlink()
    times = tmp_path / "times.json"
    entries = [{"fixture": "first", "seconds": 60.0}, {"fixture": "second", "seconds": 1.0}]
    times.write_text(json.dumps({"schema": "golden.run/1", "fixtures": entries}))
    planned = queue.root.golden("gate", "plan", "--shards", "2", "--times", str(times))
    assert [entry["shard"] for entry in json.loads(planned.stdout)["include"]] == ["1/2: first", "2/2: second third"]
    times.write_text("{")
    refused = queue.root.golden("gate", "plan", "--shards", "2", "--times", str(times))
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def test_a_lanes_file_that_is_broken_at_the_base_can_be_repaired(queue: Queue) -> None:
    whole = (queue.root.path / "gate.yaml").read_text()
    base = queue.make("broken", lambda root: (root.path / "gate.yaml").write_text("gate: 2\n"))
    head = queue.make("repaired", lambda root: (root.path / "gate.yaml").write_text(whole), base)
    assert queue.gate(head, base=base)[0] == 0


@pytest.mark.parametrize("option", ["--verdict", "--summary", "--state"])
def test_a_file_that_a_link_would_carry_out_of_the_repository_is_refused(
    queue: Queue, tmp_path: Path, option: str
) -> None:
    (queue.root.path / "out").symlink_to(tmp_path)
    done = queue.root.golden("gate", "--base", queue.base, "--head", "HEAD", option, "out/file.json")
    assert done.returncode == 2, done.stdout
    assert not (tmp_path / "file.json").exists()
    assert "Traceback" not in done.stderr
    if option != "--verdict":
        document = json.loads((queue.root.path / ".golden" / "gate-verdict.json").read_bytes())
        assert (document["verdict"], document["exit_code"]) == ("REFUSED", 2)
