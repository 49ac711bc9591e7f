"""Draws without an engine, and what they are in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from engine.request import SamplingParams
from engine.sampling import Draws

WORD = (1 << 64) - 1


def draws_of(parameters: Sequence[SamplingParams], seeds: Sequence[int], positions: Sequence[int]) -> Draws:
    """Draws of rows of logits in this order, which must begin with those that have a filter."""
    filtered = [each for each in parameters if each.is_filtered]
    assert list(parameters[: len(filtered)]) == filtered

    def floats(name: str) -> torch.Tensor:
        return torch.tensor([getattr(each, name) for each in parameters], dtype=torch.float64)

    return Draws(
        rows=torch.arange(len(parameters)),
        seeds=torch.tensor(seeds),
        positions=torch.tensor(positions),
        temperatures=floats("temperature"),
        top_ks=torch.tensor([each.top_k for each in parameters]),
        top_ps=floats("top_p"),
        min_ps=floats("min_p"),
        num_filtered=len(filtered),
        greatest_top_k=max((each.top_k for each in filtered), default=0),
        has_open_top_p=any(each.top_p < 1 and not each.top_k for each in filtered),
    )


def plain_support(logits: Sequence[float], sampling: SamplingParams) -> tuple[set[int], bool]:
    """The tokens that top-k, top-p and min-p leave, and whether one of them was decided by less than rounding."""
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    order = order[: sampling.top_k] if sampling.top_k else order
    weights = [math.exp((logits[token] - logits[order[0]]) / sampling.temperature) for token in order]
    total, before, kept, is_close = math.fsum(weights), 0.0, 0, False
    for weight in weights:
        borders = ((before / total, sampling.top_p if sampling.top_p < 1 else 2.0), (weight, sampling.min_p or -1.0))
        is_close |= any(abs(value - border) < 1e-9 for value, border in borders)
        if kept and (before / total >= borders[0][1] or weight < sampling.min_p):
            break
        kept += 1
        before += weight
    least = logits[order[kept - 1]]
    return {token for token, logit in enumerate(logits) if logit >= least}, is_close


def plain_bits(seed: int, position: int, token_id: int) -> int:
    """SplitMix64 in unbounded integers."""
    increment = 0x9E3779B97F4A7C15
    key = mixed((mixed(seed * increment & WORD) + position * increment) & WORD)
    return mixed((key + (token_id + 1) * increment) & WORD)


def mixed(bits: int) -> int:
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & WORD
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & WORD
    return bits ^ bits >> 31


def plain_draw(logits: Sequence[float], sampling: SamplingParams, seed: int, position: int) -> int:
    """The token whose scaled logit plus Gumbel noise is greatest."""

    def score(token: int) -> float:
        uniform = ((plain_bits(seed, position, token) >> 12) + 0.5) * 2.0**-52
        return logits[token] / sampling.temperature - math.log(-math.log(uniform))

    return max(sorted(plain_support(logits, sampling)[0]), key=score)
