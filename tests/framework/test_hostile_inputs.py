"""Hostile inputs of a pull request: each ends with a clear error, and nothing outside the scratch folder changes.

Every case runs in processes of its own with bounded memory and time; beside the root lies a folder that nothing may
touch. What is hostile to the engine itself (weights, tokenizers) is in `tests/engine/test_hostile_models.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from framework.errors import ExitCode
from tests.framework import hostile
from tests.framework.hostile import (
    JSON_DEEP,
    JSON_DIGITS,
    JSON_TWICE,
    TWO_GIGABYTES,
    YAML_ALIASES,
    YAML_BOMB,
    YAML_DEEP,
    YAML_KEYS,
    YAML_LONG,
    YAML_TAG,
    Make,
    instead,
    link_to,
    sparse,
    text,
)
from tests.framework.toy_root import REPOSITORY, ToyRoot, make_toy_root

MEMORY_BYTES = 1536 * 1024**2
SECONDS = 30
REFERENCE = ("--adapter", "framework.run.reference_engine:ReferenceEngine")

GOLDEN = "goldens/first/cpu.json"
MANIFEST = "fixtures/first.yaml"
LINT, CHECK, RUN = ["lint"], ["check"], ["run"]
USAGE, MALFORMED, ENGINE, UNREADABLE = 2, 10, 11, 12
JUDGED = (LINT, CHECK, RUN)


@dataclass(frozen=True)
class Case:
    """What is put at `path` in the root, what is run then, with which exit code each ends, and what is said."""

    path: str
    make: Make
    commands: tuple[list[str], ...]
    code: int
    says: str


def manifest_with(**changed: str) -> Make:
    """The manifest of the root with other values for some keys, as they stand in the file."""

    def make(path: Path) -> None:
        lines = path.read_text().splitlines()
        for key, value in changed.items():
            lines = [f"{key}: {value}" if line.startswith(f"{key}:") else line for line in lines]
        path.write_text("\n".join(lines) + "\n")

    return make


def prompt_file(written: str) -> Make:
    """A manifest whose prompts are in a file."""

    def make(path: Path) -> None:
        path.write_text(path.read_text().replace("prompts: [hello]", f"prompt_file: {written}"))

    return make


def beside(make: Make, name: str = "prompts.jsonl") -> Make:
    """A manifest whose prompts are in a file beside it, which is hostile."""

    def both(path: Path) -> None:
        prompt_file(name)(path)
        make(path.with_name(name))

    return both


def pinned(setting: str) -> Make:
    return manifest_with(engine=f"{{moe_enable_routing_replay: true, async_sched_mode: legacy, {setting}}}")


def recording(make: Make) -> Make:
    """A manifest that replays a recording beside it, which is hostile."""

    def both(path: Path) -> None:
        pinned("routing_replay_path: recording.json")(path)
        make(path.with_name("recording.json"))

    return both


def table(line: str) -> Make:
    """A configuration with one line."""
    return text(f"[tool.golden]\n{line}\n")


PATHS_OF_MODELS = {
    f"model: {name}": Case(MANIFEST, manifest_with(model=written), JUDGED, MALFORMED, says)
    for name, written, says in (
        ("dots", "../../../outside", "first.yaml:5"),
        ("absolute", "/etc", "first.yaml:5"),
        ("home", "'~/x'", "first.yaml:5"),
        ("NUL", '"toy\\0"', "first.yaml:5"),
        ("overlong", "a" * 5000, "5000 characters"),
        ("dots inside", "toy/../../../outside", "first.yaml:5"),
    )
}
PATHS_OF_PROMPTS = {
    f"prompt file: {name}": Case(MANIFEST, prompt_file(written), JUDGED, MALFORMED, says)
    for name, written, says in (
        ("dots", "../../outside/secret", "leads out of the repository"),
        ("absolute", "/etc/passwd", "leads out of the repository"),
        ("home", "'~/.ssh/id_rsa'", "cannot be read"),
        ("NUL", '"a\\0b"', "cannot be read"),
        ("overlong", "a" * 400, "cannot be read"),
        ("zero device", "/dev/zero", "leads out of the repository"),
        ("standard input", "/dev/stdin", "leads out of the repository"),
    )
}
FILES_OF_PROMPTS = {
    f"prompt file: {name}": Case(MANIFEST, beside(make), JUDGED, MALFORMED, says)
    for name, make, says in (
        ("link outside", link_to("OUTSIDE/secret"), "leads out of the repository"),
        ("link to a device", link_to("/dev/zero"), "leads out of the repository"),
        ("link to itself", link_to("prompts.jsonl"), "prompt_file"),
        ("pipe", hostile.pipe, "it is a pipe"),
        ("socket", hostile.unix_socket, "it is a socket"),
        ("folder", hostile.folder, "it is a folder"),
        ("2 GB", sparse(TWO_GIGABYTES), "larger than 64,000,000 bytes"),
        ("too many prompts", text('"a"\n' * 200_000), "200,000 prompts"),
        ("deep JSON", text(JSON_DEEP), "not a line of JSON"),
        ("digits", text('{"text": ' + "9" * 100_000 + "}"), "not a line of JSON"),
    )
}
RECORDINGS = {
    f"recording: {name}": Case(MANIFEST, make, ([*REFERENCE, "lint"], [*REFERENCE, "run"]), MALFORMED, says)
    for name, make, says in (
        ("dots", pinned("routing_replay_path: ../../outside/secret"), "leaves the repository"),
        ("absolute", pinned("routing_replay_path: /etc/passwd"), "leaves the repository"),
        ("NUL", pinned('routing_replay_path: "a\\0b"'), "routing_replay_path"),
        ("overlong", pinned(f"routing_replay_path: {'a' * 5000}"), "routing_replay_path"),
        ("link outside", recording(link_to("OUTSIDE/secret")), "leaves the repository"),
        ("link to itself", recording(link_to("recording.json")), "recording.json"),
        ("pipe", recording(hostile.pipe), "is no file"),
    )
}
MANIFESTS = {
    f"manifest: {name}": Case("fixtures/second.yaml", make, JUDGED, MALFORMED, says)
    for name, make, says in (
        ("link outside", link_to("OUTSIDE/secret"), "leads out of fixtures/"),
        ("link to a device", link_to("/dev/zero"), "leads out of fixtures/"),
        ("pipe", hostile.pipe, "it is a pipe"),
        ("socket", hostile.unix_socket, "it is a socket"),
        ("2 GB", sparse(TWO_GIGABYTES), "larger than 1,000,000 bytes"),
        ("billion laughs", text(YAML_BOMB), "an alias inside an anchored value"),
        ("a large value many times", text(YAML_ALIASES), "more than 100,000 values"),
        ("depth", text(YAML_DEEP), "nest"),
        ("long scalar", text(YAML_LONG), "larger than 1,000,000 bytes"),
        ("tag that runs code", text(YAML_TAG), "the tag tag:yaml.org,2002:python/object/apply:os.system"),
        ("sixty thousand keys", text(YAML_KEYS), "second.yaml"),
        ("an escape in a key", text('"\\e]0;owned\\a": 1\n'), "second.yaml:1"),
    )
}
NAMES = {
    "name: leaves its folder": Case(MANIFEST, manifest_with(name="../first"), JUDGED, MALFORMED, "first.yaml:2"),
    "name: of another": Case(MANIFEST, manifest_with(name="other"), JUDGED, MALFORMED, "but the file is first.yaml"),
    "name: differs in case only": Case(
        "fixtures/FIRST.yaml",
        lambda path: path.write_text((path.parent / "first.yaml").read_text().replace("name: first", "name: FIRST")),
        (LINT,),
        MALFORMED,
        "one file on a disk that ignores case",
    ),
    "witness: no list": Case(MANIFEST, manifest_with(witness=".inf"), JUDGED, MALFORMED, "first.yaml"),
}
WORKLOADS = {
    f"workload: {name}": Case(
        MANIFEST,
        lambda path, new=new: path.write_text(path.read_text().replace("prompts: [hello]", new)),  # type: ignore[misc]
        JUDGED,
        MALFORMED,
        says,
    )
    for name, new, says in (
        ("a billion random tokens", "prompts: [{random: {length: 1000000000, seed: 1}}]", "at most 1000000"),
        (
            "many random prompts",
            "prompts:\n" + "    - {random: {length: 1000000, seed: 1}}\n" * 100,
            "100,000,000 tokens in all",
        ),
        ("a huge integer", f"prompts: [{{token_ids: [{'9' * 5000}]}}]", "first.yaml"),
    )
}
MODELS = {
    "model: linked outside": Case(
        "fixtures/models/toy", hostile.moved_outside, JUDGED, MALFORMED, "leads out of the repository"
    ),
    "model: a file linked outside": Case(
        "fixtures/models/toy/model.safetensors", link_to("OUTSIDE/secret"), JUDGED, MALFORMED, "model.safetensors"
    ),
    "model: a file linked to a device": Case(
        "fixtures/models/toy/config.json", instead(link_to("/dev/zero")), JUDGED, MALFORMED, "toy"
    ),
    "model: config is a pipe": Case(
        "fixtures/models/toy/config.json", instead(hostile.pipe), JUDGED, MALFORMED, "no config.json"
    ),
    "model: weights are a pipe": Case(
        "fixtures/models/toy/model.safetensors", hostile.pipe, ([*REFERENCE, "check"],), MALFORMED, "it is no file"
    ),
    "model: index names files elsewhere": Case(
        "fixtures/models/toy/model.safetensors.index.json",
        text('{"weight_map": {"a": "../../../../outside/secret\\u0000"}}'),
        ([*REFERENCE, "check"],),
        MALFORMED,
        "the model cannot be read",
    ),
}
GOLDENS = {
    f"golden: {name}": Case(GOLDEN, instead(make), (CHECK, RUN), UNREADABLE, says)
    for name, make, says in (
        ("2 GB", sparse(TWO_GIGABYTES), "larger than 64 MB"),
        ("link outside", link_to("OUTSIDE/secret"), "a link leads out of goldens/"),
        ("link to a device", link_to("/dev/zero"), "a link leads out of goldens/"),
        ("link to itself", link_to("cpu.json"), "a link leads out of goldens/"),
        ("pipe", hostile.pipe, "it is a pipe"),
        ("socket", hostile.unix_socket, "it is a socket"),
        ("folder", hostile.folder, "it is a folder"),
        ("depth", text(JSON_DEEP), "nested more than 64 levels"),
        ("digits", text(JSON_DIGITS), "a number is too long"),
        ("a key twice", text(JSON_TWICE), "stands twice"),
        ("NUL bytes", hostile.data(b"\0" * 1000), "golden unreadable"),
        ("an escape", text("\x1b]0;owned\x07"), "golden unreadable"),
    )
}
LINKS = {
    f"link: {name}": Case(path, make, (LINT, CHECK, RUN, ["list"], ["quarantine"]), USAGE, says)
    for name, path, make, says in (
        ("fixtures", "fixtures", hostile.moved_outside, "a link leads out of"),
        ("goldens", "goldens", hostile.moved_outside, "a link leads out of"),
        ("pyproject.toml", "pyproject.toml", instead(link_to("OUTSIDE/secret")), "a link leads out of"),
        ("state folder", ".golden", instead(link_to("OUTSIDE")), "a link leads out of"),
        ("in the state folder", ".golden/flaky", instead(link_to("OUTSIDE")), "this folder is written to"),
        ("last verdicts", ".golden/last_verdicts.json", instead(link_to("OUTSIDE/secret")), "is written to"),
        ("the lock", ".golden/lock", instead(link_to("OUTSIDE/secret")), "is written to"),
    )
}
FOLDERS_OF_GOLDENS = {
    "golden folder: linked outside": Case(
        "goldens/first", hostile.moved_outside, (CHECK, RUN), UNREADABLE, "a link leads out of goldens/"
    ),
    "golden folder: regenerated through a link": Case(
        "goldens/first",
        hostile.moved_outside,
        (["regen", "--yes", "--reason", "x"],),
        UNREADABLE,
        "a link leads out of",
    ),
}
CONFIGURATIONS = {
    f"configuration: {name}": Case("pyproject.toml", instead(make), JUDGED, code, says)
    for name, make, code, says in (
        ("pipe", hostile.pipe, USAGE, "it is a pipe"),
        ("2 GB", sparse(TWO_GIGABYTES), USAGE, "bytes, more than"),
        ("depth", text("x = " + "[" * 100_000), USAGE, "cannot be read"),
        (
            "asks for a secret",
            text('[tool.golden]\nengine_environment = ["GITHUB_TOKEN"]\n'),
            USAGE,
            "looks like a secret",
        ),
        ("asks for everything", text('[tool.golden]\nengine_environment = ["*"]\n'), USAGE, "engine_environment"),
        ("adapter by path", text('[tool.golden]\nadapter = "../outside/evil:X"\n'), USAGE, 'expected "module:Class"'),
        ("adapter with code", text('[tool.golden]\nadapter = "os:system(1)"\n'), USAGE, 'expected "module:Class"'),
        ("adapter is no engine", text('[tool.golden]\nadapter = "subprocess:Popen"\n'), USAGE, "it is no adapter"),
    )
}
QUARANTINES = {
    f"quarantine: {name}": Case("quarantine.yaml", make, (*JUDGED, ["quarantine"]), MALFORMED, says)
    for name, make, says in (
        ("2 GB", sparse(TWO_GIGABYTES), "larger than 1,000,000 bytes"),
        ("pipe", hostile.pipe, "it is a pipe"),
        ("link outside", link_to("OUTSIDE/secret"), "a link"),
        ("folder", hostile.folder, "it is a folder"),
        ("billion laughs", text(YAML_BOMB), "an alias inside an anchored value"),
        ("tag that runs code", text(YAML_TAG), "the tag"),
        ("everything for ever", text("quarantine: 1\nentries: [{fixture: '*', class: '*'}]\n"), "quarantine.yaml:2"),
    )
}
RULES = "assert: {generated_tokens: exact}\ninform: [counters, performance]\n"
COMPARED = {
    f"compare: {name}": Case(
        "file",
        make,
        (
            ["compare", "--rules", "rules.yaml", "file", GOLDEN],
            ["compare", "--rules", "rules.yaml", GOLDEN, "file", "--json"],
        ),
        UNREADABLE,
        says,
    )
    for name, make, says in (
        ("zero device", link_to("/dev/zero"), "it is a device"),
        ("pipe", hostile.pipe, "it is a pipe"),
        ("socket", hostile.unix_socket, "it is a socket"),
        ("folder", hostile.folder, "it is a folder"),
        ("2 GB", sparse(TWO_GIGABYTES), "larger than 64 MB"),
        ("depth", text(JSON_DEEP), "nested more than 64 levels"),
        ("digits", text(JSON_DIGITS), "a number is too long"),
        ("link to itself", link_to("file"), "golden unreadable"),
    )
}
RULES_FILES = {
    f"rules: {name}": Case(
        "hostile.yaml", make, (["compare", "--rules", "hostile.yaml", GOLDEN, GOLDEN],), MALFORMED, says
    )
    for name, make, says in (
        ("pipe", hostile.pipe, "it is a pipe"),
        ("2 GB", sparse(TWO_GIGABYTES), "larger than 1,000,000 bytes"),
        ("billion laughs", text(YAML_BOMB), "an alias inside an anchored value"),
        ("zero device", link_to("/dev/zero"), "it is a device"),
    )
}
CANDIDATES = {
    f"candidate: {name}": Case(
        "candidates/first/cpu.json",
        instead(make),
        (["review", "candidates", "--json"], ["accept", "candidates", "--reason", "x", "--yes"]),
        UNREADABLE,
        says,
    )
    for name, make, says in (
        ("2 GB", sparse(TWO_GIGABYTES), "larger than 64 MB"),
        ("pipe", hostile.pipe, "it is a pipe"),
        ("link to a device", link_to("/dev/zero"), "it is a device"),
        ("depth", text(JSON_DEEP), "nested more than 64 levels"),
        ("a folder that is a link", lambda path: instead(link_to("OUTSIDE"))(path.parent), "a link to a folder"),
    )
}
OUTPUTS = {
    f"output: {name}": Case("linked", link_to("OUTSIDE"), (command,), USAGE, says)
    for name, command, says in (
        ("a report through a link", [*RUN, "--junit", "linked/report.xml"], "a link leads out of"),
        ("a report through dots and a link", [*RUN, "--junit", "goldens/../linked/x.xml"], "a link leads out of"),
        ("a report on a folder", [*RUN, "--junit", "goldens"], "it is a folder"),
        ("a report with a NUL", [*RUN, "--junit", "a\0b"], "is no path"),
        ("a report with no name", [*RUN, "--junit", ""], "is no path"),
        ("a JSON report through a link", [*RUN, "--report", "linked/report.json"], "a link leads out of"),
        ("candidates through a link", ["regen", "--reason", "x", "--out", "linked/new"], "a link leads out of"),
        ("a soak's report through a link", ["soak", "--report", "linked/report.md"], "a link leads out of"),
    )
}
ARGUMENTS = {
    f"argument: {name}": Case("nothing", hostile.folder, (command,), code, says)
    for name, command, code, says in (
        ("a revision that is an option", ["diff", "--", "--output=../outside/secret"], USAGE, "start with a dash"),
        ("a revision with a NUL", ["diff", "a\0b"], USAGE, "revision"),
        ("a fixture by path", [*RUN, "../../outside/secret"], 13, "no fixture"),
        ("a fixture as a huge glob", [*RUN, "*" * 3000 + "x"], 13, "no fixture"),
        ("a platform by path", [*RUN, "--platform", "../../outside"], USAGE, "no fixture is for the platform"),
        ("a root outside", ["--root", "/dev/null", "run"], USAGE, "has not both"),
        ("an adapter with a path", ["--adapter", "../x:Y", "run"], USAGE, 'expected "module:Class"'),
    )
}
CASES = (
    PATHS_OF_MODELS | PATHS_OF_PROMPTS | FILES_OF_PROMPTS | RECORDINGS | MANIFESTS | NAMES | WORKLOADS | MODELS
    | GOLDENS | FOLDERS_OF_GOLDENS | LINKS | CONFIGURATIONS | QUARANTINES | COMPARED | RULES_FILES | CANDIDATES
    | OUTPUTS | ARGUMENTS
)  # fmt: skip


class Children:
    """The process that forks children for the command line, and its pipes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.framework.hostile_child"],
            cwd=REPOSITORY,
            env={name: value for name, value in os.environ.items() if name != "CI"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, commands: tuple[list[str], ...]) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"folder": str(folder), "commands": commands, "memory_bytes": MEMORY_BYTES, "seconds": SECONDS}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        replies = json.loads(self._process.stdout.readline())
        assert isinstance(replies, list)
        return replies

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    made = Children()
    yield made
    made.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("hostile") / "root")
    root.write("first")
    root.regen()
    done = root.golden("regen", "--reason", "candidates", "--out", "candidates")
    assert done.returncode == 0, done.stderr
    (root.path / "rules.yaml").write_text(RULES)
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    """A root beside a folder that nothing may touch."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("the secret of somebody else\n")
    return recorded.copy(tmp_path / "root")


def snapshot(folder: Path, *, without: frozenset[str] = frozenset()) -> dict[str, object]:
    """Everything below a folder: kinds, sizes, times, and bytes of small files."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] in without or "__pycache__" in name:
            continue
        status = path.lstat()
        small = path.is_file() and not path.is_symlink() and status.st_size < 1_000_000
        found[name] = (status.st_mode, status.st_size, status.st_mtime_ns, path.read_bytes() if small else None)
    return found


def test_there_are_at_least_fifty_of_every_kind() -> None:
    assert len(CASES) >= 100


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_input_ends_with_a_clear_error_and_changes_nothing(
    name: str, toy: ToyRoot, children: Children
) -> None:
    case = CASES[name]
    path = toy.path / case.path
    path.parent.mkdir(parents=True, exist_ok=True)
    case.make(path)
    around = snapshot(toy.path.parent, without=frozenset({"root"}))
    inside = snapshot(toy.path, without=frozenset({".golden"}))
    for command, reply in zip(case.commands, children.run(toy.path, case.commands), strict=True):
        said = " ".join((reply["stdout"] + reply["stderr"]).split())
        assert reply["status"] == case.code, (command, reply)
        assert case.says in said, (command, said)
        assert "Traceback" not in said, command
        assert "internal error" not in said, command
        assert "secret of somebody else" not in said, command
        assert ExitCode(reply["status"]) is not ExitCode.GOOD
    assert snapshot(toy.path.parent, without=frozenset({"root"})) == around
    assert snapshot(toy.path, without=frozenset({".golden"})) == inside


ESCAPES = "\\e]0;owned\\a\\e[2J\\u202e<script>alert(1)</script> ::set-output name=x::y @everyone"
"""As it stands in double quotes in YAML."""


def test_escapes_and_html_of_a_manifest_control_neither_a_terminal_nor_a_report(
    toy: ToyRoot, children: Children
) -> None:
    path = toy.path / MANIFEST
    path.write_text(path.read_text().replace("prompts: [hello]", f'prompts: ["{ESCAPES}"]'))
    manifest_with(summary=f'"{ESCAPES}"', owner=f'"{ESCAPES}"')(path)
    toy.regen()
    toy.misbehave("random")
    files = {name: toy.path.parent / name for name in ("report.xml", "report.md")}
    run = [*RUN, "--rerun-mismatches", "1", "--junit", str(files["report.xml"]), "--markdown", str(files["report.md"])]
    replies = children.run(toy.path, (run, ["list"], ["explain", "first"], LINT, ["regen", "--reason", "x"]))
    assert [reply["status"] for reply in replies] == [1, 0, 0, 0, 1]
    printed = [reply[stream] for reply in replies for stream in ("stdout", "stderr")]
    for shown in (*printed, *(file.read_text() for file in files.values())):
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)
        assert not any(line.startswith("::") for line in shown.splitlines())
    assert all("<script>" not in file.read_text() for file in files.values())


STATE = {
    "last_verdicts.json": (["run"], ["explain", "first"]),
    "quarantine_passes.json": (["run"], ["quarantine"]),
    "durations.json": (["run"], ["run", "-j", "2"]),
}


@pytest.mark.parametrize("make", [hostile.pipe, sparse(TWO_GIGABYTES), text(JSON_DEEP), hostile.unix_socket])
@pytest.mark.parametrize("file", STATE)
def test_what_is_kept_for_later_may_be_damaged_and_nothing_hangs(
    file: str, make: Make, toy: ToyRoot, children: Children
) -> None:
    instead(make)(toy.path / ".golden" / file)
    for reply in children.run(toy.path, STATE[file]):
        assert reply["status"] == 0, reply
        assert "Traceback" not in reply["stderr"]


def test_a_root_that_is_reached_by_a_link_works(toy: ToyRoot, children: Children) -> None:
    link = toy.path.parent / "link"
    link.symlink_to(toy.path)
    for reply in children.run(link, (LINT, CHECK, RUN, ["--root", str(link), "run"])):
        assert reply["status"] == 0, reply


def test_a_real_process_ends_the_same(toy: ToyRoot) -> None:
    sparse(TWO_GIGABYTES)(toy.golden_path("first"))
    done = toy.golden("run")
    assert done.returncode == UNREADABLE
    assert "larger than 64 MB" in done.stdout


def test_pickled_weights_are_never_executed_by_a_run(toy: ToyRoot) -> None:
    """The engine itself is asked: its process imports torch, so this one takes seconds."""
    model = toy.path / "fixtures" / "models" / "pickled"
    shipped = REPOSITORY / "fixtures" / "models" / "storyteller-llama-1m"
    model.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (model / name).write_bytes((shipped / name).read_bytes())
    executed = toy.path.parent / "outside" / "executed"
    command = f"cos\nmkdir\n(V{executed}\ntR."
    (model / "pytorch_model.bin").write_bytes(command.encode())
    manifest_with(model="pickled")(toy.path / MANIFEST)
    (toy.path / "pyproject.toml").unlink()
    done = toy.golden(*REFERENCE, "regen", "--reason", "x", "--yes")
    assert done.returncode == ENGINE, done.stdout + done.stderr
    assert "pickled weights only" in done.stdout + done.stderr
    assert not executed.exists()
