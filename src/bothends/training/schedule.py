"""The learning rate of an update: a linear warm-up, then a slow decay."""

from __future__ import annotations

import math

from bothends.training.recipe import Optimiser


def learning_rate(update: int, optimiser: Optimiser, width: int, updates: int | None) -> float:
    """The learning rate of update number `update`, counted from 1.

    `peak * min(update / warmup, sqrt(warmup / update))`, which with the default peak
    `(width * warmup) ** -0.5` is the schedule of Vaswani et al. (2017). The cosine falls to zero
    at `updates`, the end of the run.
    """
    warmup = optimiser.warmup
    peak = optimiser.learning_rate or (width * warmup) ** -0.5
    if update <= warmup:
        return peak * update / warmup
    if optimiser.schedule == "inverse-square-root":
        return peak * math.sqrt(warmup / update)
    assert updates is not None  # the recipe has been checked
    done = min(1.0, (update - warmup) / (updates - warmup))
    return peak * 0.5 * (1.0 + math.cos(math.pi * done))
