"""What a difference between two systems is worth: the paired bootstrap (Koehn 2004).

A test set is one sample of the text that a system may meet. Drawing as many sentences from it, with
replacement, gives another; the spread of a score over many such samples is its uncertainty. All
systems are scored on the same samples, so what makes a sample hard or easy cancels in differences.

Some test sets have several references of one text, line after line with the same source. What is
drawn then is the text: its lines depend on each other, and would make intervals too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bothends.metrics.sums import Numbers


@dataclass(frozen=True)
class Interval:
    """Where 95% of the samples are."""

    low: float
    high: float

    @classmethod
    def of(cls, scores: Numbers) -> Interval:
        low, high = np.percentile(scores, [2.5, 97.5])
        return cls(float(low), float(high))


@dataclass(frozen=True)
class Comparison:
    """A system against a baseline: its score minus the baseline's."""

    difference: float
    interval: Interval
    p: float


def resample(statistics: Numbers, samples: int, seed: int) -> Numbers:
    """Sums of statistics over `samples` bootstrap samples of sentences, `(S, K) -> (samples, K)`.

    Equal seeds draw equal sentences. One sample at a time: all at once would take a matrix of
    samples times sentences.
    """
    generator = np.random.default_rng(seed)
    sentences = len(statistics)
    sums = np.empty((samples, statistics.shape[1]))
    for row in sums:
        drawn = generator.integers(sentences, size=sentences)
        row[:] = np.bincount(drawn, minlength=sentences) @ statistics
    return sums


def sum_by_text(statistics: Numbers, sources: Sequence[str]) -> Numbers:
    """The statistics of whole texts, `(S, K) -> (T, K)`: lines in a row that have one source."""
    begins = [
        number
        for number, source in enumerate(sources)
        if number == 0 or source != sources[number - 1]
    ]
    return np.add.reduceat(statistics, begins, axis=0)


def compare(difference: float, differences: Numbers) -> Comparison:
    """A difference on the whole test set, given those on bootstrap samples.

    Koehn counts the samples in which the better system is not better. The p-value here is twice
    their share, because which one is better was not known before: below 0.05, the interval lies on
    one side of 0. One is added to the count and to the samples, so that p is never 0.
    """
    contrary = int(np.sum(differences * np.sign(difference) <= 0))
    p = min(1.0, 2 * (contrary + 1) / (len(differences) + 1))
    return Comparison(difference, Interval.of(differences), p)
