"""How long targets usually are, to notice translations that lack a part.

The logarithm of the ratio of target to source tokens is nearly normal over the pairs of a corpus,
and narrower the longer the source: its variance is about `spread^2 / source tokens`. A translation
that is shorter than all but one in some thousand such pairs is suspect.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bothends.storage.records import Strict

Counts = NDArray[np.integer]

#: A translation this many standard deviations below the mean is short.
SHORT = 3.5
#: Sources of fewer tokens are never said to have a short translation: "OK." is a good one.
SHORTEST_SOURCE = 10


class LengthStatistics(Strict):
    """Of the pairs that a model learned from, in tokens without end symbols."""

    #: mean of log(target tokens / source tokens)
    mean: float = Field(allow_inf_nan=False)
    #: standard deviation of the same, times the square root of the source's tokens
    spread: float = Field(ge=0, allow_inf_nan=False)
    #: tokens of the longest source
    longest_source: int = Field(ge=1)

    @classmethod
    def of(cls, sources: Counts, targets: Counts) -> LengthStatistics | None:
        """The statistics of some pairs; None if there are too few to have any."""
        real = (sources > 0) & (targets > 0)
        if real.sum() < 2:
            return None
        ratios = np.log(targets[real] / sources[real])
        mean = float(ratios.mean())
        spread = float(np.sqrt(((ratios - mean) ** 2 * sources[real]).mean()))
        return cls(mean=mean, spread=spread, longest_source=int(sources.max()))

    def is_short(self, source: int, target: int) -> bool:
        """Whether a target of so many tokens is much shorter than its source."""
        if source < SHORTEST_SOURCE:
            return False
        ratio = math.log(max(target, 0.5) / source)
        return ratio < self.mean - SHORT * self.spread / math.sqrt(source)
