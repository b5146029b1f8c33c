"""The encoder-decoder Transformer that every generation order shares.

An order enters as data alone: the position and direction of each slot and the mask of the decoder's
self-attention, all made by `GenerationOrder`. The decoder has one body, `step`, which reads a block
of slots after those it remembers. Decoding calls it block by block; training and scoring call it
once, with the whole target as one block after nothing. Shapes use

    S  sentences     N  source length      D  width
    R  rows: hypotheses, grouped by sentence, `R = S * K`
    Z  slots of a block                    T  slots so far, this block included
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from bothends.model import spec
from bothends.model.config import ModelConfig
from bothends.model.sinusoid import position_encodings
from bothends.model.torch.dropout import CheapDropout
from bothends.model.torch.layers import (
    DecoderLayerModule,
    EncoderLayerModule,
    LayerState,
    embedding,
    layer_norm,
)
from bothends.order import Block, GenerationOrder, IntArray


@dataclass(frozen=True)
class Memory:
    """What the encoder made of a batch of source sentences."""

    states: Tensor  # (S, N, D)
    mask: Tensor  # (S, N), True where there is a token and not padding


class BlockTensors(NamedTuple):
    """A `Block` of an order, on the device of a model."""

    positions: Tensor  # (Z,)
    directions: Tensor  # (Z,)
    mask: Tensor  # (Z, T)

    @classmethod
    def of(cls, block: Block, device: torch.device | str = "cpu") -> BlockTensors:
        # Copied: a tensor could write to the arrays, which are shared.
        arrays = (block.positions, block.directions, block.mask)
        return cls(*(torch.tensor(array, device=device) for array in arrays))


@dataclass
class DecoderState:
    """What the decoder remembers between steps. `Transformer.step` advances it, nothing else."""

    memory_mask: Tensor  # (S, 1, 1, N)
    layers: list[LayerState]

    @property
    def rows_per_sentence(self) -> int:
        return self.layers[0].keys.shape[0] // self.memory_mask.shape[0]

    def select(self, rows: IntArray) -> DecoderState:
        """The state whose rows are `rows` (S', K'), indices into the present ones.

        Each line is one sentence and names rows of one present sentence. The indices are NumPy's,
        as search has them, so that what stays in place is known without waiting for the device.
        """
        device = self.memory_mask.device
        sentences = rows[:, 0] // self.rows_per_sentence

        def take(x: Tensor, indices: IntArray) -> Tensor:
            if np.array_equal(indices, np.arange(x.shape[0])):
                return x  # always so in greedy search, and for the source until a sentence ends
            return x.index_select(0, torch.as_tensor(indices, device=device))

        return DecoderState(
            take(self.memory_mask, sentences),
            [
                LayerState(
                    take(layer.keys, rows.ravel()),
                    take(layer.values, rows.ravel()),
                    take(layer.memory_keys, sentences),
                    take(layer.memory_values, sentences),
                )
                for layer in self.layers
            ],
        )


class PositionTable:
    """Sinusoids of all positions from `-limit` to `limit`, in the precision and place of a weight.

    Computed in float64 and then cast: a float64 model has positions to the last digit. It is no
    parameter and no buffer, because it can always be made again.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.limit = 256
        self.table: Tensor | None = None

    def __call__(self, positions: Tensor, limit: int, like: Tensor) -> Tensor:
        """Encodings (L, D) of `positions` (L,), none of which is farther than `limit` from 0.

        The caller knows a limit from its shapes; asking the tensor would wait for the device.
        """
        table = self.table
        while limit > self.limit:
            self.limit, table = 2 * self.limit, None
        if table is None or table.dtype != like.dtype or table.device != like.device:
            signed = np.arange(-self.limit, self.limit + 1)
            exact = position_encodings(signed, self.config)
            self.table = table = torch.from_numpy(exact).to(like.device, like.dtype)
        return table[positions + self.limit]


class Encoder(nn.Module):
    def __init__(self, stack: spec.Stack[spec.EncoderLayer], config: ModelConfig) -> None:
        super().__init__()
        self.embedding_norm = layer_norm(stack.embedding_norm)
        self.layers = nn.ModuleList(EncoderLayerModule(layer, config) for layer in stack.layers)
        self.norm = layer_norm(stack.norm)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        normed: Tensor = self.norm(x)
        return normed


class Decoder(nn.Module):
    def __init__(self, stack: spec.Stack[spec.DecoderLayer], config: ModelConfig) -> None:
        super().__init__()
        self.embedding_norm = layer_norm(stack.embedding_norm)
        self.layers = nn.ModuleList(DecoderLayerModule(layer, config) for layer in stack.layers)
        self.norm = layer_norm(stack.norm)

    def start(self, memory: Memory) -> DecoderState:
        layers = [layer.start(memory.states) for layer in self.layers]  # type: ignore[operator]
        return DecoderState(memory.mask[:, None, None, :], layers)

    def forward(
        self, x: Tensor, mask: Tensor, state: DecoderState, wanted: Tensor | None = None
    ) -> Tensor:
        for layer, layer_state in zip(self.layers, state.layers, strict=True):
            # Slots that nobody wants are still read by others, up to the last layer.
            last = layer is self.layers[-1]
            x = layer(x, mask, state.memory_mask, layer_state, wanted if last else None)
        normed: Tensor = self.norm(x)
        return normed


class Transformer(nn.Module):
    """A network for one order. Parameters that are shared or tied exist once."""

    def __init__(self, config: ModelConfig, order: GenerationOrder) -> None:
        super().__init__()
        self.config = config
        self.order = order
        #: what it is built from; a tensor's name in the state is the one that it has there
        self.network = network = spec.Network.of(config, order)
        self.source_embedding = embedding(network.source_embedding)
        if not config.share_embeddings:
            self.target_embedding = embedding(network.target_embedding)
        if network.source_positions and network.target_positions:
            self.source_positions = embedding(network.source_positions)
            self.target_positions = embedding(network.target_positions)
        if network.direction_embedding:
            self.direction_embedding = embedding(network.direction_embedding)
        self.encoder = Encoder(network.encoder, config)
        self.decoder = Decoder(network.decoder, config)
        if not config.tie_output:
            words, width = network.output_weight.shape
            self.output = nn.Linear(width, words, bias=False)
        if network.output_bias:
            self.output_bias = nn.Parameter(torch.zeros(network.output_bias.shape))
        self.dropout = CheapDropout(config.dropout.embedding)
        self._positions = PositionTable(config)
        self.apply(_initialise)
        if network.direction_embedding:
            # As large as the sinusoids that it is added to (mean square 1/2), or directions are
            # told apart late.
            nn.init.normal_(self.direction_embedding.weight, std=0.5**0.5)

    def encode(self, source: Tensor) -> Memory:
        """Read source ids (S, N), padded at the end."""
        mask = source != self.config.special.pad
        length = source.shape[1]
        positions = torch.arange(length, device=source.device)
        if described := self.network.source_positions:
            encodings = _look_up(self.source_positions, described, positions, length)
        else:
            encodings = self._encodings(positions, length)
        x = self.encoder.embedding_norm(self._embed(self.source_embedding, source, encodings))
        return Memory(self.encoder(self.dropout(x), mask[:, None, None, :]), mask)

    def start(self, memory: Memory) -> DecoderState:
        """A state with one row per sentence and nothing generated yet."""
        return self.decoder.start(memory)

    def step(
        self,
        state: DecoderState,
        tokens: Tensor,
        block: BlockTensors,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """Read one block: tokens (R, Z) -> hidden states (R, Z, D). Advances `state`.

        `block` describes the slots being predicted. With `wanted` (n,), indices into all R * Z
        slots, the result is (n, D): theirs alone.
        """
        embedding = self.source_embedding if self.config.share_embeddings else self.target_embedding
        slots = block.mask.shape[1]
        if described := self.network.target_positions:
            encodings = _look_up(self.target_positions, described, block.positions, slots)
        else:
            encodings = self._encodings(block.positions, slots)
        if self.order.uses_direction_embedding:
            # (Z, D) + (Z, D): added to the positions first, and not to every row
            encodings = encodings + self.direction_embedding(block.directions)
        x = self.decoder.embedding_norm(self._embed(embedding, tokens, encodings))
        hidden: Tensor = self.decoder(self.dropout(x), block.mask, state, wanted)
        return hidden

    def hidden(
        self,
        source: Tensor,
        tokens: Tensor,
        block: BlockTensors,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """The whole target as one block: source (S, N), tokens (S, T) -> (S, T, D).

        With `wanted` (n,), indices into all S * T slots, the hidden states (n, D) of these.
        """
        state = self.start(self.encode(source))
        return self.step(state, tokens, block, wanted)

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        """Matrix (V, D) and bias (V,) of the output layer."""
        if not self.config.tie_output:
            weight = self.output.weight
        elif self.config.share_embeddings:
            weight = self.source_embedding.weight
        else:
            weight = self.target_embedding.weight
        return weight, self.output_bias if self.config.output_bias else None

    def logits(self, hidden: Tensor) -> Tensor:
        """Unnormalised logprobs (..., V) of hidden states (..., D)."""
        return F.linear(hidden, *self.output_parameters())

    def forward(self, source: Tensor, tokens: Tensor, block: BlockTensors) -> Tensor:
        """Logits (S, T, V) of every slot of the whole target."""
        return self.logits(self.hidden(source, tokens, block))

    def _encodings(self, positions: Tensor, limit: int) -> Tensor:
        """Sinusoids (L, D) of `positions` (L,), in the precision and place of the weights."""
        return self._positions(positions, limit, like=self.source_embedding.weight)

    def _embed(self, embedding: nn.Embedding, tokens: Tensor, encodings: Tensor) -> Tensor:
        """Scaled embeddings of tokens (B, L) plus the encodings (L, D) of their places."""
        scale = self.config.width**0.5 if self.config.embedding_scale else 1.0
        return torch.add(encodings, embedding(tokens), alpha=scale)


def _look_up(
    table: nn.Embedding, described: spec.Positions, positions: Tensor, slots: int
) -> Tensor:
    """Learned vectors (L, D) of `positions` (L,), in a text of so many slots up to here."""
    described.check(slots)
    vectors: Tensor = table(positions + described.origin)
    return vectors


def _initialise(module: nn.Module) -> None:
    """Xavier-uniform matrices, zero biases, and embeddings whose norm is about a half.

    Of norm 1, as is often done, a tied output layer starts out sure of the word that it was just
    fed (the more so with pre-norm), up to a nat and more above the loss of guessing. A fused
    projection is initialised as the one matrix that it is: queries, keys and values start smaller
    by sqrt(2) than as three matrices, which steadies the first updates with post-norm.
    """
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.5 * module.embedding_dim**-0.5)
