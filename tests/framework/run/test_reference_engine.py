from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.config import ConfigError, InferenceConfig, settings
from engine.request import (
    FinishReason,
    Request,
    RequestOutput,
    RequestState,
    Sample,
    SamplingParams,
    TokenLogprob,
    sampling_parameters,
)
from framework.errors import ManifestError
from framework.run.adapter import ChecksSampling
from framework.run.reference_engine import ReferenceEngine, _request_record, _sampling
from tests.framework.toy_root import REPOSITORY


def test_every_setting_of_the_engine_is_described_with_its_default() -> None:
    described = ReferenceEngine().describe()
    assert described.keys() == settings().keys()
    assert {name: each.default for name, each in described.items()} == {
        name: getattr(InferenceConfig(), name) for name in settings()
    }


def test_settings_the_engine_refuses_are_refused_in_its_own_words() -> None:
    with pytest.raises(ConfigError, match="async_sched_mode"):
        ReferenceEngine().check_settings({"async_sched_mode": "sometimes"})
    ReferenceEngine().check_settings({"async_sched_mode": "legacy"})


def test_a_cpu_is_always_there_and_comes_last() -> None:
    assert ReferenceEngine().platforms()[-1] == "cpu"


def test_hashes_see_weights_and_tokenizer_apart(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text(name)
    before = ReferenceEngine().model_hashes(tmp_path)
    (tmp_path / "README.md").write_text("not part of the model")
    assert ReferenceEngine().model_hashes(tmp_path) == before
    (tmp_path / "tokenizer.json").write_text("another")
    after = ReferenceEngine().model_hashes(tmp_path)
    assert after["model"] == before["model"]
    assert after["tokenizer"] != before["tokenizer"]
    (tmp_path / "model.safetensors").write_text("another")
    assert ReferenceEngine().model_hashes(tmp_path)["model"] != before["model"]


def model_with_shards(folder: Path, names: list[str]) -> None:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    index = {"weight_map": {f"tensor {number}": name for number, name in enumerate(names)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)


@pytest.mark.parametrize("name", ["part-1.safetensors", "part-1.bin", "part-1", "deep/part-1.safetensors"])
def test_every_file_the_index_names_is_hashed(tmp_path: Path, name: str) -> None:
    model = tmp_path / "model"
    model_with_shards(model, ["part-0.safetensors", name])
    before = ReferenceEngine().model_hashes(model)
    assert ReferenceEngine().model_hashes(model) == before
    (model / name).write_text("other weights")
    after = ReferenceEngine().model_hashes(model)
    assert after["model"] != before["model"]
    assert after["tokenizer"] == before["tokenizer"]


@pytest.mark.parametrize(
    "index",
    [
        "{",
        "[]",
        "{}",
        '{"weight_map": 5}',
        '{"weight_map": {"a": 5}}',
        '{"weight_map": {"a": []}}',
        '{"weight_map": {"a": "missing"}}',
        '{"weight_map": {"a": "."}}',
        '{"weight_map": {"a": "b\\u0000"}}',
        "[" * 100_000,
        '{"weight_map": {"a": "' + "a" * 300 + '"}}',
    ],
)
def test_an_index_that_names_no_files_is_an_error_with_its_path(tmp_path: Path, index: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ManifestError, match="the model cannot be read") as caught:
        ReferenceEngine().model_hashes(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_what_only_looks_like_a_file_of_the_model_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()
    with pytest.raises(ManifestError, match=r"x\.json: the model cannot be read: it is no file"):
        ReferenceEngine().model_hashes(tmp_path)
    (tmp_path / "x.json").rmdir()
    (tmp_path / "y.safetensors").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ManifestError, match=r"y\.safetensors: the model cannot be read: No such file"):
        ReferenceEngine().model_hashes(tmp_path)
    with pytest.raises(ManifestError, match="recipe"):
        ReferenceEngine().model_hashes(tmp_path / "recipe")


def test_sampling_is_passed_on() -> None:
    given = {
        "max_new_tokens": 0,
        "stop_token_ids": [5],
        "stop_strings": ["a", "b"],
        "ignore_eos": True,
        "logprobs": True,
        "prompt_logprobs": True,
        "temperature": 0.7,
        "top_k": 4,
        "top_p": 0.9,
        "min_p": 0.1,
        "seed": 3,
        "top_n": 2,
    }
    expected = SamplingParams(
        **{**given, "stop_token_ids": frozenset({5}), "stop_strings": ("a", "b")}  # type: ignore[arg-type]
    )
    assert _sampling(given) == expected
    assert given.keys() == SamplingParams.__dataclass_fields__.keys()


def test_the_manifest_has_every_sampling_parameter_of_the_engine_with_its_bounds() -> None:
    schema = json.loads((REPOSITORY / "framework" / "manifest" / "manifest.schema.json").read_text())
    described = schema["$defs"]["sampling"]["properties"]
    assert described.keys() == SamplingParams.__dataclass_fields__.keys()
    for name, parameter in sampling_parameters().items():
        bounds = {key: described[name].get(key) for key in ("minimum", "exclusiveMinimum", "maximum")}
        expected = {"minimum": parameter.minimum, "exclusiveMinimum": parameter.above, "maximum": parameter.maximum}
        assert bounds == expected, name


def test_everything_short_of_a_run_works_without_torch() -> None:
    code = (
        "import sys; from framework.run.reference_engine import ReferenceEngine as E; e = E();"
        "e.describe(); e.check_settings({}); e.platforms(); e.revision(); e.environment_variants();"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("sampling", "named"),
    [
        ({"temperature": -0.7}, "temperature: -0.7 is below its minimum 0"),
        ({"top_p": 0.0}, "top_p: 0.0 is not above 0"),
        ({"top_n": 1001}, "top_n: 1001 is above its maximum 1000"),
        ({"stop_strings": [""]}, "stop_strings: ''"),
        ({"beam_width": 4}, "beam_width: 4 is not something this engine can do; leave it out"),
    ],
)
def test_sampling_the_engine_cannot_do_is_refused_before_it_starts(sampling: dict[str, object], named: str) -> None:
    adapter = ReferenceEngine()
    assert isinstance(adapter, ChecksSampling)
    adapter.check_sampling({"max_new_tokens": 4, "temperature": 0.0, "ignore_eos": True, "stop_token_ids": [1]})
    with pytest.raises(ValueError, match=f"sampling {named}"):
        adapter.check_sampling({"max_new_tokens": 4} | sampling)


def test_a_request_record_holds_what_was_asked_for_and_no_more() -> None:
    asking = SamplingParams(logprobs=True, prompt_logprobs=True, top_n=2)
    state = RequestState.start(Request("0", (3, 4), asking), frozenset())
    state.prompt_logprobs.append(-0.5)
    state.promised = 1
    state.accept(Sample(7, -0.25, 1.5, (TokenLogprob(7, -0.25), TokenLogprob(2, -1.75))))
    state.finish_reason = FinishReason.LENGTH
    assert _request_record(state.output()) == {
        "prompt_tokens": [3, 4],
        "generated_tokens": [7],
        "generated_text": "",
        "finish_reason": "length",
        "margins": [1.5],
        "generated_logprobs": [-0.25],
        "prompt_logprobs": [-0.5],
        "top_n_logprobs": [[{"token_id": 7, "logprob": -0.25}, {"token_id": 2, "logprob": -1.75}]],
    }
    refused = _request_record(RequestOutput.failed(Request("0", (3, 4)), "too long"))
    assert refused.keys() == {
        "prompt_tokens",
        "generated_tokens",
        "generated_text",
        "finish_reason",
        "margins",
        "error",
    }
