"""A layer of experts against its definition: a loop over tokens and experts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from engine.model import Decoder, load_decoder
from engine.model.moe import MixtureOfExperts, best_experts, route
from engine.model.step_routing import StepRouting
from engine.numerics.gemm import pad_rows
from tests.engine.model.checkpoints import TINY_MIXTRAL, TINY_QWEN3_MOE, write_checkpoint

CPU = torch.device("cpu")


def decoder_of(directory: Path, changes: dict[str, Any], dtype: torch.dtype = torch.float32) -> Decoder:
    return load_decoder(write_checkpoint(directory, **changes), dtype=dtype, device=CPU)


def experts_of(decoder: Decoder) -> list[MixtureOfExperts]:
    return [layer.ffn for layer in decoder.layers if isinstance(layer.ffn, MixtureOfExperts)]


def by_definition(layer: MixtureOfExperts, x: Tensor, experts: Tensor, probabilities: Tensor) -> Tensor:
    rows = []
    for token, ids in enumerate(experts.tolist()):
        shares = probabilities[token, ids].double()
        shares = shares / shares.sum() if layer.renormalise else shares
        total = torch.zeros(x.shape[1], dtype=torch.float64)
        for share, expert in zip(shares, ids, strict=True):
            inner = x[token].double() @ layer.gate_up.matrix[expert].double()
            gate, up = inner[: layer.gate_up.out_features].chunk(2)
            down = layer.down.matrix[expert][:, : layer.down.out_features].double()
            total += share * (functional.silu(gate) * up) @ down
        rows.append(total)
    return torch.stack(rows)


@pytest.mark.parametrize("changes", [TINY_MIXTRAL, TINY_QWEN3_MOE, TINY_QWEN3_MOE | {"norm_topk_prob": False}])
def test_a_layer_computes_what_a_loop_over_tokens_and_experts_does(changes: dict[str, Any], tmp_path: Path) -> None:
    (layer, *_) = experts_of(decoder_of(tmp_path, changes))
    x = torch.randn(pad_rows(300), 64, generator=torch.Generator().manual_seed(4))
    padded = torch.nn.functional.linear(x, layer.router.matrix[:, : layer.router.out_features].T)
    probabilities = torch.softmax(padded, -1)
    experts = probabilities.topk(layer.experts_per_token).indices
    with torch.inference_mode():
        assert torch.allclose(
            layer(x, None).double(), by_definition(layer, x, experts, probabilities), rtol=1e-4, atol=1e-5
        )


def test_of_equally_probable_experts_the_lowest_ids_are_taken() -> None:
    probabilities = route(torch.tensor([[0.0] * 6, [1.0, 2.0, 2.0, 0.0, 2.0, 1.0], [5.0, 0.0, 0.0, 0.0, 0.0, 9.0]]))
    assert best_experts(probabilities, 3).tolist() == [[0, 1, 2], [1, 2, 4], [5, 0, 1]]


def test_only_the_layers_the_config_names_have_experts(tmp_path: Path) -> None:
    decoder = decoder_of(tmp_path, TINY_QWEN3_MOE)
    assert [isinstance(layer.ffn, MixtureOfExperts) for layer in decoder.layers] == [True, True, False, True]
    assert [layer.index for layer in experts_of(decoder)] == [0, 1, 2]


def test_what_was_chosen_can_be_forced_and_gives_the_same_bits(tmp_path: Path) -> None:
    decoder = decoder_of(tmp_path, TINY_MIXTRAL)
    moe = decoder.shape.moe
    assert moe is not None
    x = torch.randn(pad_rows(21), 64, generator=torch.Generator().manual_seed(5))
    free = StepRouting.begin(moe, 21, None, CPU)
    (layer, *_) = experts_of(decoder)
    with torch.inference_mode():
        expected = layer(x, free)
        forced = StepRouting.begin(moe, 21, free.chosen[:21].clone(), CPU)
        again = layer(x, forced)
        assert torch.equal(again[:21], expected[:21])
        assert torch.equal(forced.chosen[:21, 0], free.chosen[:21, 0])
        assert torch.equal(layer(x, None), expected)


def test_forced_experts_are_weighted_by_live_probabilities_in_the_given_order(tmp_path: Path) -> None:
    decoder = decoder_of(tmp_path, TINY_MIXTRAL)
    moe = decoder.shape.moe
    assert moe is not None
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(6))
    (layer, *_) = experts_of(decoder)
    ids = torch.tensor([5, 2]).expand(8, len(moe.layers), 2)
    routing = StepRouting.begin(moe, 8, ids, CPU)
    probabilities = torch.softmax(x @ layer.router.matrix[:, : layer.router.out_features], -1)
    with torch.inference_mode():
        result = layer(x, routing)
    assert torch.allclose(result.double(), by_definition(layer, x, ids[:, 0], probabilities), rtol=1e-4, atol=1e-5)
    assert routing.chosen[:, 0].tolist() == [[5, 2]] * 8
