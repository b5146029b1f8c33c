"""Where CTranslate2 keeps what our network has: one list for reading and for writing.

Its projections are fused as ours are, so each of our tensors is one of its variables.
"""

from __future__ import annotations

from collections.abc import Iterator

from bothends.model.spec import DecoderLayer, EncoderLayer, Network, Norm, Projection, Tensor

SOURCE_EMBEDDING = "encoder/embeddings_0/weight"
OLD_SOURCE_EMBEDDING = "encoder/embeddings/weight"
TARGET_EMBEDDING = "decoder/embeddings/weight"
OUTPUT = "decoder/projection/weight"
OUTPUT_BIAS = "decoder/projection/bias"
SOURCE_POSITIONS = "encoder/position_encodings/encodings"
TARGET_POSITIONS = "decoder/position_encodings/encodings"


def stack_places(network: Network) -> Iterator[tuple[Tensor, str]]:
    """Every tensor of encoder and decoder, and its variable."""
    for stack in network.stacks:
        if stack.embedding_norm:
            yield from _norm(stack.embedding_norm, f"{stack.name}/layernorm_embedding")
        for number, layer in enumerate(stack.layers):
            yield from _layer(layer, f"{stack.name}/layer_{number}")
        if stack.norm:
            yield from _norm(stack.norm, f"{stack.name}/layer_norm")


def _layer(layer: EncoderLayer | DecoderLayer, prefix: str) -> Iterator[tuple[Tensor, str]]:
    attention = f"{prefix}/self_attention"
    yield from _projection(layer.self_attention.query_key_value, f"{attention}/linear_0")
    yield from _projection(layer.self_attention.output, f"{attention}/linear_1")
    yield from _norm(layer.self_attention_norm, f"{attention}/layer_norm")
    if isinstance(layer, DecoderLayer):
        attention = f"{prefix}/attention"
        yield from _projection(layer.cross_attention.query, f"{attention}/linear_0")
        yield from _projection(layer.cross_attention.key_value, f"{attention}/linear_1")
        yield from _projection(layer.cross_attention.output, f"{attention}/linear_2")
        yield from _norm(layer.cross_attention_norm, f"{attention}/layer_norm")
    yield from _projection(layer.feed_forward.inner, f"{prefix}/ffn/linear_0")
    yield from _projection(layer.feed_forward.outer, f"{prefix}/ffn/linear_1")
    yield from _norm(layer.feed_forward_norm, f"{prefix}/ffn/layer_norm")


def _projection(projection: Projection, prefix: str) -> Iterator[tuple[Tensor, str]]:
    yield projection.weight, f"{prefix}/weight"
    yield projection.bias, f"{prefix}/bias"


def _norm(norm: Norm, prefix: str) -> Iterator[tuple[Tensor, str]]:
    yield norm.gain, f"{prefix}/gamma"
    yield norm.shift, f"{prefix}/beta"
