"""A random order of any number of items, computed item by item instead of stored.

An array of 10 million shuffled indices would be memory that grows with the corpus. A Feistel
network is a keyed bijection on the numbers of `2 * half` bits; numbers that fall outside the range
go through it again until they are inside ("cycle walking"), which leaves a bijection on exactly the
range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bothends.order import IntArray

ROUNDS = 6


class RandomOrder:
    """The permutation of `range(size)` that a key, such as `(seed, epoch)`, stands for."""

    def __init__(self, size: int, key: tuple[int, ...]) -> None:
        self.size = size
        self._half = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
        self._keys = np.random.SeedSequence(key).generate_state(ROUNDS, np.uint64)

    def __call__(self, places: IntArray) -> IntArray:
        """What stands at `places`, all of them below `size`."""
        items = self._encrypt(places.astype(np.uint64))
        while (outside := items >= self.size).any():
            items[outside] = self._encrypt(items[outside])
        return items.astype(np.int64)

    def _encrypt(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        half, low = np.uint64(self._half), np.uint64((1 << self._half) - 1)
        left, right = numbers >> half, numbers & low
        for key in self._keys:
            left, right = right, left ^ (_mix(right ^ key) & low)
        encrypted: NDArray[np.uint64] = (left << half) | right
        return encrypted


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of the result depends on every bit of `x` (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
