"""What the engine cannot do is refused as a manifest error, before it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from framework.cli import run
from tests.framework.toy_adapter import ToyEngine

ADAPTER = "tests.framework.verbs.test_refused_sampling:GreedyEngine"
MANIFEST = """\
manifest: 1
name: a
summary: It asks for what the engine cannot do.
model: small
workload:
  prompts: [hello]
  sampling: {sampling}
assert: {{generated_tokens: exact}}
witness: [counters.step_count > 0]
"""


class GreedyEngine(ToyEngine):
    """An engine that does nothing but take the best token."""

    def check_sampling(self, sampling: Mapping[str, Any]) -> None:
        if wrong := next((name for name in sampling if name != "max_new_tokens"), None):
            raise ValueError(f"sampling {wrong}: {sampling[wrong]!r} is not something this engine can do")
        if not sampling["max_new_tokens"]:
            raise ValueError("sampling max_new_tokens: 0 is not something this engine can do")


@pytest.mark.parametrize(
    ("sampling", "named"),
    [
        ("{temperature: 0.7}", "temperature"),
        ("{max_new_tokens: 4, top_k: 3}", "top_k"),
        ("{top_p: 0.5}", "top_p"),
        ("{seed: 1}", "seed"),
        ("{stop_strings: [a]}", "stop_strings"),
        ("{prompt_logprobs: true}", "prompt_logprobs"),
        ("{top_n: 2}", "top_n"),
        ("{max_new_tokens: 0}", "max_new_tokens"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "lint", "check"])
def test_sampling_the_engine_cannot_do_names_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, sampling: str, named: str
) -> None:
    model = tmp_path / "fixtures" / "models" / "small"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (tmp_path / "goldens").mkdir()
    (tmp_path / "fixtures" / "a.yaml").write_text(MANIFEST.format(sampling=sampling))
    assert run(["--root", str(tmp_path), "--adapter", ADAPTER, verb, "--json"]) == 10
    document = json.loads(capsys.readouterr().out)
    if verb == "lint":
        found = [problem for problem in document["problems"] if problem["severity"] == "error"]
        assert [(problem["file"], problem["line"]) for problem in found] == [("fixtures/a.yaml", 7)]
        assert [problem["path"] for problem in found] == [f"workload.sampling.{named}"]
    else:
        assert document["error"].startswith(f"fixtures/a.yaml:7: workload.sampling.{named}: ")
