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
from bothends.engines.onnx.products import Array, Prepared, Products
from bothends.engines.onnx.topk import write_topk
from bothends.model.config import ModelConfig
from bothends.order import GenerationOrder

NORM_EPSILON = 1e-5


class NetworkWriter(Generic[Prepared]):
    """Writes the encoder or the decoder into an empty graph."""

    def __init__(
        self,
        graph: GraphWriter,
        products: Products[Prepared],
        config: ModelConfig,
        weights: Mapping[str, Array],
    ) -> None:
        self.graph = graph
        self.products = products
        self.config = config
        self.weights = weights

    def encoder(self) -> None:
        """Source ids (N, S) -> keys and values of all decoder layers (2 * layers, S, H, N, d)."""
        graph, config = self.graph, self.config
        source = graph.input("source", np.int64, ["N", "S"])
        encodings = graph.input("encodings", np.float32, ["N", 1, config.width])
        mask = graph.input("source_mask", np.float32, ["mask S", 1, 1, "mask N"])
        shape = graph.input("query_shape", np.int64, [4])  # N, S, -1, d: of rows by their heads
        x = self._embed(source, "source_embedding.weight", encodings)
        for layer in range(config.encoder_layers):
            x = self._encoder_layer(f"encoder.layers.{layer}", x, shape, mask)
        memory = self._memory(self._final_norm("encoder", x))
        heads, head_width = config.heads, config.head_width
        graph.output("memory", memory, np.float32, ["2 * layers", "S", heads, "N", head_width])

    def decoder(self, order: GenerationOrder) -> None:
        """One block of tokens (Z, K * S) -> the best k words of each slot."""
        graph, config = self.graph, self.config
        tokens = graph.input("tokens", np.int64, ["Z", "R"])
        positions = graph.input("positions", np.int64, ["Z", 1])
        table = graph.input("position_encodings", np.float32, ["P", config.width])
        mask = graph.input("mask", np.float32, ["mask S", 1, "mask Z * K", "E"])
        source_mask = graph.input("source_mask", np.float32, ["mask S", 1, 1, "mask N"])
        shape = graph.input("query_shape", np.int64, [4])  # Z * K, S, -1, d
        graph.input("new_entries", np.int64, ["Z * K", 1])
        encodings = graph.node("Gather", table, positions)  # (Z, 1, D)
        if order.uses_direction_embedding:
            directions = graph.input("directions", np.int64, ["Z", 1])
            name = "direction_embedding.weight"
            table = graph.weight(name, self.weights[name])
            encodings = graph.node("Add", encodings, graph.node("Gather", table, directions))
        x = self._embed(tokens, self._target_embedding, encodings)
        for layer in range(config.decoder_layers):
            x = self._decoder_layer(layer, x, shape, mask, source_mask)
        self._answer(self._final_norm("decoder", x))

    def _encoder_layer(self, prefix: str, x: str, shape: str, mask: str) -> str:
        def self_attention(x: str) -> str:
            query, keys, values = self._query_key_value(prefix, x, shape)
            attended = self._attend_strided(query, keys, values, mask)
            return self._linear(self.products.read(attended), f"{prefix}.self_attention.output")

        x = self._residual(x, f"{prefix}.self_attention_norm", self_attention)
        return self._feed_forward(prefix, x)

    def _decoder_layer(self, layer: int, x: str, shape: str, mask: str, source_mask: str) -> str:
        graph, config = self.graph, self.config
        heads, head_width = config.heads, config.head_width
        prefix = f"decoder.layers.{layer}"
        past: Shape = ["E", "S", heads, head_width]
        keys = graph.input(f"keys_{layer}", np.float32, past)
        values = graph.input(f"values_{layer}", np.float32, past)
        source: Shape = ["S", heads, "N", head_width]
        memory_keys = graph.input(f"memory_keys_{layer}", np.float32, source)
        memory_values = graph.input(f"memory_values_{layer}", np.float32, source)

        def self_attention(x: str) -> str:
            query, *new = self._query_key_value(prefix, x, shape)
            # (E, S, H, d) with the lines `new_entries` replaced by (Z * K, S, H, d)
            all_keys, all_values = (
                graph.node("ScatterND", all_so_far, "new_entries", block)
                for all_so_far, block in zip((keys, values), new, strict=True)
            )
            attended = self._attend_strided(query, all_keys, all_values, mask)
            graph.output(f"new_keys_{layer}", all_keys, np.float32, past)
            graph.output(f"new_values_{layer}", all_values, np.float32, past)
            return self._linear(self.products.read(attended), f"{prefix}.self_attention.output")

        def cross_attention(x: str) -> str:
            query = self._linear(
                self.products.read(x), f"{prefix}.cross_attention.query", queries=config.width
            )
            query = graph.node("Reshape", query, shape)
            # (Z * K, S, H, d) x (S, H, N, d) -> (S, H, Z * K, N)
            scores = graph.node(
                "FusedMatMul", query, memory_keys, domain=MICROSOFT, transBatchA=1, transB=1
            )
            shares = self._softmax(scores, source_mask)
            attended = self._rows(graph.node("MatMul", shares, memory_values))
            return self._linear(self.products.read(attended), f"{prefix}.cross_attention.output")

        x = self._residual(x, f"{prefix}.self_attention_norm", self_attention)
        x = self._residual(x, f"{prefix}.cross_attention_norm", cross_attention)
        return self._feed_forward(prefix, x)

    def _query_key_value(self, prefix: str, x: str, shape: str) -> list[str]:
        """Queries, keys and values (Z * K, S, H, d) of rows (M, D), from one product."""
        name = f"{prefix}.self_attention.query_key_value"
        fused = self._linear(self.products.read(x), name, queries=self.config.width)
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

    def _feed_forward(self, prefix: str, x: str) -> str:
        def feed_forward(x: str) -> str:
            inner = self._activate(
                self._linear(self.products.read(x), f"{prefix}.feed_forward.inner")
            )
            return self._linear(inner, f"{prefix}.feed_forward.outer")

        return self._residual(x, f"{prefix}.feed_forward_norm", feed_forward)

    def _activate(self, x: str) -> Prepared:
        match self.config.activation:
            case "relu":
                return self.products.read_relu(x)
            case "gelu":
                return self.products.read(self.graph.node("Gelu", x))
            case "silu":
                return self.products.read(self.graph.node("Mul", x, self.graph.node("Sigmoid", x)))

    def _residual(self, x: str, norm: str, sublayer: Callable[[str], str]) -> str:
        """Pre-norm `x + sublayer(norm(x))`, post-norm `norm(x + sublayer(x))`."""
        if self.config.norm == "pre":
            return self.graph.node("Add", x, sublayer(self._norm(x, norm)))
        return self._norm(self.graph.node("Add", x, sublayer(x)), norm)

    def _norm(self, x: str, name: str) -> str:
        scale, shift = (
            self.graph.weight(f"{name}.{part}", self.weights[f"{name}.{part}"])
            for part in ("weight", "bias")
        )
        return self.graph.node("LayerNormalization", x, scale, shift, epsilon=NORM_EPSILON)

    def _final_norm(self, stack: str, x: str) -> str:
        # A pre-norm residual stream leaves the last layer unnormalised.
        return self._norm(x, f"{stack}.norm") if self.config.norm == "pre" else x

    def _linear(self, x: Prepared, name: str, queries: int = 0) -> str:
        """A linear layer; its first `queries` outputs take in the scale of attention scores."""
        matrix, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        scale = np.ones(len(matrix), np.float32)
        scale[:queries] = self.config.head_width**-0.5
        return self.products.linear(x, name, matrix * scale[:, None], bias * scale)

    # --- the two ends of the network ---

    @property
    def _target_embedding(self) -> str:
        shared = self.config.share_embeddings
        return "source_embedding.weight" if shared else "target_embedding.weight"

    def _embed(self, tokens: str, name: str, encodings: str) -> str:
        """Rows (M, D) for tokens (slots, rows): their embeddings and positions."""
        scale = self.config.width**0.5 if self.config.embedding_scale else 1.0
        embedded = self.products.embed(tokens, name, self.weights[name], scale)
        shape = self.graph.constant([-1, self.config.width], np.int64)
        return self.graph.node("Reshape", self.graph.node("Add", embedded, encodings), shape)

    def _memory(self, x: str) -> str:
        """Keys and values of all decoder layers, from one product of the encoder's rows (N * S, D).

        -> (2 * layers, S, H, N, d), so that each layer's are one stretch of memory.
        """
        config, layers = self.config, range(self.config.decoder_layers)
        names = [f"decoder.layers.{layer}.cross_attention.key_value" for layer in layers]
        matrix = np.concatenate([self.weights[f"{name}.weight"] for name in names])
        bias = np.concatenate([self.weights[f"{name}.bias"] for name in names])
        fused = self.products.linear(self.products.read(x), "memory.key_value", matrix, bias)
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
        graph, config = self.graph, self.config
        name = self._target_embedding if config.tie_output else "output.weight"
        bias = self.weights["output_bias"] if config.output_bias else None
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
