"""Signed sinusoidal positions, as a NumPy table that every engine shares."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bothends.order import IntArray


def sinusoid(
    positions: IntArray, width: int, layout: Literal["interleaved", "halves"]
) -> NDArray[np.float64]:
    """The encoding `(..., width)` of integer positions `(...)`.

    Pair `i` is `sin(p / 10000^(2i/width))` and its cosine. A negative position is a real argument:
    its sines change sign and its cosines do not, so that -3 is as near to -2 as 3 is to 2.
    """
    frequencies = 10000.0 ** (-np.arange(0, width, 2) / width)
    angles = np.asarray(positions)[..., None] * frequencies  # (..., width / 2)
    pair = (np.sin(angles), np.cos(angles))
    if layout == "halves":
        return np.concatenate(pair, axis=-1)
    return np.stack(pair, axis=-1).reshape(*angles.shape[:-1], width)
