from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.model import ModelError, read_shape
from engine.model.expert_tensors import MoeShape
from tests.engine.model.checkpoints import TINY_MIXTRAL, TINY_QWEN3_MOE, write_config


def test_the_shape_is_read_from_the_config(tmp_path: Path) -> None:
    shape = read_shape(write_config(tmp_path, attention_bias=True, rope_theta=5e5))
    assert (shape.family, shape.num_layers, shape.hidden_size, shape.head_dim) == ("llama", 2, 64, 16)
    assert (shape.num_query_heads, shape.num_kv_heads, shape.intermediate_size) == (4, 2, 160)
    assert (shape.vocab_size, shape.max_position_embeddings, shape.rope_theta) == (259, 2048, 5e5)
    assert (shape.qkv_bias, shape.output_bias, shape.mlp_bias, shape.qk_norm) == (True, True, False, False)


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"num_key_value_heads": None}, "num_kv_heads", 4),
        ({"head_dim": 32}, "head_dim", 32),
        ({"model_type": "qwen3"}, "head_dim", 128),
        ({"model_type": "qwen3"}, "qk_norm", True),
        ({"model_type": "qwen2"}, "qkv_bias", True),
        ({"model_type": "qwen2"}, "output_bias", False),
        ({"rope_theta": None}, "rope_theta", 10000.0),
        ({"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 7.0}}, "rope_theta", 7.0),
        ({"rope_scaling": {"type": "default"}}, "rope_theta", 10000.0),
        ({"tie_word_embeddings": True}, "tied_embeddings", True),
        ({"eos_token_id": [5, 7]}, "eos_token_ids", (5, 7)),
        ({"eos_token_id": None}, "eos_token_ids", ()),
    ],
)
def test_absent_and_alternative_keys(tmp_path: Path, changes: dict[str, Any], field: str, value: object) -> None:
    assert getattr(read_shape(write_config(tmp_path, **changes)), field) == value


@pytest.mark.parametrize(("content", "ids"), [({"eos_token_id": [3, 4]}, (3, 4)), ({}, (2,))])
def test_the_generation_config_names_the_eos_ids_first(
    tmp_path: Path, content: dict[str, Any], ids: tuple[int, ...]
) -> None:
    write_config(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps(content), encoding="utf-8")
    assert read_shape(tmp_path).eos_token_ids == ids


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "gpt2"}, ['model_type = "gpt2"', "llama, qwen2, qwen3"]),
        ({"model_type": None}, ["model_type = null", "must be a string"]),
        ({"hidden_size": None}, ["hidden_size = null", "must be an integer from 1 to"]),
        ({"hidden_size": True}, ["hidden_size = true", "must be an integer from 1 to"]),
        ({"num_hidden_layers": 0}, ["num_hidden_layers = 0", "must be an integer from 1 to"]),
        ({"num_key_value_heads": 3}, ["num_key_value_heads = 3", "divide num_attention_heads = 4"]),
        ({"head_dim": 15}, ["head_dim = 15", "even"]),
        ({"rms_norm_eps": "small"}, ['rms_norm_eps = "small"', "positive number"]),
        ({"rms_norm_eps": -1}, ["rms_norm_eps = -1", "positive number"]),
        ({"tie_word_embeddings": "no"}, ['tie_word_embeddings = "no"', "true or false"]),
        ({"hidden_act": "gelu"}, ['hidden_act = "gelu"', '"silu"']),
        ({"use_sliding_window": True}, ["use_sliding_window = true", "false"]),
        ({"layer_types": ["full_attention", "sliding_attention"]}, ["layer_types", "full_attention"]),
        ({"quantization_config": {"bits": 4}}, ["quantization_config", "null"]),
        ({"partial_rotary_factor": 0.5}, ["partial_rotary_factor = 0.5", "1.0"]),
        ({"rope_scaling": {"rope_type": "yarn"}}, ["rope_scaling", "yarn", '"default"']),
        ({"rope_scaling": {"type": "linear"}}, ["rope_scaling", "linear", '"default"']),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1.0}}, ["rope_parameters", "llama3"]),
        ({"rope_parameters": [1]}, ["rope_parameters", "object"]),
        ({"rope_theta": "big"}, ["rope_theta", "positive number", "'big'"]),
        ({"rope_theta": float("inf")}, ["rope_theta", "positive number", "inf"]),
        ({"rope_theta": float("nan")}, ["rope_theta", "positive number", "nan"]),
        ({"rms_norm_eps": float("nan")}, ["rms_norm_eps", "positive number"]),
        ({"max_position_embeddings": 10**12}, ["max_position_embeddings = 1000000000000", "must be an integer"]),
        ({"layer_types": 5}, ["layer_types = 5", "full_attention"]),
        ({"layer_types": [["x"]]}, ["layer_types", "full_attention"]),
        ({"eos_token_id": "</s>"}, ['eos_token_id = "</s>"', "token id"]),
    ],
)
def test_what_cannot_be_computed_is_refused(tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
    write_config(tmp_path, **changes)
    with pytest.raises(ModelError) as caught:
        read_shape(tmp_path)
    for word in [str(tmp_path / "config.json"), *words]:
        assert word in str(caught.value)


def test_a_missing_config_says_what_a_model_is(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json: no such file; a model is a directory in Hugging Face layout"):
        read_shape(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [('{"model_type": "llama",\n}', ":2:1: not JSON"), ("[]", "top level"), (b"\xff", "cannot be read")],
)
def test_a_malformed_config_names_the_place(tmp_path: Path, text: str | bytes, words: str) -> None:
    (tmp_path / "config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ModelError, match=words):
        read_shape(tmp_path)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"hidden_size": ' + "9" * 5000 + "}", "", "{"])
def test_a_config_that_is_no_json_to_be_read_is_one_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=r"config\.json"):
        read_shape(tmp_path)


def test_the_shape_of_experts_is_read_from_the_config(tmp_path: Path) -> None:
    mixtral = read_shape(write_config(tmp_path / "mixtral", **TINY_MIXTRAL, head_dim=32)).moe
    assert mixtral == MoeShape(
        layers=(0, 1), num_experts=8, experts_per_token=2, intermediate_size=48, renormalise=True
    )
    qwen = read_shape(write_config(tmp_path / "qwen", **TINY_QWEN3_MOE)).moe
    assert qwen == MoeShape(
        layers=(0, 1, 3), num_experts=6, experts_per_token=3, intermediate_size=40, renormalise=True
    )
    assert read_shape(write_config(tmp_path / "dense")).moe is None


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"decoder_sparse_step": 2, "mlp_only_layers": None}, "layers", (1, 3)),
        ({"mlp_only_layers": []}, "layers", (0, 1, 2, 3)),
        ({"norm_topk_prob": None}, "renormalise", False),
        ({"num_experts": None, "num_local_experts": 9}, "num_experts", 9),
        ({"num_experts": 9, "num_local_experts": 9}, "num_experts", 9),
    ],
)
def test_which_layers_have_how_many_experts(tmp_path: Path, changes: dict[str, Any], field: str, value: object) -> None:
    assert getattr(read_shape(write_config(tmp_path, **(TINY_QWEN3_MOE | changes))).moe, field) == value


def test_families_have_their_own_values_for_absent_keys(tmp_path: Path) -> None:
    absent = {"rope_theta": None, "rms_norm_eps": None}
    mixtral = read_shape(write_config(tmp_path / "mixtral", **TINY_MIXTRAL, **absent))
    qwen = read_shape(write_config(tmp_path / "qwen", **TINY_QWEN3_MOE, **absent))
    assert (mixtral.rope_theta, mixtral.rms_norm_eps) == (1e6, 1e-5)
    assert (qwen.rope_theta, qwen.rms_norm_eps, qwen.head_dim, qwen.qk_norm) == (10000.0, 1e-6, 16, True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (TINY_MIXTRAL | {"num_local_experts": None}, ["num_local_experts = null", "must be an integer"]),
        (TINY_MIXTRAL | {"num_experts_per_tok": 9}, ["num_experts_per_tok = 9", "more than the 8 experts"]),
        (TINY_MIXTRAL | {"num_experts_per_tok": 0}, ["num_experts_per_tok = 0", "must be an integer"]),
        (TINY_MIXTRAL | {"sliding_window": 4096}, ["sliding_window = 4096", "only null is"]),
        (TINY_QWEN3_MOE | {"use_sliding_window": True}, ["use_sliding_window = true"]),
        (TINY_QWEN3_MOE | {"moe_intermediate_size": None}, ["moe_intermediate_size = null"]),
        (
            TINY_QWEN3_MOE | {"mlp_only_layers": [0, 1, 2, 3]},
            ["mlp_only_layers = [0, 1, 2, 3]", "no layer with experts"],
        ),
        (TINY_QWEN3_MOE | {"mlp_only_layers": [True]}, ["mlp_only_layers = [true]", "list of indices"]),
        (TINY_QWEN3_MOE | {"decoder_sparse_step": 0}, ["decoder_sparse_step = 0"]),
        (TINY_QWEN3_MOE | {"num_local_experts": 7}, ["num_experts = 6", "contradicts num_local_experts = 7"]),
        ({"model_type": "deepseek_v3"}, ['"deepseek_v3"', "llama, qwen2, qwen3, mixtral, qwen3_moe"]),
    ],
)
def test_experts_that_cannot_be_computed_are_refused(tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
    write_config(tmp_path, **changes)
    with pytest.raises(ModelError) as caught:
        read_shape(tmp_path)
    for word in [str(tmp_path / "config.json"), *words]:
        assert word in str(caught.value)
