"""Routing that the engine refuses is a manifest error with its line, in the engine's own words, before it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.config import ConfigError, InferenceConfig
from framework.cli import run

MANIFEST = """\
manifest: 1
name: sub/a
summary: It asks for routing that cannot be had.
model: small
engine:
{engine}
workload:
  prompts: [hello]
assert: {{generated_tokens: exact}}
witness: [counters.step_count > 0]
"""
LEGACY = "  async_sched_mode: legacy\n  moe_enable_routing_replay: true\n  routing_replay_path: "


def asynchronous_words() -> str:
    with pytest.raises(ConfigError) as caught:
        InferenceConfig(moe_enable_routing_replay=True)
    return str(caught.value)


@pytest.mark.parametrize(
    ("engine", "line", "path", "words"),
    [
        ("  moe_enable_routing_replay: true", 6, "moe_enable_routing_replay", asynchronous_words()),
        (
            "  max_tokens: 64\n  moe_enable_routing_replay: true\n  async_sched_mode: async",
            7,
            "moe_enable_routing_replay",
            asynchronous_words(),
        ),
        ("  routing_replay_path: there.json", 6, "routing_replay_path", "moe_enable_routing_replay is false"),
        (LEGACY + "absent.json", 8, "routing_replay_path", "'absent.json' is no file in the manifest's folder"),
        (LEGACY + "../../../there.json", 8, "routing_replay_path", "leaves the repository"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "lint"])
def test_routing_that_cannot_be_had_names_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, engine: str, line: int, path: str, words: str
) -> None:
    root = tmp_path / "root"
    model = root / "fixtures" / "models" / "small"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (root / "goldens").mkdir()
    (root / "fixtures" / "sub").mkdir()
    (root / "fixtures" / "sub" / "a.yaml").write_text(MANIFEST.format(engine=engine))
    for folder in (tmp_path, root / "fixtures" / "sub"):
        (folder / "there.json").write_text("{}")
    assert run(["--root", str(root), verb, "--json"]) == 10
    document = json.loads(capsys.readouterr().out)
    if verb == "lint":
        (found,) = [problem for problem in document["problems"] if problem["severity"] == "error"]
        assert (found["file"], found["line"], found["path"]) == ("fixtures/sub/a.yaml", line, f"engine.{path}")
        message = found["message"]
    else:
        message = document["error"]
        assert message.startswith(f"fixtures/sub/a.yaml:{line}: engine.")
    assert words in message
