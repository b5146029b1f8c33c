"""What a search over the exported graphs remembers.

The keys and values of a slot are written once, behind those of the slots before it, and stay where
they are. With K rows to a sentence each slot leaves K *entries*; a row that a beam search selects
takes over its parent's *path*, the entries that are its own past, and not the entries themselves.
When a sentence leaves the batch, and only then, the rest is moved together.

The decoder is shown a *window* of entries that is a little longer than what is used: so its inputs
and outputs stay bound to the same memory for many steps, and Python has little to do in a step.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bothends.engines.onnx.binding import Binding, StepArrays
from bothends.engines.onnx.memory import ArrayPool, Cache, Float32Array, SourceMemory
from bothends.order import BoolArray, IntArray

#: Added to the score of what must not be seen: its exponential is 0, and 0 times it is no NaN.
FORBIDDEN = np.float32(-1e9)
#: A mask that forbids nothing.
EVERYTHING = np.zeros((1, 1, 1, 1), np.float32)
#: Slots by which the window grows, shared out among all rows: what is shown and not used is still
#: read, which is next to nothing for one row and much for many.
WINDOW = 32
SMALLEST_WINDOW = 4


def additive(allowed: BoolArray) -> Float32Array:
    """A mask as graphs want it: 0 where something may be seen."""
    return np.where(allowed, np.float32(0), FORBIDDEN)


@lru_cache
def own_entries(rows: int, block_size: int) -> Float32Array:
    """What each of K rows must not see of a block's entries (Z, K): those of the others."""
    return np.tile(additive(np.eye(rows, dtype=np.bool_)), block_size)  # (K, Z * K)


class OnnxState:
    """The state of one search over S sentences with K rows each. Only the engine changes it."""

    def __init__(
        self, memory: SourceMemory, source_mask: Float32Array, binding: Binding, caches: ArrayPool
    ) -> None:
        self.memory = memory
        #: what is padding in the source, (S, 1, 1, N), or `EVERYTHING`
        self.source_mask = source_mask
        self.binding = binding
        #: inputs and outputs of the last step, used again by a step of the same shape
        self.arrays: StepArrays | None = None
        lines, self.sentences, heads, _, head_width = memory.array.shape
        self.rows_each = 1
        #: entries of each sentence that are in use
        self.entries = 0
        self.cache = Cache(caches, lines, (self.sentences, heads, head_width))
        #: slots and rows of each block so far
        self._blocks: list[tuple[int, int]] = []
        #: what each row must not see of the window, (S, K, window); None: only what is not used
        self._paths: Float32Array | None = None
        #: the mask of the last step, written to again where its shape is the same
        self._mask = EVERYTHING

    @property
    def window(self) -> int:
        """Entries that the decoder is shown."""
        return self.cache.window

    def extend(self, block_size: int) -> bool:
        """Take in the entries of one block, (Z, K) of each sentence. True if the window grew."""
        rows, first = self.rows_each, self.entries
        self._blocks.append((block_size, rows))
        self.entries += block_size * rows
        grew = self.entries > self.window
        if grew:
            more = rows * max(WINDOW // (self.sentences * rows), SMALLEST_WINDOW)
            self._grow(-(-self.entries // more) * more)
        if rows > 1 and self._paths is None:
            self._paths = np.full((self.sentences, rows, self.window), FORBIDDEN)
            self._paths[:, :, :first] = 0
        if self._paths is not None:
            self._paths[:, :, first : self.entries] = own_entries(rows, block_size)
        return grew

    def mask(self, mask_rows: BoolArray) -> Float32Array:
        """What rows must not see, (S or 1, 1, Z * K or 1, window), if slots see `mask_rows`.

        It may be the very array that was returned before, with other values.
        """
        block_size, rows = self._blocks[-1]
        if self._paths is None:
            if mask_rows.all():
                return self._everything_used()
            return self._by_slot(mask_rows)[None, None]
        shape = (self.sentences, 1, block_size * rows, self.window)
        if self._mask.shape != shape:
            self._mask = np.empty(shape, np.float32)
        # (S, Z * K, window) as (S, Z, K, window)
        split = self._mask.reshape(self.sentences, block_size, rows, self.window)
        split[...] = self._paths[:, None]
        if not mask_rows.all():
            split += self._by_slot(mask_rows)[:, None]  # twice forbidden is forbidden
        return self._mask

    def select(self, rows: IntArray) -> bool:
        """Go on with `rows` (S', K') of the present ones. True if sentences left or moved."""
        if self._paths is not None:
            by_row = self._paths.reshape(-1, self.window)
            self._paths = by_row.take(rows.ravel(), axis=0).reshape(*rows.shape, self.window)
        kept = rows[:, 0] // self.rows_each
        self.rows_each = rows.shape[1]
        if len(kept) == self.sentences and (kept == np.arange(self.sentences)).all():
            return False
        self.sentences = len(kept)
        if self.source_mask is not EVERYTHING:
            self.source_mask = self.source_mask[kept]
        self.memory = self.memory.select(kept)
        self.cache = self.cache.select(kept, self.entries)
        return True

    def _everything_used(self) -> Float32Array:
        """A mask for all rows, (1, 1, 1, window), that forbids what is not in use."""
        shape = (1, 1, 1, self.window)
        if self._mask.shape != shape:
            self._mask = np.full(shape, FORBIDDEN)
        self._mask[..., : self.entries] = 0
        return self._mask

    def _by_slot(self, mask_rows: BoolArray) -> Float32Array:
        """What each slot of the block must not see, (Z, window)."""
        slots: list[int] = []
        for block_size, rows in self._blocks:
            first = slots[-1] + 1 if slots else 0
            slots += np.repeat(np.arange(first, first + block_size), rows).tolist()
        mask = np.full((len(mask_rows), self.window), FORBIDDEN)
        mask[:, : self.entries] = additive(mask_rows[:, slots])
        return mask

    def _grow(self, window: int) -> None:
        if self._paths is not None:
            sentences, rows, old = self._paths.shape
            unused = np.full((sentences, rows, window - old), FORBIDDEN)
            self._paths = np.concatenate([self._paths, unused], axis=2)
        self.cache.grow(window)
