"""Drives a decoder by hand: sequences with scattered pages, steps of any mixture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from engine.kernels import AttentionMetadata, PagedKVCache, QuerySpan
from engine.model import Decoder
from engine.numerics import ROW_MULTIPLE

Part: TypeAlias = tuple[int, int, int]
"""A sequence's index, its first and its last token (exclusive) in a step."""


class PagedDecoder:
    """A decoder, a pool, and one block table for each of some token sequences, in random order."""

    def __init__(self, decoder: Decoder, sequences: Sequence[Sequence[int]], *, block_size: int = 16) -> None:
        self.decoder = decoder
        self.sequences = sequences
        self.block_size = block_size
        lengths = [-(-len(sequence) // block_size) for sequence in sequences]
        blocks = (1 + torch.randperm(sum(lengths), generator=torch.Generator().manual_seed(5))).tolist()
        self.tables = [[blocks.pop() for _ in range(length)] for length in lengths]
        self.cache = PagedKVCache(
            decoder.shape,
            num_blocks=1 + sum(lengths),
            block_size_tokens=block_size,
            dtype=decoder.dtype,
            device=decoder.device,
        )

    def step(self, parts: Iterable[Part], *, extra_rows: int = 0) -> list[Tensor]:
        """Run one step; hidden states of each part, in order."""
        parts = list(parts)
        token_ids: list[int] = []
        positions, slots, spans = [], [], []
        for sequence, start, end in parts:
            spans.append(QuerySpan(len(token_ids), end - start, end))
            for position in range(start, end):
                token_ids.append(self.sequences[sequence][position])
                positions.append(position)
                block = self.tables[sequence][position // self.block_size]
                slots.append(block * self.block_size + position % self.block_size)
        padding = -len(token_ids) % ROW_MULTIPLE + extra_rows
        width = max(len(self.tables[sequence]) for sequence, _, _ in parts)
        tables = [self.tables[sequence] + [0] * (width - len(self.tables[sequence])) for sequence, _, _ in parts]
        hidden = self.decoder.forward(
            torch.tensor(token_ids + [0] * padding),
            torch.tensor(positions + [0] * padding),
            self.cache,
            AttentionMetadata(torch.tensor(slots + [0] * padding), tuple(spans), torch.tensor(tables), self.block_size),
        )
        return [hidden[span.query_start : span.query_start + span.query_length] for span in spans]


def prefill(decoder: Decoder, token_ids: Sequence[int], **settings: int) -> Tensor:
    """Hidden states of one sequence, alone, in one step."""
    return PagedDecoder(decoder, [token_ids], **settings).step([(0, 0, len(token_ids))])[0]


def random_ids(count: int, vocab_size: int, *, seed: int) -> list[int]:
    """Token ids."""
    generator = torch.Generator().manual_seed(seed)
    ids: list[int] = torch.randint(vocab_size, (count,), generator=generator).tolist()
    return ids
