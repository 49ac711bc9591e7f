"""Models made to hurt: each is refused by name and reason, before memory is taken, and nothing in it is executed."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import ConfigError, InferenceConfig, load_config_file
from engine.engine import Engine
from engine.model import ModelError, load_decoder
from engine.tokenizer import Tokenizer

SHIPPED = Path(__file__).resolve().parents[2] / "fixtures" / "models" / "storyteller-llama-1m"
WEIGHTS = "model.safetensors"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    shutil.copytree(SHIPPED, folder)
    return folder


def refusal(model: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_decoder(model, dtype=torch.float32, device=torch.device("cpu"))
    return str(caught.value)


def edit(path: Path, **changed: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


class Exploit:
    """Runs a command when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.marker),))


def write_exploit(path: Path, marker: Path) -> None:
    path.write_bytes(pickle.dumps({"model.embed_tokens.weight": Exploit(marker)}))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "consolidated.pt", "model.pth", "model.ckpt"])
def test_pickled_weights_alone_are_refused_and_never_read(model: Path, name: str, tmp_path: Path) -> None:
    (model / WEIGHTS).unlink()
    write_exploit(model / name, tmp_path / "executed")
    assert "pickled weights only" in refusal(model)
    assert not (tmp_path / "executed").exists()


def test_pickled_weights_beside_safetensors_are_not_looked_at(model: Path, tmp_path: Path) -> None:
    write_exploit(model / "pytorch_model.bin", tmp_path / "executed")
    load_decoder(model, dtype=torch.float32, device=torch.device("cpu"))
    assert not (tmp_path / "executed").exists()


def test_a_pickle_that_calls_itself_safetensors_is_refused(model: Path, tmp_path: Path) -> None:
    write_exploit(model / WEIGHTS, tmp_path / "executed")
    assert "cannot be read as safetensors" in refusal(model)
    assert not (tmp_path / "executed").exists()


def header(entries: Any, *, length: int | None = None, data: bytes = b"") -> bytes:
    text = json.dumps(entries).encode() if not isinstance(entries, bytes) else entries
    return struct.pack("<Q", len(text) if length is None else length) + text + data


HEADERS = {
    "a header of 2^60 bytes": header(b"{}", length=2**60),
    "a header of 2^64-1 bytes": header(b"{}", length=2**64 - 1),
    "a header longer than the file": header(b"{}", length=1000),
    "no header": b"",
    "a header that is no JSON": header(b"{{{{"),
    "a header nested deeply": header(b"[" * 100_000),
    "overlapping tensors": header(
        {
            "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
        },
        data=b"\0" * 12,
    ),
    "a tensor beyond the end": header({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}),
    "a size that overflows": header(
        {"a": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 8]}}, data=b"\0" * 8
    ),
    "offsets that run backwards": header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}, data=b"\0" * 8),
    "negative offsets": header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}, data=b"\0" * 8),
    "a hole between tensors": header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}, data=b"\0" * 12),
}


@pytest.mark.parametrize("what", HEADERS)
def test_a_hostile_header_of_weights_is_refused(model: Path, what: str) -> None:
    (model / WEIGHTS).write_bytes(HEADERS[what])
    assert f"{model / WEIGHTS}: cannot be read as safetensors" in refusal(model)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", 10**9),
        ("num_hidden_layers", 1025),
        ("vocab_size", 10**12),
        ("hidden_size", 10**18),
        ("intermediate_size", -1),
        ("num_attention_heads", 0),
        ("max_position_embeddings", 10**12),
        ("max_position_embeddings", 1e400),
        ("hidden_size", "9" * 100_000),
        ("vocab_size", None),
        ("head_dim", [8] * 1000),
        ("rms_norm_eps", 1e400),
        ("rms_norm_eps", "x"),
        ("model_type", "../../llama"),
    ],
)
def test_a_hostile_number_is_refused_with_its_key_before_memory_is_taken(model: Path, key: str, value: Any) -> None:
    edit(model / "config.json", **{key: value})
    said = refusal(model)
    assert key in said
    assert len(said) < 1000


@pytest.mark.parametrize("key", ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"])
def test_a_size_that_is_possible_and_not_that_of_the_weights_is_refused_before_memory_is_taken(
    model: Path, key: str
) -> None:
    edit(model / "config.json", **{key: 1000})
    assert "do not fit config.json" in refusal(model)


def test_a_table_of_positions_that_no_memory_holds_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.model.loading.memory_bytes", lambda _: 10**9)
    edit(model / "config.json", max_position_embeddings=1 << 24)
    assert "a table of max_position_embeddings = 16777216 positions take" in refusal(model)


def test_weights_that_no_memory_holds_are_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.model.loading.memory_bytes", lambda _: 1000)
    assert "its weights take" in refusal(model)


def write_sparse(path: Path, size: int) -> None:
    with path.open("wb") as stream:
        stream.truncate(size)


FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "the zero device": lambda path: path.symlink_to("/dev/zero"),
    "33 MB": lambda path: write_sparse(path, 33_000_000),
    "nothing": Path.touch,
    "a hundred thousand brackets": lambda path: path.write_text("[" * 100_000),
    "a number of a million digits": lambda path: path.write_text('{"vocab_size": ' + "9" * 1_000_000 + "}"),
    "not UTF-8": lambda path: path.write_bytes(b'{"\xff": 1}'),
    "a list": lambda path: path.write_text("[]"),
}


@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
def test_a_hostile_json_file_is_refused_with_its_path(model: Path, name: str, what: str) -> None:
    path = model / name
    path.unlink(missing_ok=True)
    FILES[what](path)
    if name != "config.json" and not path.is_file():
        load_decoder(model, dtype=torch.float32, device=torch.device("cpu"))  # no file, so no index
    else:
        assert str(path) in refusal(model)


@pytest.mark.parametrize("shard", ["../outside.safetensors", "/etc/passwd", "", ".", "a/b", "x\0y"])
def test_an_index_that_names_files_elsewhere_is_refused(model: Path, shard: str) -> None:
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": shard}}))
    refusal(model)


TOKENIZER: dict[str, Any] = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": None, "post_processor": None, "decoder": None,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
}  # fmt: skip


@pytest.mark.parametrize("what", [name for name in FILES if name != "a folder"])
def test_a_hostile_tokenizer_file_is_refused(tmp_path: Path, what: str) -> None:
    FILES[what](tmp_path / "tokenizer.json")
    with pytest.raises(ModelError, match=r"tokenizer\.json: "):
        Tokenizer(tmp_path)


def test_a_tokenizer_whose_rules_panic_is_an_error_of_the_model(tmp_path: Path) -> None:
    endless = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "b"}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**TOKENIZER, "normalizer": endless}))
    with pytest.raises(ModelError, match=r"tokenizer\.json: a text of 41 characters cannot be encoded"):
        Tokenizer(tmp_path).encode("a" * 40 + "c")


def test_a_tokenizer_can_neither_fill_up_nor_cut_a_prompt(tmp_path: Path) -> None:
    padding = {
        "strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
        "pad_type_id": 0, "pad_token": "a",
    }  # fmt: skip
    truncation = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**TOKENIZER, "padding": padding, "truncation": truncation}))
    assert Tokenizer(tmp_path).encode("ab") == [0, 1]


@pytest.mark.parametrize("what", ["a pipe", "the zero device", "33 MB", "a hundred thousand brackets"])
def test_a_hostile_set_up_file_or_recording_is_refused(model: Path, tmp_path: Path, what: str) -> None:
    path = tmp_path / "file"
    FILES[what](path)
    with pytest.raises(ConfigError, match="set-up file"):
        load_config_file(path)
    settings = {"moe_enable_routing_replay": True, "async_sched_mode": "legacy", "routing_replay_path": str(path)}
    with pytest.raises((ConfigError, ModelError)):
        Engine.load(model, InferenceConfig.from_mapping(settings))
