"""The best few of many words, in a graph.

ONNX Runtime's `TopK` looks at one number at a time, and over a vocabulary that takes longer than
the softmax. The largest number of every chunk is found many at a time, and the best k words cannot
be outside the k chunks with the largest of these: so `TopK` sees a few chunks and no more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bothends.engines.onnx.graph import GraphWriter

#: Words in a chunk: few enough that k chunks are soon searched, many enough that chunks are few.
LARGEST_CHUNK = 128
SMALLEST_CHUNK = 16


class Best(NamedTuple):
    """The largest values of each row and where they are, largest first."""

    values: str  # (M, k)
    places: str  # (M, k)


def write_topk(graph: GraphWriter, x: str, size: int, k: str) -> Best:
    """The largest `k` (1,) of `size` values in every row of `x` (M, size)."""
    chunk = chunk_size(size)
    if chunk is None:
        return Best(*graph.nodes("TopK", x, k, outputs=2, axis=-1))
    chunks = size // chunk

    def whole(value: int | list[int]) -> str:
        return graph.constant(value, np.int64)

    by_chunk = graph.node("Reshape", x, whole([-1, chunks, chunk]))  # (M, chunks, chunk)
    largest = graph.node("ReduceMax", by_chunk, whole([2]), keepdims=0)
    few = graph.node("Min", k, whole([chunks]))
    _, chosen = graph.nodes("TopK", largest, few, outputs=2, axis=-1)  # (M, few)
    indices = graph.node("Unsqueeze", chosen, whole([2]))
    candidates = graph.node("GatherND", by_chunk, indices, batch_dims=1)  # (M, few, chunk)
    candidates = graph.node("Reshape", candidates, whole([0, -1]))  # (M, few * chunk)
    values, places = graph.nodes("TopK", candidates, k, outputs=2, axis=-1)
    # A candidate's place among those chosen says which of them it is in, and where in it.
    of_chunk = graph.node("GatherElements", chosen, graph.node("Div", places, whole(chunk)), axis=1)
    start = graph.node("Mul", of_chunk, whole(chunk))
    return Best(values, graph.node("Add", start, graph.node("Mod", places, whole(chunk))))


def chunk_size(size: int) -> int | None:
    """The largest chunk that divides `size`; None where none does, or there would be one chunk."""
    for chunk in range(min(LARGEST_CHUNK, size // 2), SMALLEST_CHUNK - 1, -1):
        if size % chunk == 0:
            return chunk
    return None
