from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from engine.request import SamplingParams
from engine.sampling import (
    best_tokens,
    draw,
    filter_thresholds,
    greatest_logits,
    random_bits,
    row_keys,
    sample,
    token_logprobs,
    uniform,
)
from tests.engine.drawing import WORD, draws_of, plain_bits, plain_draw, plain_support

SEEDS = st.integers(0, (1 << 63) - 1)
# Quarters, so that logits tie.
LOGITS = st.lists(st.integers(-40, 40).map(lambda quarter: quarter / 4), min_size=2, max_size=40)
FILTERS = st.builds(
    SamplingParams,
    temperature=st.floats(0.05, 20),
    top_k=st.integers(0, 45),
    top_p=st.floats(0.01, 1),
    min_p=st.one_of(st.just(0.0), st.floats(0.001, 1)),
)
OPEN = SamplingParams(temperature=1.0)


def random_logits(rows: int, vocabulary: int, scale: float = 3.0) -> Tensor:
    return scale * torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(rows * vocabulary))


def chi_square(observed: Iterable[int], expected: Sequence[float]) -> float:
    return sum((count - wanted) ** 2 / wanted for count, wanted in zip(observed, expected, strict=True))


def assert_uniform(bins: Tensor, number: int) -> None:
    """Chi-square of counts that should be equal, within five standard deviations, and not too good either."""
    counts = torch.bincount(bins.reshape(-1), minlength=number)
    statistic = chi_square(counts.tolist(), [bins.numel() / number] * number)
    deviation = math.sqrt(2 * (number - 1))
    assert abs(statistic - (number - 1)) < 5 * deviation


@given(SEEDS, st.integers(0, 1 << 24), st.integers(0, 1 << 20))
def test_the_random_bits_are_those_of_splitmix64(seed: int, position: int, token_id: int) -> None:
    bits = random_bits(row_keys(torch.tensor([seed]), torch.tensor([position])), torch.tensor([token_id]))
    assert int(bits.item()) & WORD == plain_bits(seed, position, token_id)


def test_the_first_numbers_are_those_that_were_published() -> None:
    bits = random_bits(torch.zeros(1, dtype=torch.int64), torch.arange(3))
    assert [number & WORD for number in bits.tolist()] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_numbers_are_uniform_and_independent_along_tokens_positions_and_seeds() -> None:
    seeds, positions, token_ids = torch.arange(40), torch.arange(50), torch.arange(500)
    keys = row_keys(seeds[:, None].expand(40, 50).reshape(-1), positions.repeat(40))
    numbers = uniform(random_bits(keys[:, None], token_ids)).view(40, 50, 500)
    assert float(numbers.min()) > 0
    assert float(numbers.max()) < 1
    assert_uniform((numbers * 256).long(), 256)
    eighths = (numbers * 16).long()
    for axis in range(3):
        near, far = eighths.narrow(axis, 0, eighths.shape[axis] - 1), eighths.narrow(axis, 1, eighths.shape[axis] - 1)
        assert_uniform(near * 16 + far, 256)


def test_every_bit_is_set_half_the_time() -> None:
    bits = random_bits(row_keys(torch.arange(300), torch.full((300,), 7))[:, None], torch.arange(300))
    for place in range(64):
        share = (bits >> place & 1).double().mean().item()
        assert abs(share - 0.5) < 0.5 * 5 / 300


@pytest.mark.parametrize(
    "sampling",
    [
        OPEN,
        SamplingParams(temperature=0.5),
        SamplingParams(temperature=2.0, top_k=5),
        SamplingParams(temperature=1.0, top_p=0.8),
        SamplingParams(temperature=3.0, min_p=0.2),
    ],
)
def test_draws_are_distributed_as_the_softmax_of_what_the_filters_leave(sampling: SamplingParams) -> None:
    logits = torch.tensor([0.3, -1.0, 2.0, 1.9, 0.0, -0.5, 1.2, -3.0])
    count = 20_000
    draws = draws_of([sampling] * count, [5] * count, range(count))
    drawn = torch.bincount(draw(logits.expand(count, -1).contiguous(), draws), minlength=8)
    support, _ = plain_support(logits.tolist(), sampling)
    weights = {token: math.exp(logits[token].item() / sampling.temperature) for token in sorted(support)}
    expected = [count * weight / math.fsum(weights.values()) for weight in weights.values()]
    assert {token for token in range(8) if drawn[token]} <= support
    assert chi_square((int(drawn[token]) for token in weights), expected) < 30


@given(LOGITS, FILTERS)
def test_the_filters_leave_what_they_leave_in_plain_python(logits: list[float], sampling: SamplingParams) -> None:
    assume(sampling.is_filtered)
    support, is_close = plain_support(logits, sampling)
    assume(not is_close)
    rows = torch.tensor([logits])
    threshold = filter_thresholds(rows, draws_of([sampling], [0], [0]))
    assert {token for token, logit in enumerate(logits) if logit >= threshold.item()} == support


@pytest.mark.parametrize("sampling", [SamplingParams(temperature=1.0, top_p=0.9), SamplingParams(1, 9.0, min_p=0.2)])
def test_a_filter_that_leaves_thousands_is_decided_as_one_that_leaves_few(sampling: SamplingParams) -> None:
    logits = random_logits(1, 6000, scale=0.5)
    threshold = filter_thresholds(logits, draws_of([sampling], [0], [0]))
    support, is_close = plain_support(logits[0].tolist(), sampling)
    assert not is_close
    assert set((logits[0] >= threshold).nonzero()[:, 0].tolist()) == support
    assert len(support) > 4000


@given(LOGITS, FILTERS, SEEDS, st.integers(0, 5000))
def test_a_draw_is_the_greatest_of_logit_and_noise(
    logits: list[float], sampling: SamplingParams, seed: int, position: int
) -> None:
    assume(not plain_support(logits, sampling)[1])
    drawn = draw(torch.tensor([logits]), draws_of([sampling], [seed], [position]))
    assert drawn.item() == plain_draw(logits, sampling, seed, position)


def test_a_row_is_drawn_alike_beside_any_neighbours() -> None:
    """200 rows of a vocabulary that no vector divides, in slices, in another order, and one by one."""
    count, vocabulary = 200, 2049
    logits = random_logits(count, vocabulary)
    kinds = [
        SamplingParams(temperature=0.7, top_k=3),
        SamplingParams(temperature=1.5, top_p=0.6),
        SamplingParams(temperature=2.5, top_k=50, top_p=0.9, min_p=0.01),
        SamplingParams(temperature=1.0, min_p=0.3),
    ]
    parameters = [kinds[index % 4] for index in range(count // 2)] + [OPEN] * (count // 2)
    seeds, positions = list(range(count)), [index % 7 for index in range(count)]
    together = draw(logits, draws_of(parameters, seeds, positions)).tolist()
    order = [*range(count // 2 - 1, -1, -1), *range(count - 1, count // 2 - 1, -1)]
    columns = ([values[index] for index in order] for values in (parameters, seeds, positions))
    reordered = draw(logits[order], draws_of(*columns)).tolist()
    assert reordered == [together[index] for index in order]
    for index in range(0, count, 9):
        alone = draws_of([parameters[index]], [seeds[index]], [positions[index]])
        assert draw(logits[index : index + 1], alone).item() == together[index]


def test_the_greatest_top_k_of_a_batch_reaches_nobody_else_even_at_a_tie() -> None:
    tied = torch.tensor([[3.0, 3.0, 3.0, 3.0, 0.0, -1.0]])
    narrow, wide = SamplingParams(temperature=1.0, top_k=2, top_p=0.7), SamplingParams(temperature=1.0, top_k=6)
    alone = filter_thresholds(tied, draws_of([narrow], [0], [0]))
    beside = filter_thresholds(tied.repeat(2, 1), draws_of([narrow, wide], [0, 0], [0, 0]))
    assert beside.tolist() == [*alone.tolist(), -1.0]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compares the CPU with a CUDA device, and there is none here")
def test_a_cuda_device_draws_what_the_cpu_draws() -> None:
    logits = random_logits(400, 3001)
    filtered = [SamplingParams(temperature=2.0, top_p=0.9), SamplingParams(temperature=1.0, top_k=9, min_p=0.1)] * 100
    draws = draws_of([*filtered, *[OPEN] * 200], range(400), range(400))
    columns = {name: getattr(draws, name) for name in draws.__slots__}
    moved: dict[str, Any] = {name: column.cuda() for name, column in columns.items() if isinstance(column, Tensor)}
    there = dataclasses.replace(draws, **moved)
    assert torch.equal(draw(logits.cuda(), there).cpu(), draw(logits, draws))


def test_seed_and_position_each_change_what_is_drawn() -> None:
    logits = random_logits(1, 500).expand(40, -1).contiguous()
    by_seed = draw(logits, draws_of([OPEN] * 40, range(40), [3] * 40)).tolist()
    by_position = draw(logits, draws_of([OPEN] * 40, [3] * 40, range(40))).tolist()
    assert len(set(by_seed)) > 10
    assert len(set(by_position)) > 10
    assert by_seed != by_position


@pytest.mark.parametrize("temperature", [5e-324, 1e-30, 1e-6])
def test_a_temperature_next_to_nothing_draws_among_the_best(temperature: float) -> None:
    logits = torch.tensor([[1.0, 5.0, 2.0, 5.0, 4.9]]).repeat(60, 1)
    sampling = SamplingParams(temperature=temperature)
    drawn = draw(logits, draws_of([sampling] * 60, range(60), [0] * 60)).tolist()
    assert set(drawn) == {1, 3}


@pytest.mark.parametrize(
    "sampling",
    [SamplingParams(4, 2.0, top_k=1), SamplingParams(4, 2.0, top_p=1e-12), SamplingParams(4, 2.0, min_p=1.0)],
)
def test_a_filter_that_leaves_one_token_is_greedy(sampling: SamplingParams) -> None:
    logits = random_logits(50, 100)
    drawn = draw(logits, draws_of([sampling] * 50, range(50), range(50)))
    assert torch.equal(drawn, logits.argmax(dim=-1))


def test_greedy_rows_are_untouched_by_drawn_ones_and_keep_their_margins() -> None:
    logits = random_logits(6, 300)
    greedy = sample(logits, None)
    draws = draws_of([SamplingParams(temperature=5.0)] * 2, [1, 2], [9, 9])
    places = torch.tensor([4, 1])
    mixed = sample(logits, type(draws)(places, *(getattr(draws, name) for name in draws.__slots__[1:])))
    others = [0, 2, 3, 5]
    assert torch.equal(mixed.token_ids[others], greedy.token_ids[others])
    assert torch.equal(mixed.token_ids[places], draw(logits[places], draws))
    assert torch.equal(mixed.margins, greedy.margins)
    assert torch.equal(mixed.logprobs, token_logprobs(logits, mixed.token_ids))
    assert not torch.equal(mixed.token_ids, greedy.token_ids)


def test_greedy_takes_the_lowest_of_equal_tokens() -> None:
    sampled = sample(torch.tensor([[0.0, 2.0, 2.0], [1.0, 1.0, 1.0]]), None)
    assert sampled.token_ids.tolist() == [1, 0]
    assert sampled.margins.tolist() == [0.0, 0.0]


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=300))
def test_the_greatest_logit_and_its_margin_are_those_of_a_sort(logits: list[int]) -> None:
    first, second = sorted(range(len(logits)), key=lambda token: (-logits[token], token))[:2]
    rows = torch.tensor([[0.0] * len(logits), logits])
    token_ids, margins = greatest_logits(rows)
    assert token_ids.tolist() == [0, first]
    assert margins.tolist() == [0.0, logits[first] - logits[second]]
    assert rows[1].tolist() == logits


@given(LOGITS, st.integers(1, 40))
def test_the_best_tokens_are_ordered_by_logprob_then_id(logits: list[float], count: int) -> None:
    count = min(count, len(logits))
    token_ids, logprobs = best_tokens(torch.tensor([logits]), count)
    exact = torch.log_softmax(torch.tensor(logits), dim=-1).tolist()
    order = sorted(range(len(logits)), key=lambda token: (-exact[token], token))
    assert token_ids[0].tolist() == order[:count]
    assert logprobs[0].tolist() == [exact[token] for token in order[:count]]


def test_the_best_token_may_be_certain() -> None:
    token_ids, logprobs = best_tokens(torch.tensor([[0.0, 200.0, -50.0, 0.0]]), 4)
    assert token_ids.tolist() == [[1, 0, 3, 2]]
    assert all(first >= second for first, second in pairwise(logprobs[0].tolist()))
