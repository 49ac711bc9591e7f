from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from engine.kernels import PagedKVCache


@dataclass(frozen=True)
class Shape:
    num_layers: int = 3
    num_kv_heads: int = 2
    head_dim: int = 8


def make(block_size_tokens: int) -> PagedKVCache:
    return PagedKVCache(
        Shape(), num_blocks=5, block_size_tokens=block_size_tokens, dtype=torch.bfloat16, device=torch.device("cpu")
    )


def test_every_layer_has_zeroed_keys_and_values() -> None:
    cache = make(16)
    assert [tensor.shape for tensor in cache.keys] == [(2, 80, 8)] * 3
    assert cache.nbytes == 2 * 3 * 2 * 80 * 8 * 2
    assert not any(tensor.any() for tensor in (*cache.keys, *cache.values))


@pytest.mark.parametrize("block_size_tokens", [3, 48, 100])
def test_block_sizes_that_do_not_fit_the_tiles_are_refused(block_size_tokens: int) -> None:
    with pytest.raises(ValueError, match=rf"block_size_tokens = {block_size_tokens}: .* choose 16"):
        make(block_size_tokens)
