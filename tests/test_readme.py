"""The README's commands are run as they stand, in a copy of the fixtures; `.venv/bin` stands for this environment."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.counters import Counters
from tests.fixtures.scratch import REPOSITORY, copy_of_the_shipped

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
IDENTITY = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.invalid", "-c", "commit.gpgsign=false"]
COMMANDS = re.findall(r"^\.venv/bin/(.+?)(?:\s+#.*)?$", README, re.MULTILINE)


def test_the_readme_shows_commands() -> None:
    assert len(COMMANDS) >= 7


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_works(command: str, tmp_path: Path) -> None:
    program, *arguments = shlex.split(command)
    start = {"golden": ["-m", "framework"], "python": []}[program]
    scratch = copy_of_the_shipped(tmp_path / "root")
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, scratch.root)
    for git in (["init", "--quiet"], ["add", "--all"], [*IDENTITY, "commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *git], cwd=scratch.root, check=True, timeout=60)
    variables = {name: value for name, value in os.environ.items() if name not in {"CI", "PYTEST_XDIST_WORKER"}}
    ours, theirs = pty.openpty()  # `regen` asks a person, and a person has a terminal
    os.write(ours, b"y\n")
    done = subprocess.run(
        [sys.executable, *start, *arguments],
        cwd=scratch.root,
        env={**variables, "PYTHONPATH": f"{scratch.root}{os.pathsep}{REPOSITORY}"},
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_the_make_targets_of_the_readme_run_what_it_says() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^run:.*\n\t@\$\(BIN\)/golden run$", makefile, re.MULTILINE)
    assert re.search(r"^test:.*\n\t@\$\(BIN\)/python -m pytest ", makefile, re.MULTILINE)
    assert "make run" in README
    assert "make test" in README


def test_ci_runs_exactly_the_test_command_of_the_readme() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    assert script.splitlines()[-1] == "make test"


def test_every_link_of_the_documentation_leads_to_a_file() -> None:
    pages = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_counter_is_documented() -> None:
    text = (REPOSITORY / "docs" / "counters.md").read_text(encoding="utf-8")
    assert [name for name in Counters().as_dict() if f"| `{name}` |" not in text] == []
