"""What a search over the exported graphs remembers, and where its arrays are.

The keys and values of a slot are written once, behind those of the slots before it, and stay where
they are. With K rows to a sentence each slot leaves K *entries*; a row that a beam search selects
takes over its parent's *path*, the entries that are its own past, and not the entries themselves.
When a sentence leaves the batch, and only then, the rest is moved together.

The decoder is shown a *window* of entries that is a little longer than what is used: so its inputs
and outputs stay bound to the same memory for many steps, and Python has little to do in a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bothends.order import BoolArray, IntArray

Float32Array = NDArray[np.float32]

#: Added to the score of what must not be seen: its exponential is 0, and 0 times it is no NaN.
FORBIDDEN = np.float32(-1e9)
#: A mask that forbids nothing.
EVERYTHING = np.zeros((1, 1, 1, 1), np.float32)
#: Blocks' worth of slots by which the window grows.
WINDOW = 16


def additive(allowed: BoolArray) -> Float32Array:
    """A mask as graphs want it: 0 where something may be seen."""
    return np.where(allowed, np.float32(0), FORBIDDEN)


class Buffers:
    """Arrays that a session reads and writes in place, bound once and bound anew if they change."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._binding = session.io_binding()
        self._arrays: dict[str, NDArray[Any]] = {}

    def bind(self, name: str, array: NDArray[Any]) -> None:
        """Let an input be this very array, which must be contiguous."""
        if self._arrays.get(name) is not array:
            self._binding.bind_cpu_input(name, array)
            self._arrays[name] = array  # alive as long as it is bound

    def put(self, name: str, values: NDArray[Any]) -> None:
        """Let an input have these values."""
        array = self._arrays.get(name)
        if array is None or array.shape != values.shape:
            self.bind(name, values.copy())
        else:
            np.copyto(array, values)

    def output(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """The array that an output is written to, time and again."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape:
            array = np.empty(shape, dtype)
            self.bind_output(name, array)
        return array

    def bind_output(self, name: str, array: NDArray[Any]) -> None:
        """Let an output be written to this very array, which must be contiguous."""
        address = array.ctypes.data
        self._binding.bind_output(name, "cpu", 0, array.dtype, array.shape, address)
        self._arrays[name] = array

    def run(self) -> None:
        self._session.run_with_iobinding(self._binding)


class OnnxState:
    """The state of one search over S sentences with K rows each. Only the engine changes it."""

    def __init__(self, memory: Float32Array, source_mask: Float32Array, buffers: Buffers) -> None:
        #: keys and values of the source for each decoder layer, (2 * layers, S, H, N, d)
        self.memory = memory
        #: what is padding in the source, (S, 1, 1, N), or `EVERYTHING`
        self.source_mask = source_mask
        self.buffers = buffers
        self.rows_each = 1
        #: entries of each sentence that are in use
        self.entries = 0
        #: keys and values of each layer's self-attention, (window or more, S, H, d)
        self.cache: list[Float32Array] = []
        #: the slot of each entry in the window
        self._slots = np.empty(0, np.int64)
        #: what each row must not see of the window, (S, K, window); None: only what is not used
        self._paths: Float32Array | None = None

    @property
    def sentences(self) -> int:
        return int(self.memory.shape[1])

    @property
    def window(self) -> int:
        return len(self._slots)

    def extend(self, block_size: int) -> bool:
        """Take in the entries of one block, (Z, K) of each sentence. True if the window grew."""
        rows, first = self.rows_each, self.entries
        self.entries += block_size * rows
        grew = self.entries > self.window
        if grew:
            self._grow(-(-self.entries // (WINDOW * rows)) * WINDOW * rows)
        new = slice(first, self.entries)
        first_slot = self._slots[first - 1] + 1 if first else 0
        self._slots[new] = np.repeat(np.arange(first_slot, first_slot + block_size), rows)
        if rows > 1 and self._paths is None:
            self._paths = np.full((self.sentences, rows, self.window), FORBIDDEN)
            self._paths[:, :, :first] = 0
        if self._paths is not None:
            # A row sees its own entries of the block, which are (Z, K).
            own = np.tile(additive(np.eye(rows, dtype=np.bool_)), block_size)
            self._paths[:, :, new] = own
        return grew

    def mask(self, mask_rows: BoolArray) -> Float32Array:
        """What rows must not see, (S or 1, 1, Z * K or 1, window), if slots see `mask_rows`."""
        every_slot = mask_rows.all()
        if self._paths is None and every_slot:
            mask = np.full((1, 1, 1, self.window), FORBIDDEN)
            mask[..., : self.entries] = 0
            return mask
        if every_slot:
            by_slot = np.zeros((len(mask_rows), 1), np.float32)
        else:
            by_slot = np.full((len(mask_rows), self.window), FORBIDDEN)
            by_slot[:, : self.entries] = additive(mask_rows[:, self._slots[: self.entries]])
        if self._paths is None:
            return by_slot[None, None]
        # (S, 1, K, window) + (Z, 1, window) -> (S, Z, K, window); twice forbidden is forbidden
        both = self._paths[:, None] + by_slot[:, None]
        return both.reshape(self.sentences, 1, -1, self.window)

    def select(self, rows: IntArray) -> bool:
        """Go on with `rows` (S', K') of the present ones. True if sentences left or moved."""
        sentences = rows[:, 0] // self.rows_each
        if self._paths is not None:
            self._paths = self._paths[sentences[:, None], rows % self.rows_each]
        self.rows_each = rows.shape[1]
        if len(sentences) == self.sentences and (sentences == np.arange(self.sentences)).all():
            return False
        if self.source_mask is not EVERYTHING:
            self.source_mask = self.source_mask[sentences]
        self.memory = self.memory[:, sentences]
        self.cache = [line[: self.window].take(sentences, axis=1) for line in self.cache]
        return True

    def _grow(self, window: int) -> None:
        self._slots = np.concatenate([self._slots, np.zeros(window - self.window, np.int64)])
        if self._paths is not None:
            sentences, rows, old = self._paths.shape
            unused = np.full((sentences, rows, window - old), FORBIDDEN)
            self._paths = np.concatenate([self._paths, unused], axis=2)
        capacity = len(self.cache[0]) if self.cache else 0
        if window <= capacity:
            return
        # Zeros, because what is masked is still multiplied. The memory is not touched before use.
        lines, sentences, heads, _, head_width = self.memory.shape
        shape = (max(window, 2 * capacity), sentences, heads, head_width)
        grown = [np.zeros(shape, np.float32) for _ in range(lines)]
        for old_line, line in zip(self.cache, grown, strict=False):
            line[:capacity] = old_line
        self.cache = grown
