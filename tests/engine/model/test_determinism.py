"""The contract at the level of the model: a token's bits depend on its own sequence and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model import Decoder, load_decoder
from engine.numerics.threads import thread_count
from tests.engine.model.checkpoints import TINY_MIXTRAL, write_checkpoint
from tests.engine.model.driving import PagedDecoder, prefill, random_ids

LONGEST = 1500
SEQUENCES = [random_ids(length, 259, seed=length) for length in (1, 3, 17, 63, 64, 65, 130, 200)]


KINDS: dict[str, tuple[dict[str, Any], torch.dtype]] = {
    "dense-fp32": ({}, torch.float32),
    "dense-bf16": ({}, torch.bfloat16),
    "mixtral-fp32": (TINY_MIXTRAL, torch.float32),
    "mixtral-bf16": (TINY_MIXTRAL, torch.bfloat16),
}


@pytest.fixture(scope="module", params=KINDS)
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    changes, dtype = KINDS[request.param]
    directory: Path = write_checkpoint(tmp_path_factory.mktemp("tiny"), **changes)
    return load_decoder(directory, dtype=dtype, device=torch.device("cpu"))


@pytest.fixture(scope="module")
def alone(decoder: Decoder) -> list[Tensor]:
    return [prefill(decoder, sequence) for sequence in SEQUENCES]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """One thread unless a test says otherwise: on a busy machine, threads that wait for each other take seconds."""
    with thread_count(1):
        yield


@pytest.mark.parametrize("order", [range(8), range(7, -1, -1), (3, 0, 6, 2, 7, 1, 5, 4)], ids=str)
def test_batched_and_reordered_equal_alone(decoder: Decoder, alone: list[Tensor], order: tuple[int, ...]) -> None:
    paged = PagedDecoder(decoder, SEQUENCES)
    batched = paged.step((index, 0, len(SEQUENCES[index])) for index in order)
    for index, hidden in zip(order, batched, strict=True):
        assert torch.equal(hidden, alone[index])


def test_logits_do_not_depend_on_how_many_rows_are_projected(decoder: Decoder, alone: list[Tensor]) -> None:
    hidden = torch.cat(alone)
    together = decoder.logits(hidden)
    for start in range(0, hidden.shape[0], 37):
        assert torch.equal(decoder.logits(hidden[start : start + 4]), together[start : start + 4])


@pytest.mark.parametrize("extra_rows", [4, 12, 100, 600])
def test_padding_changes_nothing(decoder: Decoder, alone: list[Tensor], extra_rows: int) -> None:
    padded = PagedDecoder(decoder, SEQUENCES).step([(6, 0, 130), (2, 0, 17)], extra_rows=extra_rows)
    assert torch.equal(padded[0], alone[6])
    assert torch.equal(padded[1], alone[2])


@pytest.mark.parametrize("block_size", [1, 4, 32, 64, 128, 256])
def test_the_block_size_changes_nothing(decoder: Decoder, alone: list[Tensor], block_size: int) -> None:
    assert torch.equal(prefill(decoder, SEQUENCES[7], block_size=block_size), alone[7])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_chunks_in_any_company_equal_the_whole(decoder: Decoder, alone: list[Tensor], data: st.DataObject) -> None:
    paged = PagedDecoder(decoder, SEQUENCES)
    done = [0] * len(SEQUENCES)
    pieces: list[list[Tensor]] = [[] for _ in SEQUENCES]
    while unfinished := [index for index, sequence in enumerate(SEQUENCES) if done[index] < len(sequence)]:
        chosen = data.draw(st.lists(st.sampled_from(unfinished), min_size=1, unique=True))
        parts = []
        for index in chosen:
            left = len(SEQUENCES[index]) - done[index]
            length = min(left, data.draw(st.sampled_from([1, 2, 7, 16, 33, 64, 100, 200])))
            parts.append((index, done[index], done[index] + length))
        for (index, _, end), hidden in zip(parts, paged.step(parts), strict=True):
            pieces[index].append(hidden)
            done[index] = end
    for index, expected in enumerate(alone):
        assert torch.equal(torch.cat(pieces[index]), expected)


def test_decoding_equals_recomputation_at_every_length(decoder: Decoder) -> None:
    sequence = random_ids(LONGEST, 259, seed=9)
    whole = prefill(decoder, sequence)
    paged = PagedDecoder(decoder, [sequence])
    for position in range(LONGEST):
        hidden = paged.step([(0, position, position + 1)])[0]
        assert torch.equal(hidden[0], whole[position]), f"differs at length {position + 1}"
    for length in (1, 63, 64, 65, 255, 257, 511, 1023, 1025):
        assert torch.equal(prefill(decoder, sequence[:length]), whole[:length])


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_number_of_threads_changes_nothing(decoder: Decoder, alone: list[Tensor], count: int) -> None:
    paged = PagedDecoder(decoder, SEQUENCES)
    with thread_count(count):
        whole = paged.step((index, 0, len(sequence)) for index, sequence in enumerate(SEQUENCES))
        decoded = paged.step((index, len(sequence) - 1, len(sequence)) for index, sequence in enumerate(SEQUENCES))
    for hidden, last, expected in zip(whole, decoded, alone, strict=True):
        assert torch.equal(hidden, expected)
        assert torch.equal(last, expected[-1:])


def test_neighbours_with_huge_values_change_nothing(decoder: Decoder, alone: list[Tensor]) -> None:
    paged = PagedDecoder(decoder, SEQUENCES)
    for tensor in (*paged.cache.keys, *paged.cache.values):
        tensor.fill_(1e18)
    assert torch.equal(paged.step([(7, 0, 200)])[0], alone[7])
