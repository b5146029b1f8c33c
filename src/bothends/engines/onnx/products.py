"""How a graph multiplies by a weight matrix: in float32 or in int8.

The network (`network`) is written once, against these few calls. `read` makes an input ready
for products, once for all that share it; `linear` is one of them; `embed` looks words up in the
matrix that the output layer may share.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from bothends.engines.onnx.graph import GraphWriter
from bothends.engines.onnx.initialisers import bias_of, scales_of
from bothends.engines.quantisation import (
    POSITIVE_LIMIT,
    ROW_LIMIT,
    ZERO_POINT,
    quantise_matrix,
)

Array = NDArray[np.float32]
Prepared = TypeVar("Prepared")


class Products(Protocol[Prepared]):
    """Products of a graph with its weights. Matrices have PyTorch's layout, (outputs, inputs)."""

    def read(self, x: str) -> Prepared:
        """Make rows (M, inputs) ready for products."""
        ...

    def read_relu(self, x: str) -> Prepared:
        """Make the positive part of rows ready: `max(x, 0)`."""
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

    def read_relu(self, x: str) -> str:
        return self.graph.node("Relu", x)

    def linear(self, x: str, name: str, matrix: Array, bias: Array | None) -> str:
        inputs = [x, self.graph.weight(name, matrix)]
        if bias is not None:
            inputs.append(self.graph.weight(bias_of(name), bias))
        # The matrix stays as it is and is transposed inside: so an embedding can be an output layer
        return self.graph.node("Gemm", *inputs, transB=1)

    def embed(self, tokens: str, name: str, matrix: Array, scale: float) -> str:
        rows = self.graph.node("Gather", self.graph.weight(name, matrix), tokens, axis=0)
        if scale == 1.0:
            return rows
        return self.graph.node("Mul", rows, self.graph.constant(scale, np.float32))


class QuantisedRows(NamedTuple):
    """Rows `scales * (values - zero_point)`, as `quantisation` describes them."""

    values: str  # (M, inputs) uint8
    scales: str  # (M,) float32
    zero_point: int


class Int8Products:
    """Products of integers. One quantisation of an input serves all products that share it."""

    def __init__(self, graph: GraphWriter) -> None:
        self.graph = graph
        self._zero_points: str | None = None

    def read(self, x: str) -> QuantisedRows:
        scales = self._scales(self.graph.node("Abs", x), ROW_LIMIT)
        if self._zero_points is None:
            # One for each row (M,), as the operator wants them where scales are per row.
            value = helper.make_tensor("zero_point", TensorProto.UINT8, [1], [ZERO_POINT])
            rows = self.graph.node("Shape", x, start=0, end=1)
            self._zero_points = self.graph.node("ConstantOfShape", rows, value=value)
        values = self.graph.node("QuantizeLinear", x, scales, self._zero_points, axis=0)
        return QuantisedRows(values, scales, ZERO_POINT)

    def read_relu(self, x: str) -> QuantisedRows:
        """What is negative is below the range of uint8 and becomes 0: no ReLU is needed."""
        # That of a row's largest value is: a row that is all negative has scale 0.
        scales = self.graph.node("Relu", self._scales(x, POSITIVE_LIMIT))
        return QuantisedRows(self.graph.node("QuantizeLinear", x, scales, axis=0), scales, 0)

    def _scales(self, x: str, limit: int) -> str:
        """What one step is worth in each row (M,), if the largest value of a row is `limit` steps.

        A row of zeros has scale 0, and 0 / 0 is quantised to no matter what: times 0 it is 0.
        """
        last_axis = self.graph.constant([-1], np.int64)
        largest = self.graph.node("ReduceMax", x, last_axis, keepdims=0)
        return self.graph.node("Mul", largest, self.graph.constant(1 / limit, np.float32))

    def linear(self, x: QuantisedRows, name: str, matrix: Array, bias: Array | None) -> str:
        graph = self.graph
        values, scales = self._weight(name, matrix)
        # Folded when a session is loaded; the file keeps the layout that an embedding needs.
        transposed = graph.node("Transpose", values, perm=[1, 0])
        zero_point = graph.constant(x.zero_point, np.uint8)
        integers = graph.node("MatMulInteger", x.values, transposed, zero_point)
        by_row = graph.node("DequantizeLinear", integers, x.scales, axis=0)
        product = graph.node("Mul", by_row, scales)
        if bias is None:
            return product
        return graph.node("Add", product, graph.weight(bias_of(name), bias))

    def embed(self, tokens: str, name: str, matrix: Array, scale: float) -> str:
        graph = self.graph
        values, scales = self._weight(name, matrix)
        rows = graph.node("Cast", graph.node("Gather", values, tokens), to=TensorProto.FLOAT)
        # (words,) -> (words, 1), and its factor, are folded when a session is loaded
        column = graph.node("Unsqueeze", scales, graph.constant([1], np.int64))
        column = graph.node("Mul", column, graph.constant(scale, np.float32))
        return graph.node("Mul", rows, graph.node("Gather", column, tokens))

    def _weight(self, name: str, matrix: Array) -> tuple[str, str]:
        values, scales = quantise_matrix(matrix)
        graph = self.graph
        return graph.weight(name, values), graph.weight(scales_of(name), scales)
