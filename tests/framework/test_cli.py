from __future__ import annotations

import json
import subprocess
import sys

import pytest

from framework import cli
from tests.framework.toy_root import REPOSITORY

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


def test_a_reader_that_has_enough_is_no_error() -> None:
    command = f"{sys.executable} -m framework --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=REPOSITORY, capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, b"")
