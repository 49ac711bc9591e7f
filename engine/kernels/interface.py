"""What a model asks of attention: write this step's keys and values, then attend over the pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from engine.kernels.cache import PagedKVCache


@dataclass(frozen=True, slots=True)
class QuerySpan:
    """One sequence's part of a step.

    Attributes:
        query_start: its first row among the step's tokens.
        query_length: how many consecutive rows are its own.
        kv_length: tokens of it in the cache once this step has written; the last row is token `kv_length - 1`.
    """

    query_start: int
    query_length: int
    kv_length: int

    def __post_init__(self) -> None:
        assert self.query_start >= 0
        assert 1 <= self.query_length <= self.kv_length


@dataclass(frozen=True, slots=True)
class AttentionMetadata:
    """Where a step's tokens go and what they may look at.

    Attributes:
        write_slots: `(T,)` int64, flat slot of each token: block * block size + offset; padding rows name a slot of
            the dummy block.
        spans: one per sequence; rows in no span are padding.
        block_tables: `(len(spans), max_blocks)` int64 on the host or the device; tails are 0.
        block_size_tokens: token slots a block.
    """

    write_slots: Tensor
    spans: tuple[QuerySpan, ...]
    block_tables: Tensor
    block_size_tokens: int


class AttentionStep(Protocol):
    """Attention for one step, laid out once and used by every layer."""

    def write(self, layer: int, k: Tensor, v: Tensor) -> None:
        """Store keys and values `(rows, num_kv_heads, head_dim)`; rows beyond the step's tokens are dropped."""

    def attend(self, layer: int, q: Tensor) -> Tensor:
        """Attend causally over the pages.

        Args:
            layer: the layer's index in the cache.
            q: `(rows, num_query_heads, head_dim)`.

        Returns:
            `(rows, num_query_heads * head_dim)` in the dtype of `q`; rows of padding hold anything finite.
        """


class AttentionBackend(Protocol):
    """One way of doing paged attention."""

    @property
    def strategy(self) -> str:
        """How its products are carried out, for the fingerprint."""

    def begin(self, cache: PagedKVCache, metadata: AttentionMetadata) -> AttentionStep:
        """Lay out a step."""
