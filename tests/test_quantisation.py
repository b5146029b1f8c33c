"""Eight-bit numbers: rounding, sums that no CPU saturates, rows that ignore their neighbours.

Products are run by ONNX Runtime on this machine's CPU and compared with NumPy's exact integers.
"""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bothends.engines.onnx.graph import GraphWriter
from bothends.engines.onnx.products import Int8Products
from bothends.engines.quantisation import (
    ROW_LIMIT,
    WEIGHT_LIMIT,
    QuantisedMatrix,
    quantise_matrix,
)

Float32Array = NDArray[np.float32]


def dequantise(matrix: QuantisedMatrix) -> Float32Array:
    """What the numbers stand for."""
    return matrix.values * matrix.scales[:, None]


matrices = arrays.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.integers(1, 9)),
    elements=st.floats(-1e4, 1e4, width=32, allow_subnormal=False),
)


@given(matrices)
def test_weights_are_rounded_to_the_nearest_multiple_of_their_row(matrix: Float32Array) -> None:
    quantised = quantise_matrix(matrix)
    assert quantised.values.dtype == np.int8
    assert np.abs(quantised.values.astype(int)).max() <= WEIGHT_LIMIT
    # Half a step, and the rounding of float32 itself.
    limit = quantised.scales[:, None] * (0.5 + 1e-4)
    assert (np.abs(dequantise(quantised) - matrix) <= limit).all()


def test_a_row_of_zeros_stays_one() -> None:
    matrix = np.array([[0, 0], [2, -2]], np.float32)
    np.testing.assert_array_equal(dequantise(quantise_matrix(matrix)), matrix)


def test_a_row_of_next_to_nothing_becomes_zeros() -> None:
    quantised = quantise_matrix(np.array([[1.8e-37, -1e-38], [2, -2]], np.float32))
    np.testing.assert_array_equal(dequantise(quantised), [[0, 0], [2, -2]])


def saturating_sums(inputs: NDArray[np.uint8], weights: NDArray[np.int8]) -> NDArray[np.int64]:
    """Products as a CPU without VNNI adds them up: in pairs, into sixteen bits that saturate."""
    products = inputs.astype(np.int64) * weights
    pairs = products[:, ::2] + products[:, 1::2]
    limits = np.iinfo(np.int16)
    sums: NDArray[np.int64] = pairs.clip(limits.min, limits.max).sum(axis=1)
    return sums


@given(matrices)
def test_no_pair_of_products_leaves_sixteen_bits(matrix: Float32Array) -> None:
    weights = np.repeat(quantise_matrix(matrix).values, 2, axis=1)  # the worst pairs: of equals
    largest = np.full_like(weights, 255, dtype=np.uint8)
    exact = largest.astype(np.int64) * weights
    np.testing.assert_array_equal(saturating_sums(largest, weights), exact.sum(axis=1))


def test_weights_of_eight_bits_would_saturate() -> None:
    """The check above can fail."""
    found = saturating_sums(np.full((1, 2), 255, np.uint8), np.full((1, 2), 127, np.int8))
    assert found[0] < 2 * 255 * 127


def linear(
    rows: Float32Array, matrix: Float32Array, bias: Float32Array | None = None, relu: bool = False
) -> Float32Array:
    """`rows matrix^T + bias`, or of their positive part, as the exported graphs compute it."""
    graph = GraphWriter("linear")
    products = Int8Products(graph)
    x = graph.input("x", np.float32, ["M", rows.shape[1]])
    read = products.read_relu if relu else products.read
    product = products.linear(read(x), "matrix", matrix, bias)
    graph.output("y", product, np.float32, ["M", len(matrix)])
    found: Float32Array = run(graph, {"x": rows})
    return found


def run(graph: GraphWriter, inputs: dict[str, NDArray[Any]]) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        graph.write("graph.onnx", {}).content, options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)[0]


def exact(rows: Float32Array, matrix: Float32Array) -> NDArray[np.float64]:
    """The same product, with its integers from NumPy."""
    row_scales = np.abs(rows).max(axis=1, keepdims=True) * np.float32(1 / ROW_LIMIT)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.rint(rows / row_scales)
    values = np.where(row_scales > 0, values, 0).astype(np.int64)
    weights = quantise_matrix(matrix)
    integers = values @ weights.values.astype(np.int64).T
    product: NDArray[np.float64] = integers * row_scales.astype(np.float64) * weights.scales
    return product


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 33])
@pytest.mark.parametrize("inputs", [64, 512, 2048])
def test_the_largest_products_do_not_saturate(inputs: int, rows: int) -> None:
    """All inputs and weights at their limits, of one sign and of alternating signs.

    With eight-bit weights this fails on every CPU without VNNI: half of each sum is cut off.
    """
    x = np.ones((rows, inputs), np.float32)
    x[1::2] = -1
    matrix = np.ones((6, inputs), np.float32)
    matrix[1] = -1
    matrix[2, ::2] = -1
    matrix[3, : inputs // 2] = -1
    expected = x.astype(np.float64) @ matrix.T
    # Every integer is below 2^24, so only the scales round: two factors, each to 6e-8.
    np.testing.assert_allclose(linear(x, matrix), expected, rtol=5e-7, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 5, 32])
@pytest.mark.parametrize(("inputs", "outputs"), [(16, 23), (64, 40), (512, 130)])
def test_a_product_is_that_of_its_integers(
    rows: int, inputs: int, outputs: int, random: np.random.Generator
) -> None:
    x = random.standard_normal((rows, inputs)).astype(np.float32)
    x *= np.exp(3 * random.standard_normal((rows, 1))).astype(np.float32)  # loud and quiet rows
    matrix = random.standard_normal((outputs, inputs)).astype(np.float32)
    bias = random.standard_normal(outputs).astype(np.float32)
    expected = exact(x, matrix) + bias
    # A value that lies between two integers to within rounding may become either; each such one
    # moves a sum by a weight, 64 steps at most. There are a few among a thousand rows, if any.
    step = np.abs(x).max(axis=1, keepdims=True) / ROW_LIMIT * np.abs(matrix).max(axis=1)
    # A sum with its bias is rounded to float32: in a quiet row that is much of a step.
    rounding = np.finfo(np.float32).eps * np.maximum(np.abs(expected), np.abs(bias))
    difference = np.abs(linear(x, matrix, bias) - expected)
    assert (difference <= step * 1.01 + rounding).all()
    assert np.median((difference - rounding) / step) < 1e-4


def test_a_row_of_zeros_gives_the_bias(random: np.random.Generator) -> None:
    """Its scale is 0, and what 0 / 0 becomes must not show. ReLU makes such rows."""
    x = random.standard_normal((3, 32)).astype(np.float32)
    x[1] = 0
    bias = random.standard_normal(7).astype(np.float32)
    matrix = random.standard_normal((7, 32)).astype(np.float32)
    np.testing.assert_array_equal(linear(x, matrix, bias)[1], bias)


def test_a_row_does_not_notice_the_others(random: np.random.Generator) -> None:
    """To the last bit, and next to a row that is a million times louder."""
    x = random.standard_normal((32, 64)).astype(np.float32)
    x[1::2] *= 1e6
    matrix = random.standard_normal((50, 64)).astype(np.float32)
    bias = random.standard_normal(50).astype(np.float32)
    together = linear(x, matrix, bias)
    for row, result in zip(x, together, strict=True):
        np.testing.assert_array_equal(linear(row[None], matrix, bias)[0], result)


def test_words_are_looked_up_in_the_matrix_of_the_output_layer(random: np.random.Generator) -> None:
    matrix = random.standard_normal((9, 8)).astype(np.float32)
    graph = GraphWriter("embed")
    products = Int8Products(graph)
    tokens = graph.input("tokens", np.int64, ["A", "B"])
    embedded = products.embed(tokens, "matrix", matrix, 3.0)
    graph.output("y", embedded, np.float32, ["A", "B", 8])
    words = np.array([[0, 8, 3], [3, 3, 1]])
    expected = 3 * dequantise(quantise_matrix(matrix))[words]
    np.testing.assert_allclose(run(graph, {"tokens": words}), expected, rtol=1e-6)


def test_the_largest_inputs_of_both_signs_come_through_whole(random: np.random.Generator) -> None:
    """Around a zero point there is room on either side; without it, one sign is cut off."""
    x = random.uniform(-1, 1, (8, 16)).astype(np.float32)
    x[:, 0], x[:, 1] = 3, -3
    found = linear(x, np.eye(16, dtype=np.float32))
    np.testing.assert_allclose(found[:, :2], x[:, :2], rtol=1e-6)
    np.testing.assert_array_equal(linear(-x, np.eye(16, dtype=np.float32)), -found)


def test_what_is_negative_is_cut_off_by_the_quantisation(random: np.random.Generator) -> None:
    """ReLU costs nothing, also for a row that has nothing positive, or nothing at all."""
    x = random.standard_normal((6, 32)).astype(np.float32)
    x[1], x[2], x[3] = -np.abs(x[1]), 0, -1e-30
    matrix = random.standard_normal((7, 32)).astype(np.float32)
    expected = np.maximum(x, 0) @ matrix.T
    found = linear(x, matrix, relu=True)
    np.testing.assert_array_equal(found[1:4], 0)
    # 255 steps to the largest input and 64 to the largest weight, over 32 inputs.
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.3)
    ones = np.ones((2, 512), np.float32)
    np.testing.assert_allclose(linear(ones, ones, relu=True), 512, rtol=5e-7)
