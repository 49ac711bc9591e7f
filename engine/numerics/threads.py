"""How many threads an operation runs on; never what it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor


@contextmanager
def thread_count(threads: int) -> Iterator[None]:
    """Run a block with another number of intra-op threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread() -> AbstractContextManager[None]:
    """Run a block on one intra-op thread."""
    return thread_count(1)


def run(function: Callable[..., Tensor], *operands: Tensor | None, is_small: bool) -> Tensor:
    """Call a library function that would wake its threads for anything; a small one is run on one.

    Waking the others costs more than a small operation takes, and on a busy machine a hundred times more.
    """
    if is_small and torch.get_num_threads() > 1:
        with one_thread():
            return function(*operands)
    return function(*operands)
