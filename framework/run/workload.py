"""What a manifest's workload means, for any engine: the tokens of each prompt, its arrival, its sampling."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from framework.manifest.fixture import Prompt, Workload


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """A request of a workload with nothing left to look up; `request_id` is its place in the manifest."""

    request_id: str
    token_ids: tuple[int, ...]
    sampling: Mapping[str, Any]
    arrival_step: int


def plain_requests(
    workload: Workload,
    *,
    encode: Callable[[str], Sequence[int]],
    vocabulary_size: int,
) -> tuple[PlainRequest, ...]:
    """Return the requests of a workload in order; `encode` turns a text into token ids."""
    return tuple(
        PlainRequest(
            request_id=str(index),
            token_ids=_token_ids(prompt, encode, vocabulary_size),
            sampling={**workload.sampling, **prompt.sampling},
            arrival_step=arrival_step(workload, index),
        )
        for index, prompt in enumerate(workload.prompts)
    )


def arrival_step(workload: Workload, index: int) -> int:
    """Return the loop call at which a request arrives: its own, else by waves, else the first."""
    own = workload.prompts[index].arrival_step
    if own is not None:
        return own
    return index // workload.requests_per_step if workload.requests_per_step else 0


def all_arrive_at_start(workload: Workload) -> bool:
    """Say whether no request waits for another, so that their order is free."""
    return all(arrival_step(workload, index) == 0 for index in range(len(workload.prompts)))


def is_greedy(workload: Workload, index: int) -> bool:
    """Say whether a request takes the best token at each position, so that its margins decide its tokens."""
    sampling = {**workload.sampling, **workload.prompts[index].sampling}
    return bool(sampling.get("temperature", 0) == 0)


def random_token_ids(length: int, seed: int, vocabulary_size: int) -> tuple[int, ...]:
    """Return `length` token ids below `vocabulary_size`, each a function of the seed and its own index alone."""
    return tuple(
        int.from_bytes(hashlib.sha256(f"{seed}:{index}".encode()).digest()[:8], "big") % vocabulary_size
        for index in range(length)
    )


def _token_ids(prompt: Prompt, encode: Callable[[str], Sequence[int]], vocabulary_size: int) -> tuple[int, ...]:
    if prompt.token_ids is not None:
        return tuple(prompt.token_ids)
    if prompt.text is not None:
        return tuple(encode(prompt.text))
    assert prompt.random_length is not None, "a prompt is a text, token ids, or random"
    assert prompt.random_seed is not None, "a random prompt has its seed"
    return random_token_ids(prompt.random_length, prompt.random_seed, vocabulary_size)
