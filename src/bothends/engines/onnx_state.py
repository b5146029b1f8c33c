"""What a search over the exported graphs remembers: arrays that only ever grow at their end.

The keys and values of a slot are written once, behind those of the slots before it, and stay where
they are. With K rows to a sentence each slot leaves K *entries*; a row that a beam search selects
takes over its parent's *path*, the entries that are its own past, and not the entries themselves.
When a sentence leaves the batch, and only then, the rest is moved together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bothends.order import BoolArray, IntArray

Float32Array = NDArray[np.float32]

#: Added to the score of what must not be seen: its exponential is 0, and 0 times it is no NaN.
FORBIDDEN = np.float32(-1e9)
#: A mask that forbids nothing.
EVERYTHING = np.zeros((1, 1, 1, 1), np.float32)
#: Entries to make room for at first.
FIRST_ENTRIES = 64


def additive(allowed: BoolArray) -> Float32Array:
    """A mask as graphs want it: 0 where something may be seen."""
    return np.where(allowed, np.float32(0), FORBIDDEN)


@dataclass
class OnnxState:
    """The state of one search over `S` sentences with `rows_each` rows each."""

    #: keys and values of the source for each decoder layer, (2 * layers, S, H, N, d)
    memory: Float32Array
    #: what is padding in the source, (S, 1, 1, N), or `EVERYTHING`
    source_mask: Float32Array
    #: inputs and outputs of the decoder, most of which stay bound from step to step
    binding: Any
    rows_each: int = 1
    #: the slot of each entry
    slots: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    #: what each row must not see of its sentence's entries, (S, K, E); None: there is nothing
    paths: Float32Array | None = None
    #: keys and values of each layer's self-attention: (E, S, D) at the start of a line
    cache: Float32Array = field(init=False)

    def __post_init__(self) -> None:
        self.cache = np.empty((len(self.memory), FIRST_ENTRIES * self._entry_size), np.float32)

    @property
    def sentences(self) -> int:
        return int(self.memory.shape[1])

    @property
    def entries(self) -> int:
        return len(self.slots)

    @property
    def _entry_size(self) -> int:
        _, sentences, heads, _, head_width = self.memory.shape
        return int(sentences * heads * head_width)

    def past(self, line: int, first: int = 0) -> Float32Array:
        """The entries from `first` on of a line of the cache, (E - first, S, H, d)."""
        size = self._entry_size
        _, sentences, heads, _, head_width = self.memory.shape
        stretch = self.cache[line, first * size : self.entries * size]
        return stretch.reshape(-1, sentences, heads, head_width)

    def extend(self, block_size: int) -> None:
        """Make room for the entries of one block, (Z, K) to a sentence, which are still unknown."""
        rows, entries = self.rows_each, self.entries
        first_slot = self.slots[-1] + 1 if entries else 0
        new_slots = np.repeat(np.arange(first_slot, first_slot + block_size), rows)
        self.slots = np.concatenate([self.slots, new_slots])
        needed = self.entries * self._entry_size
        if needed > self.cache.shape[1]:
            grown = np.empty((len(self.cache), 2 * needed), np.float32)
            grown[:, : self.cache.shape[1]] = self.cache
            self.cache = grown
        if rows == 1 and self.paths is None:
            return
        past = self.paths
        if past is None:
            past = np.zeros((self.sentences, rows, entries), np.float32)
        # Entries of a block are (Z, K), and a row sees those of its own.
        own = np.tile(additive(np.eye(rows, dtype=np.bool_)), block_size)  # (K, Z * K)
        block = np.broadcast_to(own, (self.sentences, *own.shape))
        self.paths = np.concatenate([past, block], axis=2)

    def mask(self, mask_rows: BoolArray) -> Float32Array:
        """What the rows must not see, (S, 1, Z * K, E), given what slots must not (Z, T)."""
        by_slot = None if mask_rows.all() else additive(mask_rows[:, self.slots])  # (Z, E)
        if self.paths is None:
            return EVERYTHING if by_slot is None else by_slot[None, None]
        sentences, rows, entries = self.paths.shape
        block_size = len(mask_rows)
        if by_slot is None:
            by_slot = np.zeros((block_size, 1), np.float32)
        # (S, 1, K, E) + (Z, 1, E) -> (S, Z, K, E); twice forbidden is forbidden
        both = self.paths[:, None] + by_slot[:, None]
        return both.reshape(sentences, 1, block_size * rows, entries)

    def select(self, rows: IntArray) -> bool:
        """Go on with `rows` (S', K') of the present ones. True if sentences moved."""
        sentences = rows[:, 0] // self.rows_each
        if self.paths is not None:
            self.paths = self.paths[sentences[:, None], rows % self.rows_each]
        self.rows_each = rows.shape[1]
        if np.array_equal(sentences, np.arange(self.sentences)):
            return False
        past = [self.past(line) for line in range(len(self.cache))]
        if self.source_mask is not EVERYTHING:
            self.source_mask = self.source_mask[sentences]
        self.memory = self.memory[:, sentences]
        self.cache = np.empty(
            (len(self.memory), (self.entries + FIRST_ENTRIES) * self._entry_size), np.float32
        )
        for line, old in enumerate(past):
            np.take(old, sentences, axis=1, out=self.past(line))
        return True
