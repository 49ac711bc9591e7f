"""A GGUF file becomes the model that it was made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from framework.errors import FetchError

pytest.importorskip("gguf", reason="the package `gguf` reads the weights; install the extra `models`")

import gguf
import numpy as np
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer

from engine.model import load_decoder
from framework.fetch.convert import convert
from framework.fetch.recipe import FileSum
from tests.engine.model.driving import prefill
from tests.framework.fetch.tiny_gguf import SPECIAL, TEMPLATE, TOKENS, reference_tokenizer, tiny_llama, write_gguf

TEXTS = (
    "hello world 12  12 1 2\n\n  x",
    "<|im_start|>user\nhello<|im_end|>\n<|tool|><|endoftext|>",
    "def f(x):\n\treturn x ** 2 + 3.14  # 1_000",
    "naïve Zoë 日本語 \u200d🎉 ½ ² ٣ \u2028\xa0",
    "",
)


def converted(folder: Path, model: Any, **how: Any) -> Path:
    write_gguf(folder / "tiny.gguf", model, **how)
    (folder / "made").mkdir()
    convert(folder / "tiny.gguf", folder / "made")
    return folder / "made"


@pytest.mark.parametrize("tied", [True, False])
def test_every_weight_is_the_one_that_was_written(tmp_path: Path, tied: bool) -> None:
    model = tiny_llama(tied=tied)
    weights = load_file(converted(tmp_path, model) / "model.safetensors")
    expected = {name: tensor for name, tensor in model.state_dict().items() if not (tied and name == "lm_head.weight")}
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_1", "Q4_0", "Q5_1", "F16"])
def test_quantised_weights_are_dequantised_and_close(tmp_path: Path, kind: str) -> None:
    model = tiny_llama()
    quantised = gguf.GGMLQuantizationType[kind]
    weights = load_file(converted(tmp_path, model, quantised=quantised) / "model.safetensors")
    name = "model.layers.1.mlp.up_proj.weight"
    original = model.state_dict()[name].numpy()
    assert np.array_equal(weights[name].numpy(), gguf.dequantize(gguf.quantize(original, quantised), quantised))
    for name, values in weights.items():
        assert (values - model.state_dict()[name]).abs().max() <= 0.12, name


@pytest.mark.parametrize("tied", [True, False])
def test_transformers_and_the_engine_read_the_folder_as_the_original(tmp_path: Path, tied: bool) -> None:
    model = tiny_llama(tied=tied)
    folder = converted(tmp_path, model)
    tokens = [(7 * index) % len(TOKENS) for index in range(70)]
    with torch.inference_mode():
        expected = model(torch.tensor([tokens])).logits[0]
        again = transformers.AutoModelForCausalLM.from_pretrained(folder)(torch.tensor([tokens])).logits[0]
        decoder = load_decoder(folder, dtype=torch.float32, device=torch.device("cpu"))
        ours = decoder.logits(prefill(decoder, tokens))
    assert torch.equal(again, expected)
    assert (ours - expected).abs().max() <= 1e-4
    assert decoder.shape.eos_token_ids == (2,)


def test_the_tokenizer_gives_the_ids_of_its_vocabulary_and_merges(tmp_path: Path) -> None:
    folder = converted(tmp_path, tiny_llama())
    ours, expected = Tokenizer.from_file(str(folder / "tokenizer.json")), reference_tokenizer()
    for text in TEXTS:
        ids = ours.encode(text).ids
        assert ids == expected.encode(text).ids, text
        assert ours.decode(ids, skip_special_tokens=False) == text
        assert ours.decode(ids) == expected.decode(ids)
    assert [ours.encode(token).ids for token in SPECIAL] == [[0], [1], [2]]
    assert [TOKENS[index] for index in ours.encode(" 12").ids] == ["Ġ", "1", "2"]


def test_transformers_reads_the_tokenizer_with_its_special_tokens_and_template(tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(converted(tmp_path, tiny_llama()))
    for text in TEXTS:
        assert tokenizer(text).input_ids == reference_tokenizer().encode(text).ids
    assert (tokenizer.eos_token, tokenizer.bos_token, tokenizer.unk_token) == (SPECIAL[2], SPECIAL[1], SPECIAL[0])
    assert tokenizer.chat_template == TEMPLATE
    chat = tokenizer.apply_chat_template([{"role": "user", "content": "hello"}], tokenize=False)
    assert chat == "<|im_start|>hello<|im_end|>"


def test_numbers_are_those_that_were_meant_and_not_their_nearest_in_32_bits(tmp_path: Path) -> None:
    config = json.loads((converted(tmp_path, tiny_llama()) / "config.json").read_text())
    assert (config["rms_norm_eps"], config["rope_theta"], config["num_key_value_heads"]) == (1e-5, 50000.0, 2)
    assert config["eos_token_id"] == 2


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = converted(tmp_path, tiny_llama())
    (tmp_path / "again").mkdir()
    convert(tmp_path / "tiny.gguf", tmp_path / "again")
    sums = {path.name: FileSum.of(path) for path in folder.iterdir()}
    assert sums == {path.name: FileSum.of(path) for path in (tmp_path / "again").iterdir()}
    assert sorted(sums) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"general.architecture": "gemma"}, "general.architecture is 'gemma', and only 'llama'"),
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type: not understood"),
        ({"llama.expert_count": 8}, "llama.expert_count: not understood"),
        ({"llama.block_count": "two"}, "llama.block_count is 'two', not of type int"),
        ({"llama.block_count": 3}, "tensor blk.2.attn_norm.weight is missing"),
        ({"llama.block_count": 1}, "tensors that cannot be converted: blk.1.attn_k.weight"),
        ({"llama.rope.dimension_count": 16}, "llama.rope.dimension_count is 16"),
        ({"llama.attention.head_count_kv": 3}, "rows, which 3 heads cannot share"),
        ({"tokenizer.ggml.model": "llama"}, "only 'gpt2' .* can be converted"),
        ({"tokenizer.ggml.pre": "tekken"}, "tokenizer.ggml.pre is 'tekken', and only these .*: gpt-2, smollm"),
        ({"tokenizer.ggml.add_bos_token": True}, "add_bos_token is true"),
        ({"tokenizer.ggml.tokens": ["a", "b"]}, "2 different tokens"),
        ({"tokenizer.ggml.tokens": ["a"] * len(TOKENS)}, "1 different tokens"),
        ({"tokenizer.ggml.token_type": [1]}, "token_type has 1 entries"),
        ({"tokenizer.ggml.merges": ["h e l"]}, "'h e l', which is no pair"),
        ({"tokenizer.ggml.merges": ["h zz"]}, "make no tokenizer"),
        ({"tokenizer.ggml.eos_token_id": 99999}, "eos_token_id is 99999, which is no token"),
    ],
)
def test_what_would_be_computed_wrongly_is_refused(tmp_path: Path, metadata: Mapping[str, Any], words: str) -> None:
    with pytest.raises(FetchError, match=words) as refused:
        converted(tmp_path, tiny_llama(), change=lambda values, _: values.update(metadata))
    assert str(refused.value).startswith("tiny.gguf: ")
    assert not list((tmp_path / "made").iterdir())


def test_a_tensor_that_has_no_place_is_refused(tmp_path: Path) -> None:
    extra = np.ones(8, dtype=np.float32)
    with pytest.raises(FetchError, match="rope_freqs.weight"):
        converted(tmp_path, tiny_llama(), change=lambda _, tensors: tensors.update({"rope_freqs.weight": extra}))


@pytest.mark.parametrize("kept", [0, 3, 24, 500, 9000, -1000])
def test_a_truncated_file_is_refused(tmp_path: Path, kept: int) -> None:
    write_gguf(tmp_path / "whole.gguf", tiny_llama())
    (tmp_path / "cut.gguf").write_bytes((tmp_path / "whole.gguf").read_bytes()[:kept])
    (tmp_path / "made").mkdir()
    with pytest.raises(FetchError, match=r"cut.gguf: cannot be read as GGUF"):
        convert(tmp_path / "cut.gguf", tmp_path / "made")
