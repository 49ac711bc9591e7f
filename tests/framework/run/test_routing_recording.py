from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.config import ConfigError
from framework.golden.document import RECORD_SCHEMA
from framework.manifest.load import load_manifest
from framework.run.reference_engine import ReferenceEngine
from framework.run.routing_recording import main
from tests.engine.model.checkpoints import TINY_MIXTRAL, write_checkpoint
from tests.framework.toy_root import REPOSITORY

MODELS = REPOSITORY / "fixtures" / "models"
MODEL = MODELS / "storyteller-moe-1m"
MANIFEST = """\
manifest: 1
name: {name}
summary: "Two prompts."
model: storyteller-moe-1m
engine: {{async_sched_mode: legacy, moe_enable_routing_replay: true, num_threads: 1{more}}}
workload:
  prompts: [{{token_ids: [5, 9, 700]}}, {{token_ids: [8]}}]
  sampling: {{max_new_tokens: 4, ignore_eos: true, logprobs: true}}
assert: {{generated_tokens: exact, routing_indices: sequence}}
inform: [generated_text, finish_reason, generated_logprobs, counters, performance]
"""


def record_of(root: Path, name: str, more: str = "", engine: ReferenceEngine | None = None) -> dict[str, Any]:
    path = root / "fixtures" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MANIFEST.format(name=name, more=more))
    fixture = load_manifest(path, fixtures_root=root / "fixtures")
    return (engine or ReferenceEngine()).run(fixture, model_path=MODEL, platform="cpu", overrides={})


def test_the_recording_of_a_record_replays_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ReferenceEngine()
    recorded = record_of(tmp_path, "routing/record", engine=engine)
    (tmp_path / "record.json").write_text(json.dumps(recorded))
    recording = tmp_path / "fixtures" / "routing" / "recording.json"
    assert main([str(tmp_path / "record.json"), str(MODEL), str(recording)]) == 0
    assert "routing of 2 requests" in capsys.readouterr().out
    replayed = record_of(tmp_path, "routing/replay", ", routing_replay_path: recording.json", engine)
    assert replayed["requests"] == recorded["requests"]
    assert replayed["requests"]["0"]["routing_indices"][:3] != []
    assert [len(replayed["requests"][key]["routing_indices"]) for key in "01"] == [6, 4]
    assert replayed["counters"]["routing_replayed_token_count"] == 10
    assert replayed["settings"]["routing_replay_path"] == {"value": "recording.json", "source": "pinned"}


@pytest.mark.parametrize("path", ["../../../elsewhere.json", "/etc/hostname", "../../../../../etc/hostname"])
def test_a_recording_outside_the_repository_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"routing_replay_path: '{path}' leaves the repository"):
        record_of(tmp_path, "routing/replay", f", routing_replay_path: {path}")


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"fixtures/routing/absent\.json: cannot be read: No such file"):
        record_of(tmp_path, "routing/replay", ", routing_replay_path: absent.json")


REQUEST = {"prompt_tokens": [1], "routing_indices": [[[0, 1]] * 4]}


@pytest.mark.parametrize(
    ("document", "model", "words", "code"),
    [
        ({"schema": RECORD_SCHEMA, "requests": {}}, MODEL, "no request has routing_indices", 12),
        ({"schema": RECORD_SCHEMA, "requests": {"0": {"prompt_tokens": [1]}}}, MODEL, "no request has routing", 12),
        ({"schema": RECORD_SCHEMA, "requests": {"0": REQUEST}, "hashes": {"model": "x"}}, MODEL, "another model", 12),
        ({"schema": "x", "requests": {}}, MODEL, "not a record", 12),
        ({"schema": RECORD_SCHEMA, "requests": {"0": REQUEST}}, MODELS / "storyteller-llama-1m", "dense model", 2),
        ({"schema": RECORD_SCHEMA, "requests": {"0": REQUEST}}, MODELS / "absent", "no such file", 2),
    ],
)
def test_a_record_that_makes_no_recording_is_refused(
    document: dict[str, Any], model: Path, words: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "record.json").write_text(json.dumps(document))
    assert main([str(tmp_path / "record.json"), str(model), str(tmp_path / "recording.json")]) == code
    assert words in capsys.readouterr().err
    assert not (tmp_path / "recording.json").exists()


def test_routing_that_does_not_fit_the_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_checkpoint(tmp_path / "model", **TINY_MIXTRAL)
    (tmp_path / "record.json").write_text(json.dumps({"schema": RECORD_SCHEMA, "requests": {"0": REQUEST}}))
    assert main([str(tmp_path / "record.json"), str(model), str(tmp_path / "recording.json")]) == 2
    assert "must have 2 lists" in capsys.readouterr().err
    assert not (tmp_path / "recording.json").exists()
