"""The native engine behind the engine protocol, and its search that needs no Python between steps.

It reads the weights straight out of `encoder.onnx` and `decoder.onnx`, so one export serves both
runtimes, and computes what those graphs compute: the same integers, float32 elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import lcm
from pathlib import Path
from typing import Any, NamedTuple

from bothends.engines.native import extension
from bothends.engines.native.arrays import ArrayNames, array_names
from bothends.engines.onnx.metadata import check_metadata, check_same_export
from bothends.engines.protocol import Finding, FloatArray, Searched, SearchRequest, TopK
from bothends.errors import BothendsError, UsageError, nearest
from bothends.model.config import ModelConfig
from bothends.model.directory import Description, read_description
from bothends.model.graph_files import GraphFile, readable_graphs
from bothends.model.spec import Network
from bothends.order import Block, BoolArray, GenerationOrder, IntArray

#: What may force an instruction set; otherwise the processor's best is used.
INSTRUCTION_SET = "BOTHENDS_ISA"
INSTRUCTION_SETS = ("portable", "avx2", "vnni", "amx")
#: Slots whose logprobs are computed together in `force`, or one sentence, if that is longer.
FORCED_SLOTS = 512


class NativeEngine:
    """Runs an int8 model on the CPU. Implements `Engine`, `WholeSearch` and
    `RestrictedSteps`; thread-safe."""

    def __init__(self, config: ModelConfig, order: GenerationOrder, compiled: Any) -> None:
        self.config = config
        self.order = order
        self._compiled = compiled

    @classmethod
    def load(
        cls,
        directory: Path,
        instruction_set: str | None = None,
        description: Description | None = None,
        cores: int = 1,
    ) -> NativeEngine:
        """The exported int8 model in `directory`; `BOTHENDS_ISA` names an instruction set too.

        A search during which no other runs may use so many cores.
        """
        module = extension()
        if module is None:
            raise BothendsError(
                "the native engine is not built: install a C++ compiler and bothends again, "
                "or use onnx"
            )
        chosen = instruction_set or os.environ.get(INSTRUCTION_SET) or ""
        _check_instruction_set(chosen, module.instruction_sets())
        description = description or read_description(directory)
        with readable_graphs(Path(directory)) as graphs:
            _check_graphs(module, graphs, description)
            paths = [os.fsencode(graph.path) for graph in graphs]
            try:
                compiled = module.Engine(
                    *paths, _shape(description), _arrays(description), chosen, cores
                )
            except ValueError as error:
                raise BothendsError(
                    f"{directory}: {error}; `bothends export {directory}` writes it anew"
                ) from None
        return cls(description.model, description.order, compiled)

    @property
    def precision(self) -> str:
        return "int8"

    @property
    def helped(self) -> int:
        """Parts of products that other cores than a search's own have computed so far."""
        return int(self._compiled.helped)

    @property
    def kernels(self) -> str:
        """The kernels in use, such as `avx512-vnni`."""
        name: str = self._compiled.kernels
        return name

    def encode(self, source: IntArray) -> Any:
        with _refusing_bad_arrays():
            return self._compiled.encode(source, self.config.special.pad)

    def encode_among(self, source: IntArray, allowed: Sequence[IntArray]) -> Any:
        """A state whose steps know only the words that each sentence may use."""
        with _refusing_bad_arrays():
            return self._compiled.encode(source, self.config.special.pad, allowed)

    def share_words(self, words: IntArray) -> None:
        """Words that most sentences may use: packed now, and not again for each of them."""
        with _refusing_bad_arrays():
            self._compiled.share_words(words)

    def step(self, state: Any, tokens: IntArray, block: Block, k: int) -> TopK:
        with _refusing_bad_arrays():
            return TopK(*state.step(tokens, block.positions, block.directions, block.mask, k))

    def step_and_force(
        self, state: Any, tokens: IntArray, block: Block, k: int, targets: IntArray
    ) -> tuple[TopK, FloatArray]:
        with _refusing_bad_arrays():
            *best, forced = state.step_and_force(
                tokens, block.positions, block.directions, block.mask, k, targets
            )
        return TopK(*best), forced

    def select(self, state: Any, rows: IntArray) -> Any:
        with _refusing_bad_arrays():
            state.select(rows.ravel())
        return state

    def force(self, state: Any, tokens: IntArray, block: Block, targets: IntArray) -> FloatArray:
        with _refusing_bad_arrays():
            logprobs: FloatArray = state.force(
                tokens, block.positions, block.directions, block.mask, targets, FORCED_SLOTS
            )
        return logprobs

    def search(self, request: SearchRequest) -> Searched:
        """A whole beam search in one call, which holds no lock of Python."""
        order, special = request.order, request.special
        with _refusing_bad_arrays():
            pools, encoder, decoder, search, steps = self._compiled.search(
                request.source,
                order.block_size,
                *order_tables(order),
                beam=request.beam,
                min_length=request.min_length,
                limits=request.limits,
                start=special.start,
                end=special.end,
                pad=special.pad,
                allowed=request.allowed,
            )
        return Searched(
            [[Finding(*found) for found in pool] for pool in pools],
            encoder,
            decoder,
            search,
            steps,
        )


class OrderTables(NamedTuple):
    """An order as the compiled search takes it.

    It repeats, so that these serve targets of any length: a position grows by the same step from
    each period to the next, and whether a slot may attend to another depends on their places
    within a period, and on whether both are in the same one.
    """

    positions: IntArray  # (2 * period,)
    directions: IntArray  # (period,)
    same: BoolArray  # (period, period)
    earlier: BoolArray  # (period, period), for slots of an earlier period


@lru_cache(maxsize=256)
def order_tables(order: GenerationOrder) -> OrderTables:
    """The tables of an order. Shared: not to be written to."""
    period = lcm(order.block_size, order.directions)
    mask = order.mask(2 * period)
    return OrderTables(
        order.positions(2 * period),
        order.direction_ids(period),
        mask[:period, :period],
        mask[period:, :period],
    )


class _refusing_bad_arrays:  # noqa: N801  (reads as a phrase; a class, because it is quicker)
    """Turns an array that the compiled code refuses into an error of ours."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ValueError):
            raise UsageError(f"native engine: {error}") from None


def _check_instruction_set(chosen: str, available: list[str]) -> None:
    if not chosen or chosen in available:
        return
    if chosen not in INSTRUCTION_SETS:
        raise UsageError(
            f"{INSTRUCTION_SET}: unknown instruction set {chosen!r}; "
            + nearest(chosen, INSTRUCTION_SETS)
        )
    raise BothendsError(
        f"{INSTRUCTION_SET}: this processor has no {chosen}, only {', '.join(available)}"
    )


def _check_graphs(module: Any, graphs: Sequence[GraphFile], description: Description) -> None:
    """The files must be of one export, in int8, of the model that is described."""
    found: list[Mapping[str, str]] = []
    for graph in graphs:
        path = graph.stored
        try:
            found.append(module.read_metadata(os.fsencode(graph.path)))
        except ValueError as error:
            raise BothendsError(f"{path}: {error}") from None
        check_metadata(path, found[-1], description)
        if found[-1].get("precision") != "int8":
            raise BothendsError(
                f"{path}: exported in {found[-1].get('precision')}, and the native engine runs "
                "int8; use onnx, or export it again with --precision int8"
            )
    check_same_export(graphs[0].stored.parent, *found)


def unsupported(config: ModelConfig) -> str | None:
    """What a model has that the compiled network does not compute; converted models may."""
    for what, there in (
        ("learned positions", bool(config.learned_positions)),
        ("a norm on its embeddings", config.embedding_norm),
        (f"the activation {config.activation}", config.activation == "gelu-tanh"),
        (f"norms with epsilon {config.norm_epsilon:g}", config.norm_epsilon != 1e-5),
        ("layers of more than 65,536 inputs", max(config.width, config.feed_forward) > 1 << 16),
    ):
        if there:
            return what
    return None


def _shape(description: Description) -> dict[str, Any]:
    """The network's shape as the compiled code takes it."""
    config, order = description.model, description.order
    if what := unsupported(config):
        raise BothendsError(f"the native engine cannot run a model with {what}: use onnx")
    return dict(
        source_words=config.vocabulary_size,
        target_words=config.target_size,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        width=config.width,
        heads=config.heads,
        feed_forward=config.feed_forward,
        direction_embeddings=order.directions if order.uses_direction_embedding else 0,
        activation=config.activation,
        pre_norm=config.norm == "pre",
        embedding_scale=config.embedding_scale,
        output_bias=config.output_bias,
        halves=config.sinusoid != "interleaved",
        last_pair=config.width // 2 - (config.sinusoid == "tensor2tensor" and config.width > 2),
        sinusoid_precision=config.sinusoid_precision,
        position_offset=config.position_offset,
    )


def _arrays(description: Description) -> ArrayNames:
    return array_names(Network.of(description.model, description.order))
