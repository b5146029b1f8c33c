"""Where a search keeps keys and values, and the memory that one search after another uses.

A search writes megabytes of them. Asking the system for that memory each time costs more than
writing to it, because every page is cleared on first use; so it is kept for the next search.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from bothends.order import IntArray

Float32Array = NDArray[np.float32]

#: Arrays that are kept for later; a search needs one at a time.
KEPT = 8
#: Entries of each sentence to make room for at first.
FIRST_ENTRIES = 64


class ArrayPool:
    """Flat arrays of any content. Threads may lease at once: a deque's methods are atomic."""

    def __init__(self) -> None:
        self._free: deque[Float32Array] = deque(maxlen=KEPT)

    def lease(self, size: int) -> Lease:
        """An array of at least `size` numbers, the caller's until the lease is dropped."""
        try:
            # One that is too small is let go: a larger one will do for its next user as well.
            while len(array := self._free.pop()) < size:
                pass
        except IndexError:
            array = np.empty(1 << (size - 1).bit_length(), np.float32)
        return Lease(self, array)

    def give_back(self, array: Float32Array) -> None:
        self._free.append(array)


class Lease:
    """An array that goes back to its pool with the last reference to this lease."""

    def __init__(self, pool: ArrayPool, array: Float32Array) -> None:
        self._pool = pool
        self.array = array

    def __del__(self) -> None:
        self._pool.give_back(self.array)


class SourceMemory:
    """Keys and values of the source for each decoder layer, one line each: (lines, S, H, N, d)."""

    def __init__(self, pool: ArrayPool, shape: tuple[int, ...]) -> None:
        self._pool = pool
        size = int(np.prod(shape))
        self._lease = pool.lease(size)
        self.array = self._lease.array[:size].reshape(shape)

    def select(self, sentences: IntArray) -> SourceMemory:
        lines, _, *rest = self.array.shape
        selected = SourceMemory(self._pool, (lines, len(sentences), *rest))
        for old, new in zip(self.array, selected.array, strict=True):
            np.take(old, sentences, axis=0, out=new, mode="clip")
        return selected


class Cache:
    """Keys and values of each layer's self-attention, one line each: (window, S, H, d), growing.

    What is inside the window but not in use is zero: it is masked, but multiplied all the same.
    """

    def __init__(self, pool: ArrayPool, lines: int, entry: tuple[int, int, int]) -> None:
        self._pool = pool
        self._lines = lines
        self._entry = entry  # (S, H, d)
        self._size = int(np.prod(entry))
        self._lease = pool.lease(lines * FIRST_ENTRIES * self._size)
        self.window = 0

    def line(self, number: int) -> Float32Array:
        """The window of one line, (window, S, H, d)."""
        return self._stretch(number, 0, self.window).reshape(self.window, *self._entry)

    def grow(self, window: int) -> None:
        """Show more entries, which are zero."""
        if self._lines * window * self._size > len(self._lease.array):
            self._move(self._pool.lease(2 * self._lines * window * self._size))
        for number in range(self._lines):
            self._stretch(number, self.window, window)[...] = 0
        self.window = window

    def select(self, sentences: IntArray, entries: int) -> Cache:
        """The cache of some of the sentences, of which so many entries are in use."""
        selected = Cache(self._pool, self._lines, (len(sentences), *self._entry[1:]))
        selected.grow(self.window)
        for number in range(self._lines):
            old, new = self.line(number)[:entries], selected.line(number)[:entries]
            np.take(old, sentences, axis=1, out=new, mode="clip")
        return selected

    def _stretch(self, line: int, first: int, end: int) -> Float32Array:
        start = line * (len(self._lease.array) // self._lines)
        return self._lease.array[start + first * self._size : start + end * self._size]

    def _move(self, lease: Lease) -> None:
        used = [self._stretch(number, 0, self.window) for number in range(self._lines)]
        outgrown, self._lease = self._lease, lease
        for number, stretch in enumerate(used):
            self._stretch(number, 0, self.window)[...] = stretch
        del outgrown  # only now may another search have it
