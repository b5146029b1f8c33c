"""Numbers in eight bits: how weights are rounded, and why the integer products are exact.

A product of rows `x` and a matrix `W` (outputs, inputs) is computed as

    x W^T  =  s_row * (q - 128) Q^T * s_channel        q in [0, 255],  Q in [-64, 64]

(or `q` for `q - 128` where `x` comes out of a ReLU), with one scale for every row of `x`, found
when it is known, and one for every row of `W`, fixed at export. A row's scale depends on that row
alone, so a sentence's numbers do not depend on its neighbours in the batch.

Weights have seven bits and not eight, because of how a CPU without VNNI multiplies: it adds two
products of a uint8 and an int8 into an int16 that saturates. With all of int8 that happens and
every result is wrong; with |Q| <= 64 the worst pair is 2 * 255 * 64 = 32640 < 2^15, and everything
after it is int32. So every CPU computes the same integers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Largest quantised weight: two of them times 255 must fit an int16.
WEIGHT_LIMIT = 64
#: The quantised value that stands for 0 in a row, and the largest distance from it.
ZERO_POINT = 128
ROW_LIMIT = 127
#: The largest quantised value of a row that has nothing below 0.
POSITIVE_LIMIT = 255


class QuantisedMatrix(NamedTuple):
    """A matrix of which row `i` is about `scales[i] * values[i]`."""

    values: NDArray[np.int8]  # (outputs, inputs)
    scales: NDArray[np.float32]  # (outputs,)


def quantise_matrix(matrix: NDArray[np.float32]) -> QuantisedMatrix:
    """Round each row of a matrix to multiples of a scale of its own."""
    step = np.abs(matrix).max(axis=1, initial=0.0) / np.float32(WEIGHT_LIMIT)
    # A row of zeros is exact at any scale. One whose step would be subnormal, and 0 where a process
    # flushes such numbers, is as good as that.
    scales = np.where(step >= np.finfo(np.float32).tiny, step, 1.0).astype(np.float32)
    values = np.rint(matrix / scales[:, None])
    return QuantisedMatrix(values.astype(np.int8), scales)
