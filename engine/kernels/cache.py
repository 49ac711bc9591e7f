"""The paged key/value pool: where every token's keys and values lie."""

from __future__ import annotations

from typing import Protocol

import torch

KV_TILE = 64
"""Keys are summed over in tiles of this many tokens, in order; block sizes divide it or are multiples of it."""


class KVShape(Protocol):
    """What the pool must know of a model."""

    @property
    def num_layers(self) -> int:
        """Layers with keys and values."""

    @property
    def num_kv_heads(self) -> int:
        """Key/value heads a layer."""

    @property
    def head_dim(self) -> int:
        """Numbers a head and token."""


class PagedKVCache:
    """Keys and values of all layers, in blocks of `block_size_tokens` token slots.

    Per layer `keys` and `values` are `(num_kv_heads, num_blocks * block_size_tokens, head_dim)`: head-major, so that
    the pages of one head are gathered in one pass and need no transposition. Block 0 is the dummy block: rows of
    padding write there, and the tails of block tables point there. Everything starts at zero and stays finite, since
    a hidden position still takes part in products, with weight zero.
    """

    __slots__ = ("block_size_tokens", "head_dim", "keys", "num_blocks", "num_kv_heads", "values")

    def __init__(
        self,
        shape: KVShape,
        *,
        num_blocks: int,
        block_size_tokens: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Allocate the pool; `num_blocks` counts the dummy block.

        Raises:
            ValueError: the block size neither divides `KV_TILE` nor is a multiple of it.
        """
        if KV_TILE % block_size_tokens and block_size_tokens % KV_TILE:
            raise ValueError(
                f"block_size_tokens = {block_size_tokens}: attention reads keys in tiles of {KV_TILE} tokens, so a "
                f"block must divide {KV_TILE} or be a multiple of it; choose 16, 32, 64, 128 or 256"
            )
        self.num_blocks = num_blocks
        self.block_size_tokens = block_size_tokens
        self.num_kv_heads = shape.num_kv_heads
        self.head_dim = shape.head_dim
        size = (shape.num_kv_heads, num_blocks * block_size_tokens, shape.head_dim)
        self.keys = tuple(torch.zeros(size, dtype=dtype, device=device) for _ in range(shape.num_layers))
        self.values = tuple(torch.zeros(size, dtype=dtype, device=device) for _ in range(shape.num_layers))

    @property
    def nbytes(self) -> int:
        """Bytes held by the pool."""
        return sum(tensor.nbytes for tensor in (*self.keys, *self.values))
