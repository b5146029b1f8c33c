"""Signed sinusoidal positions, as a NumPy table that every engine shares."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bothends.model.config import Architecture
from bothends.order import IntArray

Layout = Literal["interleaved", "halves", "tensor2tensor"]
Stored = Literal["float16", "bfloat16"]


def position_encodings(positions: IntArray, config: Architecture) -> NDArray[np.float64]:
    """The encoding `(..., width)` of signed positions `(...)` in a network with sinusoids.

    An offset counts away from zero in both directions, so that -3 remains the mirror image of 3.
    """
    signed = np.asarray(positions)
    away = np.where(signed < 0, -config.position_offset, config.position_offset)
    exact = sinusoid(signed + away, config.width, config.sinusoid)
    if config.sinusoid_precision == "exact":
        return exact
    return rounded(exact.astype(np.float32), config.sinusoid_precision).astype(np.float64)


def rounded(encodings: NDArray[np.float32], precision: Stored) -> NDArray[np.float32]:
    """What is left of a table after it was stored in fewer bits."""
    if precision == "float16":
        return encodings.astype(np.float16).astype(np.float32)
    # bfloat16 is the upper half of the bits; ties go to the even one
    bits = encodings.view(np.uint32)
    kept = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (kept & np.uint32(0xFFFF0000)).view(np.float32)


def sinusoid(positions: IntArray, width: int, layout: Layout) -> NDArray[np.float64]:
    """The encoding `(..., width)` of integer positions `(...)`.

    Pair `i` is `sin(p / 10000^(2i/width))` and its cosine. A negative position is a real argument:
    its sines change sign and its cosines do not, so that -3 is as near to -2 as 3 is to 2. In
    `tensor2tensor` the exponent is `i/(width/2 - 1)`.
    """
    pairs = np.arange(width // 2)
    exponents = pairs / max(1, width // 2 - 1) if layout == "tensor2tensor" else 2 * pairs / width
    frequencies = 10000.0**-exponents
    angles = np.asarray(positions)[..., None] * frequencies  # (..., width / 2)
    pair = (np.sin(angles), np.cos(angles))
    if layout != "interleaved":
        return np.concatenate(pair, axis=-1)
    return np.stack(pair, axis=-1).reshape(*angles.shape[:-1], width)
