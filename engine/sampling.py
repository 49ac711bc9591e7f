"""How a token is chosen from logits: a function of the row alone, without any generator.

A greedy row takes its best token. A drawn row takes the token whose scaled logit plus Gumbel noise is greatest, which
is a draw from their softmax (Gumbel, Statistical Theory of Extreme Values, 1954). The noise is counter-based: a hash of
seed, position and token id, so it is the same in any batch, on any schedule, and after an eviction.

What decides is computed from integers and from operations that IEEE 754 rounds exactly, so neither an instruction set
nor a device nor a place in a vector turns a draw: the functions of `engine.numerics.exact` take the place of a
library's `exp` and `log`, and probabilities are summed as integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from engine.numerics.exact import exp_of_negative, log

_CANDIDATES = 4
"""Tokens whose noise is computed exactly. For another one to win, that many approximate scores would have to agree with
the best in all but the last digits of fp64."""

_SLICE_ELEMENTS = 1 << 17
"""Logits that are worked on at a time, so that what comes between them and a token stays in the caches."""

_BLOCK = 64
"""Logits among which the greatest is found first."""

_FIRST_SORTED = 256
_SORTED_GROWTH = 16

_INCREMENT = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST_MULTIPLIER = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND_MULTIPLIER = 0x94D049BB133111EB - (1 << 64)
_UNIFORM_BITS = 52
_WEIGHT_BITS = 44
_SUM_BITS = 62


@dataclass(frozen=True, slots=True)
class Draws:
    """The N rows of a step whose tokens are drawn, those with a filter first.

    rows: (N,) int64, places among the rows of logits. seeds, positions: (N,) int64; a position is that of the token
    which is drawn. temperatures, top_ps, min_ps: (N,) float64. top_ks: (N,) int64, 0 for all.
    num_filtered: rows that have any of the filters. greatest_top_k: the greatest k among them.
    has_open_top_p: whether one of them has a top-p that no top-k precedes.
    """

    rows: Tensor
    seeds: Tensor
    positions: Tensor
    temperatures: Tensor
    top_ks: Tensor
    top_ps: Tensor
    min_ps: Tensor
    num_filtered: int
    greatest_top_k: int
    has_open_top_p: bool


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """A sample for each of R rows: `token_ids` (R,) int64, `logprobs` and `margins` (R,) float32."""

    token_ids: Tensor
    logprobs: Tensor
    margins: Tensor


def sample(logits: Tensor, draws: Draws | None) -> SampledTokens:
    """Choose a token in each row: the best one (the lowest id where several are equal), or a drawn one.

    Args:
        logits: (R, vocabulary) float32.
        draws: the rows whose tokens are drawn; None if there are none, which costs nothing.

    Returns:
        The ids, their log-probabilities (float32 log-softmax of the raw logits), and the margins: the greatest logit
        minus the second greatest, 0 at a tie, whatever token was chosen.
    """
    token_ids, margins = greatest_logits(logits)
    if draws is not None:
        token_ids.index_copy_(0, draws.rows, draw(logits.index_select(0, draws.rows), draws))
    return SampledTokens(token_ids=token_ids, logprobs=token_logprobs(logits, token_ids), margins=margins)


def greatest_logits(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the id (R,) int64 of each row's greatest logit, the lowest of equal ones, and its margin (R,) float32.

    The margin is the greatest logit minus the second greatest. Both are looked for among the greatest of short blocks,
    then in one block: a search for places is many times slower than one for values.
    """
    padding = -logits.shape[-1] % _BLOCK
    padded = functional.pad(logits, (0, padding), value=-torch.inf) if padding else logits
    blocks = padded.view(logits.shape[0], -1, _BLOCK)
    tops = blocks.amax(dim=-1)
    first = tops.argmax(dim=-1, keepdim=True)
    block = blocks.gather(1, first[..., None].expand(-1, -1, _BLOCK))[:, 0]
    place = block.argmax(dim=-1, keepdim=True)
    others = tops.scatter_(1, first, -torch.inf).amax(dim=-1)
    greatest = block.gather(1, place)[:, 0]
    second = torch.maximum(others, block.scatter_(1, place, -torch.inf).amax(dim=-1))
    return (first * _BLOCK + place)[:, 0], greatest - second


def token_logprobs(logits: Tensor, token_ids: Tensor) -> Tensor:
    """Return the log-probabilities (R,) float32 of one token id (R,) a row: log-softmax of the raw logits."""
    return torch.log_softmax(logits, dim=-1).gather(1, token_ids[:, None])[:, 0]


def best_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` best token ids (R, count) int64 of each row and their log-probabilities (R, count) float32.

    The order is by log-probability, then by id, so the first n are the same for any `count` above n.
    """
    logprobs = torch.log_softmax(logits, dim=-1).add_(0.0)  # no minus zero, whose bits would sort apart from zero
    bits = logprobs.view(torch.int32).long()
    ascending = bits ^ (bits >> 31 & 0x7FFFFFFF)  # floats of either sign as integers of the same order
    last_id = logits.shape[-1] - 1
    unique = ascending * (1 << 32) + torch.arange(last_id, -1, -1, device=logits.device)
    token_ids = last_id - (unique.topk(count, dim=-1).values & 0xFFFFFFFF)
    return token_ids, logprobs.gather(1, token_ids)


def draw(logits: Tensor, draws: Draws) -> Tensor:
    """Draw a token for each of the N rows of `draws` from logits (N, vocabulary) float32; return ids (N,) int64."""
    keys = row_keys(draws.seeds, draws.positions)
    thresholds = torch.full_like(draws.temperatures, -torch.inf)
    if draws.num_filtered:
        thresholds[: draws.num_filtered] = filter_thresholds(logits[: draws.num_filtered], draws)
    columns = (logits, keys, thresholds, draws.temperatures)
    return torch.cat([_draw_slice(*(column[rows] for column in columns)) for rows in _slices(logits)])


def filter_thresholds(logits: Tensor, draws: Draws) -> Tensor:
    """Return the least logit (F,) float64 that top-k, top-p and min-p leave in each of the first F rows of `draws`.

    Each filter looks at what the one before it has left. The best token always stays; tokens that tie with the last
    one that stays do too. Only as many tokens are sorted as decide it, which changes no result: probabilities are
    added up as integers, whose sum does not depend on the order.
    """
    count, vocabulary = draws.num_filtered, logits.shape[-1]
    greatest = logits.amax(dim=-1, keepdim=True)
    temperatures = draws.temperatures[:count, None]
    total = torch.zeros_like(draws.seeds[:count, None])
    if draws.has_open_top_p:
        columns = (logits, greatest, temperatures)
        ratios = (_ratios(*(column[rows] for column in columns)) for rows in _slices(logits))
        total = torch.cat([_weights(part, vocabulary).sum(dim=-1, keepdim=True) for part in ratios])
    width = min(vocabulary, max(draws.greatest_top_k, _FIRST_SORTED))
    while True:
        ordered = logits.topk(width, dim=-1).values
        kept = _num_kept(_ratios(ordered, greatest, temperatures), total, draws, vocabulary)
        if width == vocabulary or not bool(((kept == width) & (draws.top_ks[:count, None] == 0)).any()):
            return ordered.gather(1, kept - 1)[:, 0].double()
        width = min(vocabulary, width * _SORTED_GROWTH)


def _num_kept(ratios: Tensor, total: Tensor, draws: Draws, vocabulary: int) -> Tensor:
    """How many of a row's best tokens the filters leave (F, 1), of those whose ratios (F, W) are given.

    `total` (F, 1) is the weight of the whole vocabulary where top-p is not preceded by top-k.
    """
    count, width = ratios.shape
    top_ks, top_ps = draws.top_ks[:count, None], draws.top_ps[:count, None]
    kept = (torch.arange(width, device=ratios.device) < top_ks) | (top_ks == 0)
    weights = _weights(ratios, vocabulary).mul_(kept)
    total = torch.where(top_ks == 0, total, weights.sum(dim=-1, keepdim=True))
    before = weights.cumsum(dim=-1) - weights
    kept &= (before.double() < top_ps * total.double()) | (top_ps >= 1.0)
    kept &= ratios >= draws.min_ps[:count, None]
    kept[:, 0] = True
    return kept.sum(dim=-1, keepdim=True)


def _slices(logits: Tensor) -> list[slice]:
    """Rows of logits that are worked on together."""
    rows = max(1, _SLICE_ELEMENTS // logits.shape[-1])
    return [slice(first, first + rows) for first in range(0, logits.shape[0], rows)]


def _ratios(logits: Tensor, greatest: Tensor, temperatures: Tensor) -> Tensor:
    """The ratio of each probability to the greatest one of its row, float64."""
    return exp_of_negative((logits.double() - greatest.double()).div_(temperatures))


def _weights(ratios: Tensor, vocabulary: int) -> Tensor:
    """Ratios as whole numbers, so small that those of a vocabulary add up within 63 bits."""
    return ratios.mul(float(1 << min(_WEIGHT_BITS, _SUM_BITS - vocabulary.bit_length()))).long()


def row_keys(seeds: Tensor, positions: Tensor) -> Tensor:
    """Return one key (N,) int64 for each seed and position: where the row's stretch of random numbers begins."""
    return _mix(_mix(seeds * _INCREMENT) + positions * _INCREMENT)


def random_bits(keys: Tensor, token_ids: Tensor) -> Tensor:
    """Return 64 random bits for each key and token id, which are broadcast against each other.

    They are the numbers of SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014),
    which can be read at any place of its sequence: the key is the place, the token id the distance from it.
    """
    return _mix(keys + (token_ids + 1) * _INCREMENT)


def uniform(bits: Tensor) -> Tensor:
    """Return numbers between 0 and 1, both excluded, as float64, exactly: the upper 52 bits and a half."""
    upper = _shifted(bits, 64 - _UNIFORM_BITS)
    return upper.double().add_(0.5).mul_(2.0**-_UNIFORM_BITS)


def _draw_slice(logits: Tensor, keys: Tensor, thresholds: Tensor, temperatures: Tensor) -> Tensor:
    """The drawn ids of some rows."""
    scaled = logits.double()
    is_out = scaled < thresholds[:, None]
    # From the greatest down, so that no temperature, however small, makes an infinity of the best token.
    scaled.sub_(scaled.amax(dim=-1, keepdim=True)).div_(temperatures[:, None]).masked_fill_(is_out, -torch.inf)
    bits = random_bits(keys[:, None], torch.arange(logits.shape[-1], device=logits.device))
    approximate = uniform(bits).log_().neg_().log_().neg_().add_(scaled)
    candidates = approximate.topk(min(_CANDIDATES, logits.shape[-1]), dim=-1).indices
    noise = -log(-log(uniform(bits.gather(1, candidates))))
    scores = scaled.gather(1, candidates) + noise
    is_best = scores == scores.amax(dim=-1, keepdim=True)
    return torch.where(is_best, candidates, logits.shape[-1]).amin(dim=-1)


def _mix(bits: Tensor) -> Tensor:
    """The output function of SplitMix64, on 64 bits in int64, whose products wrap."""
    bits = _shifted(bits, 30).bitwise_xor_(bits).mul_(_FIRST_MULTIPLIER)
    bits = _shifted(bits, 27).bitwise_xor_(bits).mul_(_SECOND_MULTIPLIER)
    return _shifted(bits, 31).bitwise_xor_(bits)


def _shifted(bits: Tensor, count: int) -> Tensor:
    """A shift to the right that brings in zeros, where int64 would bring in its sign."""
    return (bits >> count).bitwise_and_((1 << (64 - count)) - 1)
