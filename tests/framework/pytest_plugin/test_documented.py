"""docs/pytest.md: its commands are ones that pytest takes and that select something, and it has every option."""

from __future__ import annotations

import shlex

import pytest

from framework import plugin
from tests.framework.pytest_plugin.driving import run_pytest
from tests.framework.toy_root import REPOSITORY, ToyRoot

PAGE = (REPOSITORY / "docs" / "pytest.md").read_text(encoding="utf-8")
COMMANDS = [line.partition("  #")[0] for line in PAGE.splitlines() if line.startswith("pytest ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_selects_fixtures(toy: ToyRoot, command: str) -> None:
    toy.write("scheduling/waves")
    done = run_pytest(toy, *shlex.split(command)[1:], "--collect-only", "-q", "-n", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no tests" not in done.stdout


def test_every_option_is_documented(pytestconfig: pytest.Config) -> None:
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    names = [name for group in parser._groups for option in group.options for name in option.names()]
    assert "--golden-report" in names
    assert [name for name in names if f"`{name}" not in PAGE] == []
    assert "golden_adapter" in PAGE
