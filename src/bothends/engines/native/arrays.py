"""Which arrays of the two exported files the compiled network reads, in the order it reads them.

The order is that of the description, `bothends.model.spec`: the compiled code asks for the next
array and its shape, and spells no name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bothends.engines.onnx.initialisers import MEMORY, bias_of, scales_of
from bothends.model.spec import DecoderLayer, Network, Norm, Projection, Stack, parts_of


class ArrayNames(NamedTuple):
    """Names of arrays, for each file in the order in which it is read."""

    encoder: list[str]
    decoder: list[str]


def array_names(network: Network) -> ArrayNames:
    """The arrays of an int8 export of this network."""
    output = network.output_weight.name
    directions = network.direction_embedding
    return ArrayNames(
        encoder=[
            *_table(network.source_embedding.weight.name),
            *_stack(network.encoder),
            *_product(MEMORY),
        ],
        decoder=[
            *_table(network.target_embedding.weight.name),
            *([directions.weight.name] if directions else []),
            *_stack(network.decoder),
            *(_product(output) if network.output_bias else _table(output)),
        ],
    )


def _stack(stack: Stack[Any]) -> Iterator[str]:
    """The arrays of the encoder's or the decoder's layers, and of the norm behind them."""
    for layer in stack.layers:
        # Keys and values of the source are in the encoder's file: one product for all layers.
        elsewhere = layer.cross_attention.key_value if isinstance(layer, DecoderLayer) else None
        for part in parts_of(layer, Projection, Norm):
            if part is not elsewhere:
                yield from _arrays(part)
    if stack.norm is not None:
        yield from _arrays(stack.norm)


def _arrays(part: Projection | Norm) -> tuple[str, ...]:
    if isinstance(part, Norm):
        return part.gain.name, part.shift.name
    return _product(part.name)


def _table(name: str) -> tuple[str, ...]:
    return name, scales_of(name)


def _product(name: str) -> tuple[str, ...]:
    return name, scales_of(name), bias_of(name)
