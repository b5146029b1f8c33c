"""Which arrays of the two exported files the compiled network reads, in the order it reads them.

The order is that of the description, `bothends.model.spec`: the compiled code asks for the next
array and its shape, and spells no name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from bothends.engines.onnx.initialisers import MEMORY, bias_of, scales_of
from bothends.model.spec import CrossAttention, Network, Norm, Projection


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
            *_walk(network.encoder.layers),
            *_walk(network.encoder.norm),
            *_product(MEMORY),
        ],
        decoder=[
            *_table(network.target_embedding.weight.name),
            *([directions.weight.name] if directions else []),
            *_walk(network.decoder.layers),
            *_walk(network.decoder.norm),
            *(_product(output) if network.output_bias else _table(output)),
        ],
    )


def _walk(part: Any) -> Iterator[str]:
    """The arrays of layers, or of a part of one."""
    if isinstance(part, Projection):
        yield from _product(part.name)
    elif isinstance(part, Norm):
        yield part.gain.name
        yield part.shift.name
    elif isinstance(part, CrossAttention):
        # Keys and values of the source are in the encoder's file: one product for all layers.
        yield from _walk(part.query)
        yield from _walk(part.output)
    elif isinstance(part, tuple):
        for each in part:
            yield from _walk(each)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _walk(getattr(part, field.name))


def _table(name: str) -> tuple[str, ...]:
    return name, scales_of(name)


def _product(name: str) -> tuple[str, ...]:
    return name, scales_of(name), bias_of(name)
