"""The runtime's engine: the exported graphs behind the engine protocol, without PyTorch.

Sessions are shared and may be used by many threads at once; everything that changes is in the
state, which belongs to one search. How the graphs lay out rows, and why the self-attention state
never moves, is explained in `network`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bothends.engines.onnx.binding import Binding, StepArrays, is_out_of_memory
from bothends.engines.onnx.memory import ArrayPool, Float32Array, SourceMemory
from bothends.engines.onnx.metadata import check_metadata, check_same_export
from bothends.engines.onnx.state import EVERYTHING, OnnxState, additive
from bothends.engines.protocol import FloatArray, TopK
from bothends.errors import BothendsError
from bothends.model.config import ModelConfig
from bothends.model.directory import Description, read_description
from bothends.model.graph_files import GraphFile, readable_graphs
from bothends.model.sinusoid import position_encodings
from bothends.model.spec import Network
from bothends.order import Block, GenerationOrder, IntArray, Scalar

#: Slots whose logits are held at once in `force`, or one sentence, if that is longer: 128 MB for
#: 32,000 words.
FORCED_SLOTS = 1024


class OnnxEngine:
    """Steps an exported model on the CPU. Implements `Engine[OnnxState]`."""

    def __init__(
        self, config: ModelConfig, order: GenerationOrder, encoder: Any, decoder: Any
    ) -> None:
        self.config = config
        self.order = order
        self._network = Network.of(config, order)
        self._encoder = encoder
        self._decoder = decoder
        self._positions = EncodingTable(config)
        self._memories, self._caches = ArrayPool(), ArrayPool()
        #: what the lines of a cache and of a memory are called in the graph
        self._lines = [
            f"{kind}_{layer}"
            for layer in range(config.decoder_layers)
            for kind in ("keys", "values")
        ]

    @classmethod
    def load(
        cls, directory: Path, threads: int = 1, description: Description | None = None
    ) -> OnnxEngine:
        """The exported model in `directory`; `threads` work together on one product."""
        description = description or read_description(directory)
        with readable_graphs(Path(directory)) as graphs:
            # The decoder first: the encoder points into its file.
            decoder, encoder = (
                _load_session(graph, description, threads) for graph in reversed(graphs)
            )
        check_same_export(Path(directory), _metadata(encoder), _metadata(decoder))
        return cls(description.model, description.order, encoder, decoder)

    @property
    def precision(self) -> str:
        """`float32` or `int8`, as exported."""
        return _metadata(self._decoder)["precision"]

    def encode(self, source: IntArray) -> OnnxState:
        sentences, length = source.shape
        real = source != self.config.special.pad
        mask = EVERYTHING if real.all() else additive(real)[:, None, None, :]
        heads, width = self.config.heads, self.config.head_width
        memory = SourceMemory(self._memories, (len(self._lines), sentences, heads, length, width))
        binding = Binding(self._encoder)
        binding.input("source", np.ascontiguousarray(source.T))
        if learned := self._network.source_positions:
            learned.check(length)
        else:
            table, origin = self._positions.reach(length)
            binding.input("encodings", table[origin : origin + length, None])
        binding.input("source_mask", mask)
        binding.input("query_shape", np.array([length, sentences, -1, width]))
        binding.output("memory", memory.array)
        binding.run()
        return self._start(memory, mask)

    def step(self, state: OnnxState, tokens: IntArray, block: Block, k: int) -> TopK:
        arrays = self._run(state, tokens, block, (min(k, self.config.target_size), 0))
        return TopK(_by_row(state, arrays.logprobs), _by_row(state, arrays.ids))

    def step_and_force(
        self, state: OnnxState, tokens: IntArray, block: Block, k: int, targets: IntArray
    ) -> tuple[TopK, FloatArray]:
        words = min(k, self.config.target_size)
        arrays = self._run(state, tokens, block, (words, 1), targets)
        best = TopK(_by_row(state, arrays.logprobs), _by_row(state, arrays.ids))
        return best, _by_row(state, arrays.target_logprobs)[:, :, 0]

    def select(self, state: OnnxState, rows: IntArray) -> OnnxState:
        if state.select(rows):
            self._bind_source(state)
            if state.entries:
                self._bind_cache(state)
        return state

    def force(
        self, state: OnnxState, tokens: IntArray, block: Block, targets: IntArray
    ) -> FloatArray:
        sentences, length = targets.shape
        at_once = max(1, FORCED_SLOTS // length)
        parts = []
        for first in range(0, sentences, at_once):
            some = slice(first, first + at_once)
            arrays = self._run(self._part(state, some), tokens[some], block, (1, 1), targets[some])
            parts.append(arrays.target_logprobs.reshape(length, -1).T)  # (T * S, 1) -> (S, T)
        return np.concatenate(parts)

    def _run(
        self,
        state: OnnxState,
        tokens: IntArray,
        block: Block,
        words: tuple[int, int],
        targets: IntArray | None = None,
    ) -> StepArrays:
        """Run the decoder on a block: the best words, and the logprobs of targets, (words,) many.

        What is returned will be written to again in the next run.
        """
        shape = (tokens.shape[1], state.rows_each, state.sentences)  # (Z, K, S)
        first, binding, arrays = state.entries, state.binding, state.arrays
        if state.extend(shape[0]):
            self._bind_cache(state)
        if arrays is None or arrays.shape != (shape, words):
            arrays = StepArrays(binding, shape, words, self.config.head_width)
            state.arrays = arrays
            if self.order.uses_direction_embedding:
                binding.input("directions", arrays.directions[:, None])
        # (S * K, Z) -> (S, K, Z) -> (Z, K, S)
        arrays.tokens[...] = tokens.reshape(shape[::-1]).T
        slots = block.mask.shape[1]
        if learned := self._network.target_positions:
            learned.check(slots)
            origin = learned.origin
        else:
            table, origin = self._positions.reach(slots)
            binding.input("position_encodings", table)
        np.add(block.positions, origin, out=arrays.positions)
        if self.order.uses_direction_embedding:
            arrays.directions[...] = block.directions
        np.add(arrays.entries, first, out=arrays.new_entries)
        if targets is not None:
            arrays.targets[...] = targets.reshape(shape[::-1]).T.reshape(-1, 1)
        binding.input("mask", state.mask(block.mask))
        binding.run()
        return arrays

    def _start(self, memory: SourceMemory, source_mask: Float32Array) -> OnnxState:
        state = OnnxState(memory, source_mask, Binding(self._decoder), self._caches)
        self._bind_source(state)
        return state

    def _part(self, state: OnnxState, some: slice) -> OnnxState:
        """A fresh state for some of the sentences of a fresh state."""
        mask = state.source_mask
        return self._start(
            state.memory.select(np.arange(state.sentences)[some]),
            mask if mask is EVERYTHING else mask[some],
        )

    def _bind_source(self, state: OnnxState) -> None:
        state.binding.input("source_mask", state.source_mask)
        for line, name in zip(state.memory.array, self._lines, strict=True):
            state.binding.input(f"memory_{name}", line)

    def _bind_cache(self, state: OnnxState) -> None:
        for number, name in enumerate(self._lines):
            line = state.cache.line(number)
            state.binding.input(name, line)
            state.binding.output(f"new_{name}", line)


def _by_row(state: OnnxState, best: NDArray[Scalar]) -> NDArray[Scalar]:
    """What a run says of each slot, row by row and in memory of its own: `(R, Z, k)`."""
    rows = state.sentences * state.rows_each
    if rows == 1:  # for one row, Python's time is a good part of a small model's
        return best[None].copy()
    k = best.shape[1]
    split = best.reshape(-1, state.rows_each, state.sentences, k)
    # (Z * K * S, k) -> (Z, K, S, k) -> (S, K, Z, k) -> (S * K, Z, k)
    return split.transpose(2, 1, 0, 3).copy().reshape(rows, -1, k)


class EncodingTable:
    """Sinusoids of all positions from `-limit` to `limit`; the table grows as it is needed."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self._table = self._make(256)

    def reach(self, limit: int) -> tuple[Float32Array, int]:
        """A table (positions, D) that reaches at least `limit` each way, and where position 0 is.

        Threads may ask at once: each gets a whole table, and one of them stays.
        """
        table = self._table
        if limit > len(table) // 2:
            table = self._table = self._make(2 * limit)
        return table, len(table) // 2

    def _make(self, limit: int) -> Float32Array:
        positions = np.arange(-limit, limit + 1)
        return position_encodings(positions, self.config).astype(np.float32)


def _load_session(graph: GraphFile, description: Description, threads: int) -> Any:
    import onnxruntime

    path = graph.stored
    if not _is_unicode(graph.path):
        raise BothendsError(
            f"{path}: ONNX Runtime cannot open a path that is not UTF-8; rename it, or make a link"
        )
    onnxruntime.disable_telemetry_events()  # what people translate, and when, is their own affair
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what is an error comes as an exception as well
    try:
        # Without the fallback: it prints to stdout, and tries the same once more.
        session = onnxruntime.InferenceSession(
            str(graph.path), options, providers=["CPUExecutionProvider"], enable_fallback=0
        )
        metadata = _metadata(session)  # names and texts in it may be no UTF-8
    except Exception as error:  # its exceptions have no common base of their own
        if is_out_of_memory(error):
            raise MemoryError(f"{path} cannot be loaded") from None
        raise BothendsError(f"{path}: damaged, not an exported graph ({error})") from None
    check_metadata(path, metadata, description)
    return session


def _is_unicode(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:  # bytes of a name that are no UTF-8 are halves of surrogates
        return False
    return True


def _metadata(session: Any) -> dict[str, str]:
    metadata: dict[str, str] = session.get_modelmeta().custom_metadata_map
    return metadata
