"""What docs/reports.md says is what `golden run` does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from framework import cli
from framework.report.markdown import LARGEST
from framework.report.neutral import neutral
from tests.framework.toy_root import REPOSITORY, make_toy_root

TEXT = (REPOSITORY / "docs" / "reports.md").read_text(encoding="utf-8")


def test_its_commands_work_and_its_names_are_those_of_the_reports(tmp_path: Path) -> None:
    toy = make_toy_root(tmp_path / "root")
    toy.write("a")
    toy.regen()
    commands = re.findall(r"(?:^|- run: )golden (run .*)$", TEXT, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        arguments = shlex.split(command.replace("$GITHUB_STEP_SUMMARY", "summary.md"))
        done = toy.golden(*arguments, GITHUB_WORKSPACE=str(toy.path))
        assert done.returncode == 0, done.stderr
    assert all((toy.path / name).is_file() for name in ("run.json", "run.md", "run.xml", "summary.md"))
    _, document = toy.json("run")
    rows = re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    assert rows == list(document["timing"])
    last = toy.golden("run").stdout.splitlines()[-1]
    pattern = re.escape("The framework around the engine took N s of N s (N%).").replace("N", r"[\d.]+")
    assert re.fullmatch(pattern, last)
    assert re.search(pattern, TEXT)


def test_its_options_are_those_of_the_command_and_its_codes_those_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "--help"]) == 0
    offered = capsys.readouterr().out
    options = re.findall(r"^\| `(--\w+)", TEXT, re.MULTILINE)
    assert len(options) == 5
    assert [option for option in options if option not in offered] == []
    assert f"{LARGEST:,} bytes" in TEXT
    for text in ("::error::", "##[error]", "\x1b", "\u202e"):
        assert f"`{neutral(text)}`" in TEXT
