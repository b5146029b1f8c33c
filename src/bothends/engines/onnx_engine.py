"""The runtime's engine: the exported graphs behind the engine protocol, without PyTorch.

Sessions are shared and may be used by many threads at once; everything that changes is in the
state, which belongs to one search. How the graphs lay out rows, and why the self-attention state
never moves, is told in `onnx_network`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bothends.engines.onnx_state import EVERYTHING, Float32Array, OnnxState, additive
from bothends.engines.protocol import FloatArray, TopK
from bothends.errors import BothendsError
from bothends.model.config import ModelConfig
from bothends.model.directory import CONFIG, DECODER, ENCODER, Description, read_description
from bothends.model.sinusoid import sinusoid
from bothends.order import BoolArray, GenerationOrder, IntArray

#: Version of the graphs' inputs and outputs; graphs of another version are refused.
GRAPH_VERSION = 1
#: Slots whose logits are held at once in `force`: 128 MB for 32,000 words.
FORCED_SLOTS = 1024
NO_TARGETS = np.empty((0, 0), np.int64)


class OnnxEngine:
    """Steps an exported model on the CPU. Implements `Engine[OnnxState]`."""

    def __init__(
        self, config: ModelConfig, order: GenerationOrder, encoder: Any, decoder: Any
    ) -> None:
        self.config = config
        self.order = order
        self._encoder = encoder
        self._decoder = decoder
        self._positions = PositionTable(config)
        self._names = [
            (f"{kind}_{layer}", f"memory_{kind}_{layer}", f"new_{kind}_{layer}")
            for layer in range(config.decoder_layers)
            for kind in ("keys", "values")
        ]

    @classmethod
    def load(cls, directory: Path, threads: int = 1) -> OnnxEngine:
        """The exported model in `directory`; `threads` work together on one product."""
        description = read_description(directory)
        encoder, decoder = (
            _load_session(Path(directory) / file, description, threads)
            for file in (ENCODER, DECODER)
        )
        if _metadata(encoder)["weights"] != _metadata(decoder)["weights"]:
            raise BothendsError(
                f"{directory}: {ENCODER} and {DECODER} were exported from different weights; "
                f"`bothends export {directory}` writes them anew"
            )
        return cls(description.model, description.order, encoder, decoder)

    @property
    def precision(self) -> str:
        """`float32` or `int8`, as exported."""
        return _metadata(self._decoder)["precision"]

    def encode(self, source: IntArray) -> OnnxState:
        sentences, length = source.shape
        real = source != self.config.special.pad
        mask = EVERYTHING if real.all() else additive(real)[:, None, None, :]
        (memory,) = self._encoder.run(
            ["memory"],
            {
                "source": np.ascontiguousarray(source.T),
                "encodings": self._positions(np.arange(length)),
                "source_mask": mask,
                "query_shape": self._query_shape(length, sentences),
            },
        )
        return self._bind_source(OnnxState(memory, mask, self._decoder.io_binding()))

    def step(
        self,
        state: OnnxState,
        tokens: IntArray,
        positions: IntArray,
        directions: IntArray,
        mask_rows: BoolArray,
        k: int,
    ) -> TopK:
        k = min(k, self.config.target_size)
        logprobs, ids, _ = self._run(state, tokens, positions, directions, mask_rows, k, NO_TARGETS)
        return TopK(self._by_row(logprobs, state, tokens), self._by_row(ids, state, tokens))

    def select(self, state: OnnxState, rows: IntArray) -> OnnxState:
        if state.select(rows):
            self._bind_source(state)
        return state

    def force(
        self,
        state: OnnxState,
        tokens: IntArray,
        positions: IntArray,
        directions: IntArray,
        mask: BoolArray,
        targets: IntArray,
    ) -> FloatArray:
        sentences, length = targets.shape
        at_once = max(1, FORCED_SLOTS // length)
        parts = []
        for first in range(0, sentences, at_once):
            some = slice(first, first + at_once)
            logprobs = self._run(
                self._part(state, some), tokens[some], positions, directions, mask, 1, targets[some]
            )[2]
            parts.append(logprobs.reshape(length, -1).T)  # (T * S, 1) -> (S, T)
        return np.concatenate(parts)

    def _part(self, state: OnnxState, some: slice) -> OnnxState:
        """A fresh state for some of the sentences of a fresh state."""
        mask = state.source_mask
        return self._bind_source(
            OnnxState(
                np.ascontiguousarray(state.memory[:, some]),
                mask if mask is EVERYTHING else mask[some],
                self._decoder.io_binding(),
            )
        )

    def _run(
        self,
        state: OnnxState,
        tokens: IntArray,
        positions: IntArray,
        directions: IntArray,
        mask_rows: BoolArray,
        k: int,
        targets: IntArray,
    ) -> tuple[Float32Array, IntArray, Float32Array]:
        """One run of the decoder: best logprobs and ids (M, k), logprobs of targets (M, c)."""
        block_size, rows, sentences = tokens.shape[1], state.rows_each, state.sentences
        count = block_size * rows * sentences
        first = state.entries
        state.extend(block_size)
        binding = state.binding
        bind = binding.bind_cpu_input
        bind("tokens", self._by_slot(tokens, state).reshape(block_size, -1))
        bind("encodings", self._positions(positions))
        if self.order.uses_direction_embedding:
            bind("directions", np.ascontiguousarray(directions[:, None]))
        bind("mask", state.mask(mask_rows))
        bind("query_shape", self._query_shape(block_size * rows, sentences))
        bind("k", np.array([k]))
        chosen = (
            self._by_slot(targets, state).reshape(count, -1)
            if targets.size
            else np.empty((count, 0), np.int64)
        )
        bind("targets", chosen)
        for line, (past, _, new) in enumerate(self._names):
            bind(past, state.past(line))
            _bind_output(binding, new, state.past(line, first).reshape(count, -1))
        best = np.empty((count, k), np.float32)
        ids = np.empty((count, k), np.int64)
        logprobs = np.empty(chosen.shape, np.float32)
        _bind_output(binding, "logprobs", best)
        _bind_output(binding, "ids", ids)
        _bind_output(binding, "target_logprobs", logprobs)
        self._decoder.run_with_iobinding(binding)
        return best, ids, logprobs

    def _by_slot(self, tokens: IntArray, state: OnnxState) -> IntArray:
        """(S * K, Z) -> (Z, K, S)"""
        split = tokens.reshape(state.sentences, state.rows_each, -1)
        return np.ascontiguousarray(split.transpose(2, 1, 0))

    def _by_row(self, best: Any, state: OnnxState, tokens: IntArray) -> Any:
        """(Z * K * S, k) -> (S * K, Z, k)"""
        rows, block_size = tokens.shape
        split = best.reshape(block_size, state.rows_each, state.sentences, -1)
        return split.transpose(2, 1, 0, 3).reshape(rows, block_size, -1)

    def _query_shape(self, queries: int, sentences: int) -> IntArray:
        return np.array([queries, sentences, self.config.heads, self.config.head_width])

    def _bind_source(self, state: OnnxState) -> OnnxState:
        state.binding.bind_cpu_input("source_mask", state.source_mask)
        for line, (_, memory, _) in zip(state.memory, self._names, strict=True):
            state.binding.bind_cpu_input(memory, line)
        return state


class PositionTable:
    """Sinusoids of all positions from `-limit` to `limit`; the table grows when one is outside."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.table = np.empty((1, config.width), np.float32)

    def __call__(self, positions: IntArray) -> Float32Array:
        """Encodings (L, 1, D) of positions (L,)."""
        farthest = int(np.abs(positions).max())
        table = self.table  # one read: another thread may replace it meanwhile
        limit = len(table) // 2
        if farthest > limit or limit == 0:
            limit = max(256, 2 * farthest)
            exact = sinusoid(np.arange(-limit, limit + 1), self.config.width, self.config.sinusoid)
            table = self.table = exact.astype(np.float32)
        return table[positions + limit][:, None, :]


def _bind_output(binding: Any, name: str, array: Any) -> None:
    binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)


def _load_session(path: Path, description: Description, threads: int) -> Any:
    import onnxruntime

    if not path.is_file():
        raise BothendsError(
            f"{path.parent}: {path.name} is missing; `bothends export {path.parent}` writes it"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its exceptions have no common base of their own
        raise BothendsError(f"{path}: damaged, not an exported graph ({error})") from None
    found = _metadata(session)
    again = f"`bothends export {path.parent}` writes it anew"
    if found.get("graph_version") != str(GRAPH_VERSION):
        raise BothendsError(
            f"{path}: graph version {found.get('graph_version', 'unknown')}, but this bothends "
            f"runs {GRAPH_VERSION}; {again}"
        )
    # Dropout is not in the graph, and may have been changed since.
    model = description.model.model_dump_json(exclude={"dropout"})
    if found.get("order") != str(description.order) or found.get("model") != model:
        raise BothendsError(f"{path}: exported from another model than {CONFIG} says; {again}")
    return session


def _metadata(session: Any) -> dict[str, str]:
    metadata: dict[str, str] = session.get_modelmeta().custom_metadata_map
    return metadata
