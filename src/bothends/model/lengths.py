"""How long targets usually are, to notice translations that lack a part.

The logarithm of the ratio of target to source tokens is nearly normal over the pairs of a corpus,
and narrower the longer the source: its variance is about `spread^2 / source tokens`. A translation
that is shorter than all but one in some thousand such pairs is suspect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from bothends.storage.checked import Bounds, Checked

Counts = NDArray[np.integer]

#: A translation this many standard deviations below the mean is short.
SHORT = 3.5
#: Sources of fewer tokens are never said to have a short translation: "OK." is a good one.
SHORTEST_SOURCE = 10


@dataclass(frozen=True, kw_only=True)
class LengthStatistics(Checked):
    """Of the pairs that a model learned from, in tokens without end symbols."""

    #: mean of log(target tokens / source tokens)
    mean: float
    #: standard deviation of the same, times the square root of the source's tokens
    spread: Annotated[float, Bounds(least=0)]
    #: tokens of the longest source; `None` where the text is not all that it learned from
    longest_source: Annotated[int, Bounds(least=1)] | None = None

    @classmethod
    def of(cls, sources: Counts, targets: Counts) -> LengthStatistics | None:
        """The statistics of some pairs; None if there are too few to have any."""
        return cls.over([(sources, targets, 1)])

    @classmethod
    def over(cls, parts: Iterable[tuple[Counts, Counts, int]]) -> LengthStatistics | None:
        """The statistics of pairs in parts, each with how often its pairs count."""
        count = longest = 0
        # sums over pairs: source tokens, and the ratios by degree, as they are and by source tokens
        total, of_ratios, weighted, squared = 0.0, 0.0, 0.0, 0.0
        for sources, targets, times in parts:
            real = (sources > 0) & (targets > 0)
            source, ratios = sources[real], np.log(targets[real] / sources[real])
            count += times * len(source)
            longest = max(longest, int(sources.max(initial=0)))
            total += times * float(source.sum(dtype=np.float64))
            of_ratios += times * float(ratios.sum())
            weighted += times * float((ratios * source).sum())
            squared += times * float((ratios**2 * source).sum())
        if count < 2:
            return None
        mean = of_ratios / count
        variance = (squared - 2 * mean * weighted + mean**2 * total) / count
        return cls(mean=mean, spread=math.sqrt(max(variance, 0.0)), longest_source=longest)

    def is_short(self, source: int, target: int) -> bool:
        """Whether a target of so many tokens is much shorter than its source."""
        if source < SHORTEST_SOURCE:
            return False
        ratio = math.log(max(target, 0.5) / source)
        return ratio < self.mean - SHORT * self.spread / math.sqrt(source)
