"""The network as data: which tensors it has, their shapes, and what each is for.

    network = Network.of(config, order)
    network.decoder.layers[0].self_attention.output.weight   # a Tensor: name, shape and kind
    network.tensors()                                        # every one of them, once

The names of the tensors in a file are spelled here and nowhere else. PyTorch modules, ONNX graphs,
random weights, byte counts, peers and converters reach a tensor through this description. A new
normalisation or a new kind of position is described here, and computed once in each engine.

Shapes use PyTorch's layout: a matrix is `(outputs, inputs)`. Projections that read the same input
are stored as one matrix, and `parts` says what lies in it, from the top down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, Literal, TypeVar

from bothends.errors import BothendsError
from bothends.model.config import ModelConfig
from bothends.order import GenerationOrder

#: What a tensor does: rows that are looked up, a matrix that is multiplied by, what is added to a
#: product, and the two vectors of a norm.
Kind = Literal["table", "matrix", "bias", "gain", "shift"]
Part = Literal["query", "key", "value", "output", "inner", "outer"]


@dataclass(frozen=True)
class Tensor:
    """One array in a file of weights."""

    name: str
    shape: tuple[int, ...]
    kind: Kind

    @property
    def size(self) -> int:
        """The number of its elements."""
        size = 1
        for length in self.shape:
            size *= length
        return size


@dataclass(frozen=True)
class LookupTable:
    """Vectors that are looked up: of words, of positions, of directions."""

    weight: Tensor

    @classmethod
    def of(cls, name: str, rows: int, width: int) -> LookupTable:
        return cls(Tensor(f"{name}.weight", (rows, width), "table"))


@dataclass(frozen=True)
class Positions(LookupTable):
    """Learned vectors of positions `-origin ... `: row `origin` is position 0."""

    origin: int

    @classmethod
    def of_order(cls, name: str, config: ModelConfig, order: GenerationOrder) -> Positions | None:
        """Those that the slots of an order need; an order that counts from both ends has negative
        ones too, in a table of twice the height."""
        if not config.learned_positions:
            return None
        limit = config.learned_positions
        origin = limit if (order.positions(4) < 0).any() else 0
        rows = origin + limit + bool(origin)
        return cls(Tensor(f"{name}.weight", (rows, config.width), "table"), origin)

    @property
    def slots(self) -> int:
        """How many slots of a text have positions in the table."""
        rows, _ = self.weight.shape
        return 2 * self.origin or rows

    def check(self, slots: int) -> None:
        """Complain about a text that is longer."""
        if slots > self.slots:
            raise BothendsError(
                f"a text of {slots} tokens, but the model has learned {self.slots} positions; "
                "shorten it, or allow a smaller maximum length"
            )


@dataclass(frozen=True)
class Norm:
    """A layer norm: `gain * normalised + shift`."""

    gain: Tensor
    shift: Tensor
    epsilon: float

    @classmethod
    def of(cls, name: str, config: ModelConfig) -> Norm:
        return cls(
            Tensor(f"{name}.weight", (config.width,), "gain"),
            Tensor(f"{name}.bias", (config.width,), "shift"),
            config.norm_epsilon,
        )


@dataclass(frozen=True)
class Projection:
    """A linear layer, or several of the same input in one matrix: `parts`, all equally high."""

    name: str
    parts: tuple[Part, ...]
    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, name: str, parts: tuple[Part, ...], outputs: int, inputs: int) -> Projection:
        """`outputs` are those of one part."""
        height = len(parts) * outputs
        return cls(
            name,
            parts,
            Tensor(f"{name}.weight", (height, inputs), "matrix"),
            Tensor(f"{name}.bias", (height,), "bias"),
        )


@dataclass(frozen=True)
class SelfAttention:
    query_key_value: Projection
    output: Projection


@dataclass(frozen=True)
class CrossAttention:
    query: Projection
    #: reads the source: computed once per sentence, and not in every step
    key_value: Projection
    output: Projection


@dataclass(frozen=True)
class FeedForward:
    inner: Projection
    outer: Projection


@dataclass(frozen=True)
class EncoderLayer:
    self_attention: SelfAttention
    self_attention_norm: Norm
    feed_forward: FeedForward
    feed_forward_norm: Norm


@dataclass(frozen=True)
class DecoderLayer:
    self_attention: SelfAttention
    self_attention_norm: Norm
    cross_attention: CrossAttention
    cross_attention_norm: Norm
    feed_forward: FeedForward
    feed_forward_norm: Norm


Layer = TypeVar("Layer", EncoderLayer, DecoderLayer)


@dataclass(frozen=True)
class Stack(Generic[Layer]):
    """The encoder or the decoder."""

    name: Literal["encoder", "decoder"]
    #: of the sum of token embedding and position
    embedding_norm: Norm | None
    layers: tuple[Layer, ...]
    #: A pre-norm residual stream leaves the last layer unnormalised.
    norm: Norm | None

    @property
    def last_norm(self) -> Norm:
        """The norm whose result leaves the stack."""
        return self.norm or self.layers[-1].feed_forward_norm


@dataclass(frozen=True)
class Network:
    """An encoder-decoder Transformer. A tensor that is shared or tied stands in several places."""

    source_embedding: LookupTable
    target_embedding: LookupTable
    #: (words, width): the output layer's own, or the target embedding's
    output_weight: Tensor
    output_bias: Tensor | None
    encoder: Stack[EncoderLayer]
    decoder: Stack[DecoderLayer]
    #: learned ones; sinusoids need no tensor
    source_positions: Positions | None
    target_positions: Positions | None
    direction_embedding: LookupTable | None

    @classmethod
    def of(cls, config: ModelConfig, order: GenerationOrder) -> Network:
        """The network of these settings for this order."""
        width, words = config.width, config.target_size
        source = target = LookupTable.of("source_embedding", config.vocabulary_size, width)
        if not config.share_embeddings:
            target = LookupTable.of("target_embedding", words, width)
        direction = None
        if order.uses_direction_embedding:
            direction = LookupTable.of("direction_embedding", order.directions, width)
        return cls(
            source_embedding=source,
            target_embedding=target,
            output_weight=(
                target.weight
                if config.tie_output
                else Tensor("output.weight", (words, width), "matrix")
            ),
            output_bias=Tensor("output_bias", (words,), "bias") if config.output_bias else None,
            encoder=_encoder(config),
            decoder=_decoder(config),
            source_positions=Positions.of_order("source_positions", config, GenerationOrder()),
            target_positions=Positions.of_order("target_positions", config, order),
            direction_embedding=direction,
        )

    @property
    def stacks(self) -> tuple[Stack[Any], Stack[Any]]:
        return self.encoder, self.decoder

    def tensors(self) -> list[Tensor]:
        """Every tensor, each once; those that depend on the order come last."""
        return tensors(self)


def tensors(part: Any) -> list[Tensor]:
    """Every tensor of a network or of a part of it, each once, in the order of the description."""
    return list(dict.fromkeys(parts_of(part, Tensor)))


def parts_of(whole: Any, *kinds: type[Any]) -> Iterator[Any]:
    """What a network, or a part of it, has of these kinds, in the order of the description."""
    if isinstance(whole, kinds):
        yield whole
    elif isinstance(whole, tuple):
        for each in whole:
            yield from parts_of(each, *kinds)
    elif is_dataclass(whole):
        for field in fields(whole):
            yield from parts_of(getattr(whole, field.name), *kinds)


def _encoder(config: ModelConfig) -> Stack[EncoderLayer]:
    layers = []
    for number in range(config.encoder_layers):
        name = f"encoder.layers.{number}"
        layers.append(EncoderLayer(*_self_attention(config, name), *_feed_forward(config, name)))
    return Stack(
        "encoder", _embedding_norm(config, "encoder"), tuple(layers), _final_norm(config, "encoder")
    )


def _decoder(config: ModelConfig) -> Stack[DecoderLayer]:
    layers = []
    for number in range(config.decoder_layers):
        name = f"decoder.layers.{number}"
        layers.append(
            DecoderLayer(
                *_self_attention(config, name),
                *_cross_attention(config, name),
                *_feed_forward(config, name),
            )
        )
    return Stack(
        "decoder", _embedding_norm(config, "decoder"), tuple(layers), _final_norm(config, "decoder")
    )


def _self_attention(config: ModelConfig, layer: str) -> tuple[SelfAttention, Norm]:
    name, width = f"{layer}.self_attention", config.width
    return SelfAttention(
        Projection.of(f"{name}.query_key_value", ("query", "key", "value"), width, width),
        Projection.of(f"{name}.output", ("output",), width, width),
    ), Norm.of(f"{name}_norm", config)


def _cross_attention(config: ModelConfig, layer: str) -> tuple[CrossAttention, Norm]:
    name, width = f"{layer}.cross_attention", config.width
    return CrossAttention(
        Projection.of(f"{name}.query", ("query",), width, width),
        Projection.of(f"{name}.key_value", ("key", "value"), width, width),
        Projection.of(f"{name}.output", ("output",), width, width),
    ), Norm.of(f"{name}_norm", config)


def _feed_forward(config: ModelConfig, layer: str) -> tuple[FeedForward, Norm]:
    name, width, inner = f"{layer}.feed_forward", config.width, config.feed_forward
    return FeedForward(
        Projection.of(f"{name}.inner", ("inner",), inner, width),
        Projection.of(f"{name}.outer", ("outer",), width, inner),
    ), Norm.of(f"{name}_norm", config)


def _embedding_norm(config: ModelConfig, stack: str) -> Norm | None:
    return Norm.of(f"{stack}.embedding_norm", config) if config.embedding_norm else None


def _final_norm(config: ModelConfig, stack: str) -> Norm | None:
    return Norm.of(f"{stack}.norm", config) if config.norm == "pre" else None
