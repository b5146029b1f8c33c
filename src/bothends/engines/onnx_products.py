"""How a graph multiplies by a weight matrix: in float32 or in int8.

The network (`onnx_network`) is written once, against these few calls. `read` makes an input ready
for products, once for all that share it; `linear` is one of them; `embed` looks words up in the
matrix that the output layer may share.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from bothends.engines.onnx_graph import MICROSOFT, GraphWriter
from bothends.engines.quantisation import ROW_LIMIT, ZERO_POINT, quantise_matrix

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


class QuantisedRows(NamedTuple):
    """Rows `scales * (values - 128)`, as `quantisation` describes them."""

    values: str  # (M, inputs) uint8
    scales: str  # (M, 1) float32


class Int8Products:
    """Products of integers. One quantisation of an input serves all products that share it."""

    def __init__(self, graph: GraphWriter) -> None:
        self.graph = graph
        self._zeros: str | None = None

    def read(self, x: str) -> QuantisedRows:
        graph = self.graph
        last_axis = graph.constant([-1], np.int64)
        largest = graph.node("ReduceMax", graph.node("Abs", x), last_axis, keepdims=1)
        # A row of zeros has scale 0, and 0 / 0 is quantised to no matter what: times 0 it is 0.
        scales = graph.node("Mul", largest, graph.constant(1 / ROW_LIMIT, np.float32))
        flat = graph.node("Reshape", scales, graph.constant([-1], np.int64))  # (M, 1) -> (M,)
        values = graph.node("QuantizeLinear", x, flat, self._zero_points(x), axis=0)
        return QuantisedRows(values, scales)

    def linear(self, x: QuantisedRows, name: str, matrix: Array, bias: Array | None) -> str:
        graph = self.graph
        values, scales = self._weight(name, matrix)
        product = graph.node(
            "MatMulIntegerToFloat",
            x.values,
            # Folded when a session is loaded; the file keeps the layout that an embedding needs.
            graph.node("Transpose", values, perm=[1, 0]),
            graph.constant(1.0, np.float32),
            scales,
            graph.constant(ZERO_POINT, np.uint8),
            domain=MICROSOFT,
        )
        scaled = graph.node("Mul", product, x.scales)
        if bias is None:
            return scaled
        return graph.node("Add", scaled, graph.weight(f"{name}.bias", bias))

    def embed(self, tokens: str, name: str, matrix: Array, scale: float) -> str:
        graph = self.graph
        values, scales = self._weight(name, matrix)
        rows = graph.node("Cast", graph.node("Gather", values, tokens), to=TensorProto.FLOAT)
        column = graph.node("Unsqueeze", scales, graph.constant([1], np.int64))  # (words, 1)
        row_scales = graph.node("Gather", column, tokens)
        if scale != 1.0:
            row_scales = graph.node("Mul", row_scales, graph.constant(scale, np.float32))
        return graph.node("Mul", rows, row_scales)

    def _weight(self, name: str, matrix: Array) -> tuple[str, str]:
        values, scales = quantise_matrix(matrix)
        graph = self.graph
        return graph.weight(name, values), graph.weight(f"{name}.scales", scales)

    def _zero_points(self, x: str) -> str:
        """One zero point for each row (M,), as the operator wants them where scales are per row."""
        if self._zeros is None:
            rows = self.graph.node("Shape", x, start=0, end=1)
            value = helper.make_tensor("zero_point", TensorProto.UINT8, [1], [ZERO_POINT])
            self._zeros = self.graph.node("ConstantOfShape", rows, value=value)
        return self._zeros
