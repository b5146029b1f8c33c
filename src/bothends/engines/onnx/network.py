"""The Transformer as two ONNX graphs, written from its weights.

Rows are laid out slot by slot: `(slots, hypotheses of a sentence, sentences)`, flattened. So all
queries to one sentence's source are strides of one array, and so are all keys of a sentence: heads
are split and sentences told apart by strides inside the products, and nothing is transposed or
tiled on the way in. Shapes use

    S  sentences          K  rows of each      Z  slots of a block       M = Z * K * S
    N  source length      H  heads             d  head width             D = H * d  width
    E  entries: keys that a sentence has so far, of all its rows, dead ones too

**The self-attention state is never moved.** A step writes the keys and values of its block behind
those of the blocks before it, and a row finds its own past among the entries of its sentence by
`mask`. The engine binds `new_keys` to the very memory that it hands in as `keys`, so that writing
is all that happens: appending to the past and selecting rows cost no copy, where gathering and
concatenating would cost more than the attention itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic

import numpy as np

from bothends.engines.onnx.graph import MICROSOFT, GraphWriter, Shape
from bothends.engines.onnx.initialisers import MEMORY
from bothends.engines.onnx.products import Array, Prepared, Products
from bothends.engines.onnx.topk import write_topk
from bothends.model.config import ModelConfig
from bothends.model.spec import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LookupTable,
    Network,
    Norm,
    Projection,
    SelfAttention,
    Tensor,
)
from bothends.order import GenerationOrder


def query_scales(projection: Projection, config: ModelConfig) -> Array:
    """A factor for each output of a linear layer: queries take in the scale of attention scores."""
    parts = [config.head_width**-0.5 if part == "query" else 1 for part in projection.parts]
    outputs, _ = projection.weight.shape
    return np.repeat(np.array(parts, np.float32), outputs // len(parts))


class NetworkWriter(Generic[Prepared]):
    """Writes the encoder or the decoder into an empty graph."""

    def __init__(
        self,
        graph: GraphWriter,
        products: Products[Prepared],
        config: ModelConfig,
        order: GenerationOrder,
        weights: Mapping[str, Array],
    ) -> None:
        self.graph = graph
        self.products = products
        self.config = config
        self.network = Network.of(config, order)
        self.weights = weights

    def encoder(self) -> None:
        """Source ids (N, S) -> keys and values of all decoder layers (2 * layers, S, H, N, d)."""
        graph, config = self.graph, self.config
        source = graph.input("source", np.int64, ["N", "S"])
        learned = self.network.source_positions
        if learned:
            encodings = self._first_rows(learned, source)
        else:
            encodings = graph.input("encodings", np.float32, ["N", 1, config.width])
        mask = graph.input("source_mask", np.float32, ["mask S", 1, 1, "mask N"])
        shape = graph.input("query_shape", np.int64, [4])  # N, S, -1, d: of rows by their heads
        x = self._embed(source, self.network.source_embedding, encodings)
        x = self._norm(x, self.network.encoder.embedding_norm)
        for layer in self.network.encoder.layers:
            x = self._encoder_layer(layer, x, shape, mask)
        memory = self._memory(self._norm(x, self.network.encoder.norm))
        heads, head_width = config.heads, config.head_width
        graph.output("memory", memory, np.float32, ["2 * layers", "S", heads, "N", head_width])

    def decoder(self) -> None:
        """One block of tokens (Z, K * S) -> the best k words of each slot."""
        graph, config, network = self.graph, self.config, self.network
        tokens = graph.input("tokens", np.int64, ["Z", "R"])
        positions = graph.input("positions", np.int64, ["Z", 1])
        if network.target_positions:
            table = self._stored(network.target_positions.weight)
        else:
            table = graph.input("position_encodings", np.float32, ["P", config.width])
        mask = graph.input("mask", np.float32, ["mask S", 1, "mask Z * K", "E"])
        source_mask = graph.input("source_mask", np.float32, ["mask S", 1, 1, "mask N"])
        shape = graph.input("query_shape", np.int64, [4])  # Z * K, S, -1, d
        graph.input("new_entries", np.int64, ["Z * K", 1])
        encodings = graph.node("Gather", table, positions)  # (Z, 1, D)
        if network.direction_embedding:
            directions = graph.input("directions", np.int64, ["Z", 1])
            table = self._stored(network.direction_embedding.weight)
            encodings = graph.node("Add", encodings, graph.node("Gather", table, directions))
        x = self._embed(tokens, network.target_embedding, encodings)
        x = self._norm(x, network.decoder.embedding_norm)
        for number, layer in enumerate(network.decoder.layers):
            x = self._decoder_layer(number, layer, x, shape, mask, source_mask)
        self._answer(self._norm(x, network.decoder.norm))

    def _encoder_layer(self, layer: EncoderLayer, x: str, shape: str, mask: str) -> str:
        def self_attention(x: str) -> str:
            query, keys, values = self._query_key_value(layer.self_attention, x, shape)
            attended = self._attend_strided(query, keys, values, mask)
            return self._linear(self.products.read(attended), layer.self_attention.output)

        x = self._residual(x, layer.self_attention_norm, self_attention)
        return self._feed_forward(layer.feed_forward, layer.feed_forward_norm, x)

    def _decoder_layer(
        self, number: int, layer: DecoderLayer, x: str, shape: str, mask: str, source_mask: str
    ) -> str:
        graph, config = self.graph, self.config
        heads, head_width = config.heads, config.head_width
        past: Shape = ["E", "S", heads, head_width]
        keys = graph.input(f"keys_{number}", np.float32, past)
        values = graph.input(f"values_{number}", np.float32, past)
        source: Shape = ["S", heads, "N", head_width]
        memory_keys = graph.input(f"memory_keys_{number}", np.float32, source)
        memory_values = graph.input(f"memory_values_{number}", np.float32, source)

        def self_attention(x: str) -> str:
            query, *new = self._query_key_value(layer.self_attention, x, shape)
            # (E, S, H, d) with the lines `new_entries` replaced by (Z * K, S, H, d)
            all_keys, all_values = (
                graph.node("ScatterND", all_so_far, "new_entries", block)
                for all_so_far, block in zip((keys, values), new, strict=True)
            )
            attended = self._attend_strided(query, all_keys, all_values, mask)
            graph.output(f"new_keys_{number}", all_keys, np.float32, past)
            graph.output(f"new_values_{number}", all_values, np.float32, past)
            return self._linear(self.products.read(attended), layer.self_attention.output)

        def cross_attention(x: str) -> str:
            query = self._linear(self.products.read(x), layer.cross_attention.query)
            query = graph.node("Reshape", query, shape)
            # (Z * K, S, H, d) x (S, H, N, d) -> (S, H, Z * K, N)
            scores = graph.node(
                "FusedMatMul", query, memory_keys, domain=MICROSOFT, transBatchA=1, transB=1
            )
            shares = self._softmax(scores, source_mask)
            attended = self._rows(graph.node("MatMul", shares, memory_values))
            return self._linear(self.products.read(attended), layer.cross_attention.output)

        x = self._residual(x, layer.self_attention_norm, self_attention)
        x = self._residual(x, layer.cross_attention_norm, cross_attention)
        return self._feed_forward(layer.feed_forward, layer.feed_forward_norm, x)

    def _query_key_value(self, attention: SelfAttention, x: str, shape: str) -> list[str]:
        """Queries, keys and values (Z * K, S, H, d) of rows (M, D), from one product."""
        fused = self._linear(self.products.read(x), attention.query_key_value)
        split_heads = self.graph.node("Reshape", fused, shape)  # (Z * K, S, 3 * H, d)
        return self.graph.nodes("Split", split_heads, outputs=3, axis=2, num_outputs=3)

    def _attend_strided(self, query: str, keys: str, values: str, mask: str) -> str:
        """Attention of queries (Q, S, H, d) to keys and values (E, S, H, d): rows (Q * S, D)."""
        # (Q, S, H, d) x (E, S, H, d) -> (S, H, Q, E): each product reads its matrices in strides
        scores = self.graph.node(
            "FusedMatMul",
            query,
            keys,
            domain=MICROSOFT,
            transBatchA=1,
            transBatchB=1,
            transB=1,
        )
        shares = self._softmax(scores, mask)
        attended = self.graph.node("FusedMatMul", shares, values, domain=MICROSOFT, transBatchB=1)
        return self._rows(attended)

    def _softmax(self, scores: str, mask: str) -> str:
        """Shares of attention; `mask` is 0 where it is allowed and hugely negative elsewhere."""
        return self.graph.node("Softmax", self.graph.node("Add", scores, mask), axis=-1)

    def _rows(self, attended: str) -> str:
        """(S, H, Q, d) -> (Q, S, H, d) -> (Q * S, D)"""
        transposed = self.graph.node("Transpose", attended, perm=[2, 0, 1, 3])
        shape = self.graph.constant([-1, self.config.width], np.int64)
        return self.graph.node("Reshape", transposed, shape)

    def _feed_forward(self, layers: FeedForward, norm: Norm, x: str) -> str:
        def feed_forward(x: str) -> str:
            inner = self._activate(self._linear(self.products.read(x), layers.inner))
            return self._linear(inner, layers.outer)

        return self._residual(x, norm, feed_forward)

    def _activate(self, x: str) -> Prepared:
        match self.config.activation:
            case "relu":
                return self.products.read_relu(x)
            case "gelu":
                return self.products.read(self.graph.node("Gelu", x))
            case "gelu-tanh":
                return self.products.read(self.graph.node("Gelu", x, approximate="tanh"))
            case "silu":
                return self.products.read(self.graph.node("Mul", x, self.graph.node("Sigmoid", x)))

    def _residual(self, x: str, norm: Norm, sublayer: Callable[[str], str]) -> str:
        """Pre-norm `x + sublayer(norm(x))`, post-norm `norm(x + sublayer(x))`."""
        if self.config.norm == "pre":
            return self.graph.node("Add", x, sublayer(self._norm(x, norm)))
        return self._norm(self.graph.node("Add", x, sublayer(x)), norm)

    def _norm(self, x: str, norm: Norm | None) -> str:
        if norm is None:
            return x
        gain, shift = self._stored(norm.gain), self._stored(norm.shift)
        return self.graph.node("LayerNormalization", x, gain, shift, epsilon=norm.epsilon)

    def _stored(self, tensor: Tensor) -> str:
        return self.graph.weight(tensor.name, self.weights[tensor.name])

    def _linear(self, x: Prepared, projection: Projection) -> str:
        """A linear layer."""
        matrix = self.weights[projection.weight.name]
        bias = self.weights[projection.bias.name]
        scale = query_scales(projection, self.config)
        return self.products.linear(x, projection.name, matrix * scale[:, None], bias * scale)

    # --- the two ends of the network ---

    def _embed(self, tokens: str, table: LookupTable, encodings: str) -> str:
        """Rows (M, D) for tokens (slots, rows): their embeddings and positions."""
        name = table.weight.name
        scale = self.config.width**0.5 if self.config.embedding_scale else 1.0
        embedded = self.products.embed(tokens, name, self.weights[name], scale)
        shape = self.graph.constant([-1, self.config.width], np.int64)
        return self.graph.node("Reshape", self.graph.node("Add", embedded, encodings), shape)

    def _first_rows(self, positions: LookupTable, tokens: str) -> str:
        """The vectors (N, 1, D) of the first positions, for tokens (N, S)."""
        length = self.graph.node("Shape", tokens, start=0, end=1)
        start = self.graph.constant([0], np.int64)
        rows = self.graph.node("Slice", self._stored(positions.weight), start, length)
        return self.graph.node("Unsqueeze", rows, self.graph.constant([1], np.int64))

    def _memory(self, x: str) -> str:
        """Keys and values of all decoder layers, from one product of the encoder's rows (N * S, D).

        -> (2 * layers, S, H, N, d), so that each layer's are one stretch of memory.
        """
        config, layers = self.config, self.network.decoder.layers
        every = [layer.cross_attention.key_value for layer in layers]
        matrix = np.concatenate([self.weights[each.weight.name] for each in every])
        bias = np.concatenate([self.weights[each.bias.name] for each in every])
        fused = self.products.linear(self.products.read(x), MEMORY, matrix, bias)
        source_shape = self.graph.node("Shape", "source")  # (N, S)
        split = [2 * config.decoder_layers, config.heads, config.head_width]
        shape = self.graph.node(
            "Concat", source_shape, self.graph.constant(split, np.int64), axis=0
        )
        # (N * S, 2 * layers * D) -> (N, S, 2 * layers, H, d) -> (2 * layers, S, H, N, d)
        split_heads = self.graph.node("Reshape", fused, shape)
        return self.graph.node("Transpose", split_heads, perm=[2, 1, 3, 0, 4])

    def _answer(self, x: str) -> None:
        """The best `k` words of every row (M, D), and the logprobs of the `targets` asked for."""
        graph, config, network = self.graph, self.config, self.network
        name = network.output_weight.name
        bias = self.weights[network.output_bias.name] if network.output_bias else None
        logits = self.products.linear(self.products.read(x), name, self.weights[name], bias)
        logprobs = graph.node("LogSoftmax", logits, axis=-1)
        k = graph.input("k", np.int64, [1])
        best = write_topk(graph, logprobs, config.target_size, k)
        graph.output("logprobs", best.values, np.float32, ["M", "k"])
        graph.output("ids", best.places, np.int64, ["M", "k"])
        # Empty in a search step: scoring a given target costs the search nothing.
        targets = graph.input("targets", np.int64, ["M", "c"])
        chosen = graph.node("GatherElements", logprobs, targets, axis=1)
        graph.output("target_logprobs", chosen, np.float32, ["M", "c"])
