"""The pool of KV-cache blocks: who holds which block. No torch here.

Block 0 is the dummy block: padding rows write there and block tables end in it, so it is never handed out.
"""

from __future__ import annotations

DUMMY_BLOCK = 0


class BlockPool:
    """Hands out the blocks 1 … `num_blocks`, each to one holder at a time.

    The block that was given back last is handed out first, so which block holds what follows from the schedule alone.
    """

    def __init__(self, num_blocks: int) -> None:
        """Start with every block free."""
        self.num_blocks = num_blocks
        self.peak_in_use = 0
        self._free = list(range(num_blocks, DUMMY_BLOCK, -1))
        self._held = [False] * (num_blocks + 1)

    @property
    def num_free(self) -> int:
        """Number of blocks that nobody holds."""
        return len(self._free)

    @property
    def num_held(self) -> int:
        """Number of blocks that are held."""
        return self.num_blocks - len(self._free)

    def take(self, count: int) -> list[int]:
        """Hand out `count` blocks; the caller has looked at `num_free`."""
        assert 0 <= count <= len(self._free), "more blocks taken than are free"
        blocks = [self._free.pop() for _ in range(count)]
        for block in blocks:
            assert not self._held[block], f"block {block} is handed out twice"
            self._held[block] = True
        self.peak_in_use = max(self.peak_in_use, self.num_held)
        return blocks

    def give_back(self, blocks: list[int]) -> None:
        """Take blocks back from their holder."""
        for block in blocks:
            assert self._held[block], f"block {block} is given back twice"
            self._held[block] = False
        self._free.extend(blocks)
