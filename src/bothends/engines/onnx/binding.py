"""Memory that a session reads and writes in place, so that a step copies almost nothing.

Handing arrays to a session by name costs Python about as much as a small model's products. So they
are bound once, and a step only writes new values into them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bothends.order import IntArray


def is_out_of_memory(error: Exception) -> bool:
    """Whether a session ran out of memory; only the message of its error tells."""
    return any(words in str(error) for words in ("Failed to allocate memory", "std::bad_alloc"))


class Binding:
    """The inputs and outputs of one session for one user of it."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._binding = session.io_binding()
        #: kept alive as long as they are bound
        self._arrays: dict[str, NDArray[Any]] = {}

    def input(self, name: str, array: NDArray[Any]) -> None:
        """Let an input be this very array, which must be contiguous."""
        if self._arrays.get(name) is not array:
            self._binding.bind_cpu_input(name, array)
            self._arrays[name] = array

    def output(self, name: str, array: NDArray[Any]) -> None:
        """Let an output be written to this very array, which must be contiguous."""
        address = array.ctypes.data
        self._binding.bind_output(name, "cpu", 0, array.dtype, array.shape, address)
        self._arrays[f"output {name}"] = array

    def run(self) -> None:
        try:
            self._session.run_with_iobinding(self._binding)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise MemoryError(str(error)) from None
            raise


class StepArrays:
    """The small inputs and outputs of decoder runs of one shape, bound.

    Of Z slots, K rows of each of S sentences, the best `k` words and the logprobs of `c` given
    words are asked for. Rows are ordered (Z, K, S).
    """

    def __init__(
        self,
        binding: Binding,
        block: tuple[int, int, int],
        words: tuple[int, int],
        head_width: int,
    ) -> None:
        block_size, rows, sentences = block
        count = block_size * rows * sentences
        best, given = words
        self.shape = (block, words)
        self.tokens: IntArray = np.empty(block, np.int64)
        self.positions: IntArray = np.empty(block_size, np.int64)
        self.directions: IntArray = np.empty(block_size, np.int64)
        self.entries: IntArray = np.arange(block_size * rows)
        self.new_entries: IntArray = np.empty_like(self.entries)
        self.targets: IntArray = np.empty((count, given), np.int64)
        self.logprobs = np.empty((count, best), np.float32)
        self.ids: IntArray = np.empty((count, best), np.int64)
        self.target_logprobs = np.empty((count, given), np.float32)
        binding.input("tokens", self.tokens.reshape(block_size, -1))
        binding.input("positions", self.positions[:, None])
        binding.input("new_entries", self.new_entries[:, None])
        binding.input("query_shape", np.array([block_size * rows, sentences, -1, head_width]))
        binding.input("k", np.array([best]))
        binding.input("targets", self.targets)
        for name in ("logprobs", "ids", "target_logprobs"):
            binding.output(name, getattr(self, name))
