from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.config import ConfigError, InferenceConfig, settings
from engine.request import SamplingParams
from framework.run.reference_engine import ReferenceEngine, _sampling
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


def test_sampling_is_passed_on_and_what_asks_for_nothing_is_accepted() -> None:
    given = {"max_new_tokens": 3, "stop_token_ids": [5], "ignore_eos": True, "logprobs": True, "temperature": 0}
    expected = SamplingParams(max_new_tokens=3, stop_token_ids=frozenset({5}), ignore_eos=True, logprobs=True)
    assert _sampling(given) == expected


def test_sampling_the_engine_cannot_do_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"temperature 0\.7"):
        _sampling({"temperature": 0.7})


def test_everything_short_of_a_run_works_without_torch() -> None:
    code = (
        "import sys; from framework.run.reference_engine import ReferenceEngine as E; e = E();"
        "e.describe(); e.check_settings({}); e.platforms(); e.revision(); e.environment_variants();"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False, timeout=60).returncode == 0
