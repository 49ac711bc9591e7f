from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from framework import cli
from tests.framework.toy_root import ToyRoot, make_toy_root

VERBS = ("run", "compare", "check", "list", "which", "explain", "lint", "regen")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_json(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--json" in shown
    assert "exit codes: 0 good" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: VERB"),
        (["rnu"], "rnu"),
        (["run", "--nope"], "--nope"),
        (["compare", "a", "b"], "--rules"),
        (["regen"], "--reason"),
    ],
)
def test_a_wrong_call_is_a_usage_error_of_one_line(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert len(shown.err.splitlines()) == 1
    assert cli.run([*arguments, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["exit_code"]) == ("ERROR", 2)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("cli"))
    root.write("a")
    root.regen()
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


def shell(toy: ToyRoot, command: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command line in which `golden` is the command; its exit code is that of the first one in a pipe."""
    text = f'golden() {{ {sys.executable} -m framework "$@"; }}; {command}; exit ${{PIPESTATUS[0]}}'
    bash = ["bash", "-c", text]
    return subprocess.run(bash, cwd=toy.path, env=toy.environment(), capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize("sink", ["| true", "> /dev/full", ">&-"])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("golden --help", 0),
        ("golden list", 0),
        ("golden list --json", 0),
        ("golden check", 0),
        ("golden run a", 1),
        ("golden run a --json", 1),
        ("golden run nothing --json", 13),
    ],
)
def test_output_that_nobody_takes_leaves_the_exit_code_alone(
    toy: ToyRoot,
    command: str,
    code: int,
    sink: str,
) -> None:
    if code == 1:
        (toy.path / "toy_default_fault").write_text("random")
    done = shell(toy, f"{command} {sink}")
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    if "--help" not in command:  # argparse keeps silent about its own help where it notices itself
        assert (b"No space left" in done.stderr) is (sink == "> /dev/full")


def test_errors_that_nobody_reads_leave_the_exit_code_alone(toy: ToyRoot) -> None:
    for sink in ("2>&-", "2> /dev/full", "> /dev/full 2> /dev/full", ">&- 2>&- <&-"):
        assert shell(toy, f"golden list nothing {sink}").returncode == 13
        assert shell(toy, f"golden run a {sink}").returncode == 0


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have told its background jobs to ignore it
from framework import cli
cli.main(sys.argv[1:])
"""


@pytest.mark.parametrize("form", ["--json", None])
def test_an_interrupt_ends_with_its_own_code(toy: ToyRoot, form: str | None) -> None:
    (toy.path / "toy_default_fault").write_text("hang")
    command = [sys.executable, "-c", INTERRUPTED, "run", *([form] if form else [])]
    adapter, head = toy.path / "toy_adapter.py", "def _hang_here() -> None:\n"
    adapter.write_text(adapter.read_text().replace(head, f"{head}    Path('running').touch()\n"))
    with subprocess.Popen(command, cwd=toy.path, env=toy.environment(), stdout=-1, stderr=-1, text=True) as process:
        for _ in range(600):
            if (toy.path / "running").exists():
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == "golden: interrupted\n"
    if form:
        assert json.loads(shown) == {"verdict": "ERROR", "exit_code": 130, "error": "interrupted"}


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_fault_of_the_command_is_one_line_and_no_regression(toy: ToyRoot, debug: str) -> None:
    with (toy.path / "toy_adapter.py").open("a") as stream:
        stream.write("\ndef broken(self): raise KeyError('odd')\nToyEngine.describe = broken\n")
    done = toy.golden("check", "--json", GOLDEN_DEBUG=debug)
    assert done.returncode == 11
    document = json.loads(done.stdout)
    assert (document["verdict"], document["exit_code"]) == ("ERROR", 11)
    assert document["error"].startswith("internal error: KeyError: 'odd' (at ")
    assert "please report it" in document["error"]
    assert ("Traceback" in done.stderr) is bool(debug)
    assert debug or len(done.stderr.splitlines()) == 1


def test_an_engine_that_cannot_be_imported_is_one_line_with_its_place(toy: ToyRoot) -> None:
    (toy.path / "toy_adapter.py").write_text("import os\ndef x(:\n")
    for verb in ("run", "check", "lint"):
        done = toy.golden(verb, "--json")
        assert done.returncode == 11
        assert "toy_adapter.py:2" in json.loads(done.stdout)["error"]
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--js"],
        ["run", "--plat", "cpu"],
        ["--roo", ".", "list"],
        ["--root", "", "list"],
        ["--root", "a\0", "list"],
    ],
)
def test_flags_are_written_out_and_paths_are_paths(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
