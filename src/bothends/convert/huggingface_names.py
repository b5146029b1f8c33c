"""Where Hugging Face's encoder-decoder models keep what our network has.

Marian, BART, mBART, M2M-100 and Pegasus are built alike and share these names. Each of our tensors
is one of theirs, or several on top of each other: queries, keys and values. The same list serves
both ways, reading and writing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bothends.model.spec import (
    DecoderLayer,
    EncoderLayer,
    Network,
    Norm,
    Part,
    Projection,
    Tensor,
)

SHARED = "model.shared.weight"
SOURCE_EMBEDDING = "model.encoder.embed_tokens.weight"
TARGET_EMBEDDING = "model.decoder.embed_tokens.weight"
OUTPUT = "lm_head.weight"
OUTPUT_BIAS = "final_logits_bias"
SOURCE_POSITIONS = "model.encoder.embed_positions.weight"
TARGET_POSITIONS = "model.decoder.embed_positions.weight"

#: What they call a part of a projection that we keep in one piece.
_PARTS: dict[Part, str] = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
    "inner": "fc1",
    "outer": "fc2",
}


class Place(NamedTuple):
    """Our tensor, and theirs that lie in it from the top down."""

    tensor: Tensor
    names: list[str]


def stack_places(network: Network) -> Iterator[Place]:
    """Every tensor of encoder and decoder."""
    for stack in network.stacks:
        prefix = f"model.{stack.name}"
        if stack.embedding_norm:
            yield from _norm(stack.embedding_norm, f"{prefix}.layernorm_embedding")
        for number, layer in enumerate(stack.layers):
            yield from _layer(layer, f"{prefix}.layers.{number}")
        if stack.norm:
            yield from _norm(stack.norm, f"{prefix}.layer_norm")


def _layer(layer: EncoderLayer | DecoderLayer, prefix: str) -> Iterator[Place]:
    yield from _projection(layer.self_attention.query_key_value, f"{prefix}.self_attn")
    yield from _projection(layer.self_attention.output, f"{prefix}.self_attn")
    yield from _norm(layer.self_attention_norm, f"{prefix}.self_attn_layer_norm")
    if isinstance(layer, DecoderLayer):
        yield from _projection(layer.cross_attention.query, f"{prefix}.encoder_attn")
        yield from _projection(layer.cross_attention.key_value, f"{prefix}.encoder_attn")
        yield from _projection(layer.cross_attention.output, f"{prefix}.encoder_attn")
        yield from _norm(layer.cross_attention_norm, f"{prefix}.encoder_attn_layer_norm")
    yield from _projection(layer.feed_forward.inner, prefix)
    yield from _projection(layer.feed_forward.outer, prefix)
    yield from _norm(layer.feed_forward_norm, f"{prefix}.final_layer_norm")


def _projection(projection: Projection, prefix: str) -> Iterator[Place]:
    for kind, tensor in (("weight", projection.weight), ("bias", projection.bias)):
        yield Place(tensor, [f"{prefix}.{_PARTS[part]}.{kind}" for part in projection.parts])


def _norm(norm: Norm, prefix: str) -> Iterator[Place]:
    yield Place(norm.gain, [f"{prefix}.weight"])
    yield Place(norm.shift, [f"{prefix}.bias"])
