"""The best words by chunks are the best words."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from bothends.engines.onnx.graph import GraphWriter
from bothends.engines.onnx.topk import LARGEST_CHUNK, chunk_size, write_topk


def session(size: int) -> onnxruntime.InferenceSession:
    graph = GraphWriter("topk")
    x = graph.input("x", np.float32, ["M", size])
    best = write_topk(graph, x, size, graph.input("k", np.int64, [1]))
    graph.output("values", best.values, np.float32, ["M", "k"])
    graph.output("places", best.places, np.int64, ["M", "k"])
    return onnxruntime.InferenceSession(
        graph.write("graph.onnx", {}).content, providers=["CPUExecutionProvider"]
    )


@pytest.mark.parametrize("size", [23, 32, 203, 256, 400, 8000, 8009])
def test_it_is_what_sorting_gives(size: int, random: np.random.Generator) -> None:
    """Of sizes that chunks divide and of primes; k from 1 to all, more and less than chunks."""
    graph = session(size)
    x = random.standard_normal((5, size)).astype(np.float32)
    x[1] = np.sort(x[1])  # the best are all in one chunk
    x[2] = np.sort(x[2])[::-1]
    x[3] = -np.inf
    x[3, size // 2] = 0  # almost everything is impossible
    for k in sorted({1, 2, 5, min(17, size), size - 1, size}):
        values, places = graph.run(None, {"x": x, "k": np.array([k])})
        np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :k])
        np.testing.assert_array_equal(np.take_along_axis(x, places, axis=1), values)
        assert all(len(set(row)) == k for row in places.tolist())


@pytest.mark.parametrize(
    ("size", "chunk"), [(8000, 125), (32000, 128), (16000, 128), (8009, None), (23, None), (32, 16)]
)
def test_chunks_divide_the_vocabulary(size: int, chunk: int | None) -> None:
    assert chunk_size(size) == chunk
    assert chunk is None or (size % chunk == 0 and chunk <= LARGEST_CHUNK)
