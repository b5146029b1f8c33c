"""How a graph multiplies by a weight matrix: in float32 or in int8.

The network (`onnx_network`) is written once, against these few calls. `read` makes an input ready
for products, once for all that share it; `linear` is one of them; `embed` looks words up in the
matrix that the output layer may share.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bothends.engines.onnx_graph import GraphWriter

Array = NDArray[np.float32]
Prepared = TypeVar("Prepared")


class Products(Protocol[Prepared]):
    """Products of a graph with its weights. Matrices have PyTorch's layout, (outputs, inputs)."""

    def read(self, x: str) -> Prepared:
        """Make rows (M, inputs) ready for products."""
        ...

    def linear(self, x: Prepared, name: str, matrix: Array, bias: Array | None) -> str:
        """The rows (M, outputs) `x matrix^T + bias`."""
        ...

    def embed(self, tokens: str, name: str, matrix: Array, scale: float) -> str:
        """The rows of a matrix (words, width) for tokens (...), times `scale`: (..., width)."""
        ...


class FloatProducts:
    """Everything in float32."""

    def __init__(self, graph: GraphWriter) -> None:
        self.graph = graph

    def read(self, x: str) -> str:
        return x

    def linear(self, x: str, name: str, matrix: Array, bias: Array | None) -> str:
        inputs = [x, self.graph.weight(name, matrix)]
        if bias is not None:
            inputs.append(self.graph.weight(f"{name}.bias", bias))
        # The matrix stays as it is and is transposed inside: so an embedding can be an output layer
        return self.graph.node("Gemm", *inputs, transB=1)

    def embed(self, tokens: str, name: str, matrix: Array, scale: float) -> str:
        rows = self.graph.node("Gather", self.graph.weight(name, matrix), tokens, axis=0)
        if scale == 1.0:
            return rows
        return self.graph.node("Mul", rows, self.graph.constant(scale, np.float32))
