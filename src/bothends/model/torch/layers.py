"""The layers of an encoder-decoder Transformer.

There is one attention call, and its mask is always an explicit boolean tensor in which True means
"may attend": self-attention of the encoder, block-masked self-attention of the decoder and
attention to the source differ only in where queries, keys and values come from. Shapes use

    B  sequences: sentences S in the encoder, rows R (hypotheses) in the decoder
    L  their length       H  heads       d  head width       D = H * d  width
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from bothends.model import spec
from bothends.model.config import ModelConfig
from bothends.model.torch.attention import attention
from bothends.model.torch.dropout import CheapDropout
from bothends.model.torch.linear import Linear

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu_,  # in place: its gradient needs the result alone
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


def linear(projection: spec.Projection) -> Linear:
    """The linear layer of this description; its tensors have the names that it gives them."""
    outputs, inputs = projection.weight.shape
    return Linear(inputs, outputs)


def layer_norm(norm: spec.Norm | None) -> nn.Module:
    """A norm, or nothing where there is none."""
    if norm is None:
        return nn.Identity()
    return nn.LayerNorm(norm.gain.shape, norm.epsilon)


def embedding(table: spec.LookupTable) -> nn.Embedding:
    rows, width = table.weight.shape
    return nn.Embedding(rows, width)


@dataclass
class LayerState:
    """What one decoder layer remembers between steps."""

    #: self-attention keys and values of the slots so far, (R, H, T, d)
    keys: Tensor
    values: Tensor
    #: keys and values of the source, (S, H, N, d): one per sentence, shared by its rows
    memory_keys: Tensor
    memory_values: Tensor

    def extend(self, keys: Tensor, values: Tensor) -> None:
        """Append the slots of one block."""
        if self.keys.shape[2]:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values


class Attention(nn.Module):
    """Scaled dot-product attention with several heads, and the projection of its result."""

    def __init__(self, output: spec.Projection, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = config.dropout.attention
        self.output = linear(output)

    def split_heads(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        """`parts` projections that were computed as one, each split into its heads."""
        # (B, L, parts * D) -> (B, L, parts, H, d) -> parts of (B, H, L, d)
        split = x.view(*x.shape[:2], parts, self.heads, -1)
        return tuple(part.transpose(1, 2) for part in split.unbind(2))

    def attend(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Attend where `mask`, broadcast to (B, H, queries, keys), is True."""
        dropout = self.dropout if self.training else 0.0
        attended = attention(query, keys, values, mask, dropout)
        # (B, H, L, d) -> (B, L, D)
        projected: Tensor = self.output(attended.transpose(1, 2).flatten(2))
        return projected


class SelfAttentionModule(Attention):
    """Attention of a sequence to itself, or of a block to all slots so far."""

    def __init__(self, attention: spec.SelfAttention, config: ModelConfig) -> None:
        super().__init__(attention.output, config)
        self.query_key_value = linear(attention.query_key_value)

    def forward(self, x: Tensor, mask: Tensor, state: LayerState | None = None) -> Tensor:
        query, keys, values = self.split_heads(self.query_key_value(x), 3)
        if state is not None:
            state.extend(keys, values)
            keys, values = state.keys, state.values
        return self.attend(query, keys, values, mask)


class CrossAttentionModule(Attention):
    """Attention to the source, whose keys and values are computed once per sentence."""

    def __init__(self, attention: spec.CrossAttention, config: ModelConfig) -> None:
        super().__init__(attention.output, config)
        self.query = linear(attention.query)
        self.key_value = linear(attention.key_value)

    def memorise(self, memory: Tensor) -> tuple[Tensor, ...]:
        """Keys and values (S, H, N, d) of encoder states (S, N, D)."""
        return self.split_heads(self.key_value(memory), 2)

    def forward(self, x: Tensor, memory_mask: Tensor, state: LayerState) -> Tensor:
        # The rows of a sentence and the slots of a block are all queries to one source:
        # (S * K, Z, D) -> (S, K * Z, D), instead of K copies of its keys and values.
        sentences = state.memory_keys.shape[0]
        (query,) = self.split_heads(self.query(x).view(sentences, -1, x.shape[2]), 1)
        return self.attend(query, state.memory_keys, state.memory_values, memory_mask).view_as(x)


class FeedForwardModule(nn.Module):
    """Two linear layers around an activation."""

    def __init__(self, layers: spec.FeedForward, config: ModelConfig) -> None:
        super().__init__()
        self.inner = linear(layers.inner)
        self.outer = linear(layers.outer)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = CheapDropout(config.dropout.activation)

    def forward(self, x: Tensor) -> Tensor:
        # (..., D) -> (n, D): autograd copies what is changed in place if it is a view
        inner = self.activation(self.inner(x.reshape(-1, x.shape[-1])))
        outer: Tensor = self.outer(self.dropout(inner))
        return outer.view_as(x)


class Layer(nn.Module):
    """A stack of sublayers, each with dropout, a residual sum and a norm before or after it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.dropout = CheapDropout(config.dropout.residual)

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Pre-norm `x + sublayer(norm(x))`, post-norm `norm(x + sublayer(x))`."""
        if self.pre_norm:
            return self.dropout.add(x, sublayer(norm(x)))
        output: Tensor = norm(self.dropout.add(x, sublayer(x)))
        return output


class EncoderLayerModule(Layer):
    def __init__(self, layer: spec.EncoderLayer, config: ModelConfig) -> None:
        super().__init__(config)
        self.self_attention = SelfAttentionModule(layer.self_attention, config)
        self.self_attention_norm = layer_norm(layer.self_attention_norm)
        self.feed_forward = FeedForwardModule(layer.feed_forward, config)
        self.feed_forward_norm = layer_norm(layer.feed_forward_norm)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.residual(x, self.self_attention_norm, lambda h: self.self_attention(h, mask))
        return self.residual(x, self.feed_forward_norm, self.feed_forward)


class DecoderLayerModule(Layer):
    def __init__(self, layer: spec.DecoderLayer, config: ModelConfig) -> None:
        super().__init__(config)
        self.self_attention = SelfAttentionModule(layer.self_attention, config)
        self.self_attention_norm = layer_norm(layer.self_attention_norm)
        self.cross_attention = CrossAttentionModule(layer.cross_attention, config)
        self.cross_attention_norm = layer_norm(layer.cross_attention_norm)
        self.feed_forward = FeedForwardModule(layer.feed_forward, config)
        self.feed_forward_norm = layer_norm(layer.feed_forward_norm)

    def start(self, memory: Tensor) -> LayerState:
        """The state before the first block, for encoder states (S, N, D)."""
        keys, values = self.cross_attention.memorise(memory)
        nothing = keys[:, :, :0]  # (S, H, 0, d): one row per sentence, no slot yet
        return LayerState(nothing, nothing, keys, values)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        memory_mask: Tensor,
        state: LayerState,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """A block (R, Z, D) through the layer; `state` grows by its slots.

        `mask` is (Z, T) over all slots so far, `memory_mask` (S, 1, 1, N) over the source. With
        `wanted` (n,), indices into all R * Z slots, the result is theirs alone, (n, D).
        """
        x = self.residual(
            x, self.self_attention_norm, lambda h: self.self_attention(h, mask, state)
        )
        x = self.residual(
            x, self.cross_attention_norm, lambda h: self.cross_attention(h, memory_mask, state)
        )
        if wanted is not None:
            x = x.flatten(0, 1).index_select(0, wanted)
        return self.residual(x, self.feed_forward_norm, self.feed_forward)
