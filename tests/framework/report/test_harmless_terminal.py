"""Whatever manifests and engines say, no verb lets it control a terminal, an editor's table, or a pipeline."""

from __future__ import annotations

import re
import unicodedata

import pytest

from tests.framework.toy_root import ToyRoot, make_toy_root

HOSTILE = r'"\e[31mred\e[0m \u202Eback\u2066 [red]bold[/red] [link=http://x]y[/link] \u009B5n\n::error::owned\n##[x]"'
VERBS = [["run"], ["check"], ["list"], ["which", "hostile"], ["explain", "hostile"], ["lint"], ["quarantine"]]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("hostile"))
    path = root.write("hostile", prompts=HOSTILE, rules=f"ignore: {{margins: {HOSTILE}}}", more=f"owner: {HOSTILE}")
    path.write_text(path.read_text().replace("summary: the toy gives what it gave before", f"summary: {HOSTILE}"))
    root.regen()
    root.misbehave("random")
    return root


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb[0]))
def test_no_verb_lets_a_text_control_the_terminal(toy: ToyRoot, verb: list[str]) -> None:
    done = toy.golden(*verb)
    assert "Traceback" not in done.stderr
    for stream in (done.stdout, done.stderr):
        controls = {char for char in stream if unicodedata.category(char) in ("Cc", "Cf") and char not in "\n\t"}
        assert controls == set()
        assert not re.search(r"^[ \t]*::|##\[", stream, re.MULTILINE)
    if verb == ["list"]:
        assert "[red]bold[/red]" in re.sub(r"\s+", " ", done.stdout)


def test_only_the_commands_that_are_asked_for_reach_the_pipeline(toy: ToyRoot) -> None:
    done = toy.golden("run", "--github")
    commands = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith("::error file=fixtures/hostile.yaml,line=")
