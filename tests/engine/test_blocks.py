from __future__ import annotations

import pytest

from engine.blocks import DUMMY_BLOCK, BlockPool


def test_every_block_but_the_dummy_is_handed_out_once() -> None:
    pool = BlockPool(5)
    assert sorted(pool.take(2) + pool.take(3)) == [1, 2, 3, 4, 5]
    assert pool.num_free == 0
    assert DUMMY_BLOCK not in range(1, 6)


def test_blocks_that_were_given_back_are_handed_out_again() -> None:
    pool = BlockPool(2)
    blocks = pool.take(2)
    pool.give_back(blocks)
    assert sorted(pool.take(2)) == [1, 2]


def test_the_peak_is_the_most_blocks_held_at_once() -> None:
    pool = BlockPool(4)
    pool.give_back(pool.take(3))
    pool.take(1)
    assert pool.peak_in_use == 3


def test_taking_more_than_is_free_is_an_error_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="more blocks taken"):
        BlockPool(1).take(2)


def test_giving_a_block_back_twice_is_an_error_of_the_caller() -> None:
    pool = BlockPool(2)
    blocks = pool.take(1)
    pool.give_back(blocks)
    with pytest.raises(AssertionError, match="given back twice"):
        pool.give_back(blocks)
