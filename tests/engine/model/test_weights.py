from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.model import ModelError, load_decoder, read_shape
from engine.model.weights import Checkpoint
from tests.engine.model.checkpoints import TINY_MIXTRAL, random_tensors, write_checkpoint, write_config


def open_checkpoint(directory: Path) -> Checkpoint:
    return Checkpoint(directory, read_shape(directory))


def test_tensors_are_read_by_name(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    expected = random_tensors(tmp_path)
    with open_checkpoint(tmp_path) as checkpoint:
        for name, tensor in expected.items():
            assert torch.equal(checkpoint.read(name), tensor)


def test_an_index_names_the_shards(tmp_path: Path) -> None:
    write_config(tmp_path)
    tensors = random_tensors(tmp_path)
    names = list(tensors)
    shards = {"a.safetensors": names[:5], "b.safetensors": names[5:]}
    for file, members in shards.items():
        save_file({name: tensors[name] for name in members}, tmp_path / file)
    weight_map = {name: file for file, members in shards.items() for name in members}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")
    with open_checkpoint(tmp_path) as checkpoint:
        assert all(torch.equal(checkpoint.read(name), tensor) for name, tensor in tensors.items())

    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(ModelError, match=r"index\.json: names files that are not in .*: b\.safetensors"):
        open_checkpoint(tmp_path)
    index.write_text('{"weight_map": []}', encoding="utf-8")
    with pytest.raises(ModelError, match=r"index\.json: weight_map must map"):
        open_checkpoint(tmp_path)


Change = Callable[[dict[str, Tensor]], object]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors: tensors.pop("model.norm.weight"), ["missing: model.norm.weight"]),
        (lambda tensors: tensors.update(surplus=torch.ones(1)), ["not known to the family: surplus"]),
        (
            lambda tensors: tensors.update({"lm_head.weight": torch.ones(3, 64)}),
            ["of the wrong shape: lm_head.weight (is [3, 64], must be [259, 64])"],
        ),
        (
            lambda tensors: [tensors.pop(name) for name in list(tensors) if "mlp" in name or "attn" in name],
            ["missing: model.layers.0.mlp.down_proj.weight", "and 6 more"],
        ),
    ],
)
def test_tensors_that_do_not_fit_are_listed(tmp_path: Path, change: Change, words: list[str]) -> None:
    write_config(tmp_path)
    tensors = random_tensors(tmp_path)
    change(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelError) as caught:
        open_checkpoint(tmp_path)
    for word in [str(tmp_path), "family llama", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda tensors: tensors.pop("model.layers.1.block_sparse_moe.experts.7.w3.weight"),
            ["missing: model.layers.1.block_sparse_moe.experts.7.w3.weight"],
        ),
        (
            lambda tensors: tensors.update({"model.layers.0.block_sparse_moe.experts.8.w1.weight": torch.ones(48, 64)}),
            ["not known to the family: model.layers.0.block_sparse_moe.experts.8.w1.weight"],
        ),
        (
            lambda tensors: tensors.update({"model.layers.0.block_sparse_moe.gate.weight": torch.ones(7, 64)}),
            ["of the wrong shape: model.layers.0.block_sparse_moe.gate.weight (is [7, 64], must be [8, 64])"],
        ),
        (
            lambda tensors: tensors.update({"model.layers.0.mlp.experts.down_proj": torch.ones(8, 64, 48)}),
            ["not known to the family: model.layers.0.mlp.experts.down_proj"],
        ),
    ],
)
def test_tensors_of_experts_that_do_not_fit_are_listed(tmp_path: Path, change: Change, words: list[str]) -> None:
    write_config(tmp_path, **TINY_MIXTRAL)
    tensors = random_tensors(tmp_path)
    change(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelError) as caught:
        open_checkpoint(tmp_path)
    for word in [str(tmp_path), "family mixtral", *words]:
        assert word in str(caught.value)


def test_tensors_that_follow_from_others_may_be_there(tmp_path: Path) -> None:
    write_config(tmp_path, tie_word_embeddings=True)
    tensors = random_tensors(tmp_path)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
    save_file(tensors, tmp_path / "model.safetensors")
    decoder = load_decoder(tmp_path, dtype=torch.float32, device=torch.device("cpu"))
    assert decoder.shape.tied_embeddings


def test_half_precision_weights_are_widened(tmp_path: Path) -> None:
    write_config(tmp_path)
    save_file(
        {name: tensor.half() for name, tensor in random_tensors(tmp_path).items()}, tmp_path / "model.safetensors"
    )
    decoder = load_decoder(tmp_path, dtype=torch.float32, device=torch.device("cpu"))
    assert torch.equal(decoder.norm, random_tensors(tmp_path)["model.norm.weight"].half().float())


def test_integers_are_refused_by_name(tmp_path: Path) -> None:
    write_config(tmp_path)
    tensors = random_tensors(tmp_path)
    tensors["model.norm.weight"] = tensors["model.norm.weight"].to(torch.int8)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"tensor model\.norm\.weight is stored as torch\.int8"):
        load_decoder(tmp_path, dtype=torch.float32, device=torch.device("cpu"))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ModelError, match=r"model\.safetensors: cannot be read as safetensors"):
        open_checkpoint(tmp_path)


def test_pickled_weights_are_refused_with_the_way_out(tmp_path: Path) -> None:
    write_config(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match=r"pickled weights only \(pytorch_model\.bin\).*safe_serialization=True"):
        open_checkpoint(tmp_path)


def test_no_weights_says_what_was_looked_for(tmp_path: Path) -> None:
    write_config(tmp_path)
    with pytest.raises(ModelError, match=r"no weights; expected model\.safetensors or model\.safetensors\.index\.json"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("name", ["../other/model.safetensors", "/etc/hostname", "inner/a.safetensors", "x" * 300])
def test_an_index_names_files_beside_it_and_no_others(tmp_path: Path, name: str) -> None:
    write_config(tmp_path)
    (tmp_path / "inner").mkdir()
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"model.norm.weight": name}}), encoding="utf-8")
    with pytest.raises(ModelError, match=r"index\.json: names files (outside|that are not in)"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(tmp_path: Path, number: float) -> None:
    write_config(tmp_path)
    tensors = random_tensors(tmp_path)
    tensors["model.norm.weight"][0] = number
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"tensor model\.norm\.weight holds NaN or infinity"):
        load_decoder(tmp_path, dtype=torch.float32, device=torch.device("cpu"))
