"""How a token is chosen from logits: a function of the row alone, without any generator."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """A sample for each of R rows: `token_ids` (R,) int64, `logprobs` and `margins` (R,) float32."""

    token_ids: Tensor
    logprobs: Tensor
    margins: Tensor


def sample_greedily(logits: Tensor) -> SampledTokens:
    """Choose the token with the greatest logit in each row, the lowest id where several are equal.

    Args:
        logits: (R, vocabulary) float32.

    Returns:
        The ids, their log-probabilities (float32 log-softmax of the raw logits), and the margins: the greatest logit
        minus the second greatest, 0 at a tie.
    """
    token_ids = logits.argmax(dim=-1)
    logprobs = torch.log_softmax(logits, dim=-1).gather(1, token_ids[:, None])[:, 0]
    greatest = logits.topk(2, dim=-1).values
    return SampledTokens(token_ids=token_ids, logprobs=logprobs, margins=greatest[:, 0] - greatest[:, 1])
