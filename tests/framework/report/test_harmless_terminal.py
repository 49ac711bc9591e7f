"""Whatever manifests, goldens and engines say, no verb lets it control a terminal, an editor's table, or a pipeline."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from tests.framework.quarantine.entries import entry_text, write_quarantine
from tests.framework.toy_root import ToyRoot, make_toy_root

HOSTILE = (
    r'"\e[31mred\e[0m \e]0;title\a \u202Eback\u2066 [red]bold[/red] [link=http://x]y[/link] \u009B5n \u007F \r'
    r'\n::error::owned\n\u3000::add-mask::x\n##[error]x ##vso[x]"'
)
OWNER = '"@ada [red]x[/red] ##[x] ::error::y"'  # controls are refused there
REASON = "because\x1b[2J\u202e\n::error::owned ##[x]"
HIDDEN = "hunter2-hunter2-hunter2-hunter2-hunter2-hunter2"
STYLE = re.compile(r"\x1b\[[0-9;]*m")
VERBS = [
    ["run"],
    ["run", "--rerun-mismatches", "1"],
    ["run", "no\x1b[2Jthing"],
    ["check"],
    ["list"],
    ["list", "--tag", "\x9b\u202e"],
    ["which", "hostile"],
    ["explain", "hostile"],
    ["diff", "HEAD"],
    ["diff", "\x1b[2J"],
    ["compare", "--rules", "rules.yaml", "goldens/hostile/cpu.json", "other.json"],
    ["lint"],
    ["quarantine"],
    ["models", "list"],
    ["prune", "--yes"],
    ["regen", "hostile", "--reason", REASON, "--out", "others"],
    ["review", "candidates"],
    ["accept", "candidates", "--reason", REASON, "--yes"],
    ["reject", "--yes"],
    ["soak", "hostile", "--runs", "2", "--slow-runs", "2"],
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    """A root in which every text that somebody may choose is hostile, in the manifest and so in the golden."""
    root = make_toy_root(tmp_path_factory.mktemp("hostile") / "root")
    path = root.write("hostile", prompts=HOSTILE, rules=f"ignore: {{margins: {HOSTILE}}}", more=f"owner: {HOSTILE}")
    hostile = HOSTILE.replace('x]"', f'x] {HIDDEN}"')
    path.write_text(path.read_text().replace("summary: the toy gives what it gave before", f"summary: {hostile}"))
    for where in (["--out", "candidates"], ["--yes"]):
        done = root.golden("regen", "--reason", REASON, *where)
        assert done.returncode == 0, done.stdout + done.stderr
    (root.path / "rules.yaml").write_text(
        "assert: {generated_text: exact}\ninform: [generated_tokens, finish_reason, counters, performance]\n"
        f"ignore: {{generated_logprobs: {HOSTILE}}}\n"
    )
    document = json.loads(root.golden_path("hostile").read_text())
    document["requests"]["0"]["generated_text"] = document["fixture"] = "\x1b[2J\x9b\u202e\n::error::owned\n##[x]"
    document["schema"] = "golden.record/1"
    (root.path / "other.json").write_text(json.dumps(document))
    adapter = root.path / "toy_adapter.py"
    raising = "raise RuntimeError('\\x1b[2J \\x9b \\u202e\\n::error::owned\\n##[x]')"
    adapter.write_text(adapter.read_text().replace('raise RuntimeError("the toy fell over")', raising))
    return root


def copied(recorded: ToyRoot, folder: Path, fault: str) -> ToyRoot:
    toy = recorded.copy(folder / "root")
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.invalid", "-c", "commit.gpgsign=false"]
    for git in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *git], cwd=toy.path, check=True, timeout=60)
    write_quarantine(toy.path, entry_text("hostile", kind="TEXT").replace("'@ada'", OWNER))
    toy.misbehave(fault)
    return toy


def controls(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") and char not in "\n\t"}


def assert_harmless(text: str) -> None:
    assert controls(text) == set()
    assert not re.search(r"^\s*::|##[a-z]*\[", text, re.MULTILINE)
    assert HIDDEN[:12] not in text
    assert "Traceback" not in text


@pytest.mark.parametrize(("fault", "verbs"), [("random", VERBS), ("crash", VERBS[:1])], ids=["random", "crash"])
def test_no_verb_lets_a_text_control_the_terminal(
    recorded: ToyRoot,
    tmp_path: Path,
    fault: str,
    verbs: list[list[str]],
) -> None:
    toy = copied(recorded, tmp_path, fault)
    for verb in verbs:
        for form in ([], ["--json"]):
            done = toy.golden(*verb, *form, MY_SECRET=HIDDEN)
            assert_harmless(done.stdout)
            assert_harmless(done.stderr)
            assert done.stdout or done.stderr, verb
            assert done.returncode != 10, done.stderr  # or nothing hostile would have been shown
            if form:
                json.loads(done.stdout)


def test_markup_in_a_text_is_the_text(recorded: ToyRoot) -> None:
    assert "[red]bold[/red] [link=http://x]y[/link]" in re.sub(r"\s+", " ", recorded.golden("list").stdout)


@pytest.mark.parametrize("verb", [["run"], ["list"], ["models", "list"], ["quarantine"]], ids=lambda verb: verb[0])
def test_on_a_terminal_only_our_own_styles_are_control(recorded: ToyRoot, tmp_path: Path, verb: list[str]) -> None:
    toy = copied(recorded, tmp_path, "random")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "framework", *verb]
    environment = toy.environment(TERM="xterm", COLUMNS="80", MY_SECRET=HIDDEN)
    with subprocess.Popen(command, cwd=toy.path, env=environment, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        shown = b""
        while data := _read(ours):
            shown += data
        process.wait(timeout=60)
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    assert STYLE.search(text)
    assert "\x1b[31mred" not in text
    assert_harmless(STYLE.sub("", text))


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the other end is closed
        return b""


def test_only_the_commands_that_are_asked_for_reach_the_pipeline(recorded: ToyRoot, tmp_path: Path) -> None:
    toy = recorded.copy(tmp_path / "root")
    toy.misbehave("crash")
    done = toy.golden("run", "--github", GITHUB_ACTIONS="true")
    commands = [line for line in done.stderr.splitlines() if line.lstrip().startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith("::error file=fixtures/hostile.yaml,line=1,title=hostile%3A ERROR ENGINE_CRASH::")
    assert not [line for line in done.stdout.splitlines() if line.lstrip().startswith("::")]
