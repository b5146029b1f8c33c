"""One or several systems against one reference: every metric, its interval, and the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bothends import __version__
from bothends.metrics.significance import (
    Comparison,
    Interval,
    compare,
    resample,
    sum_by_text,
)
from bothends.metrics.sums import Metric


@dataclass(frozen=True)
class System:
    """A translation of the test set, line by line, and where it comes from."""

    name: str
    origin: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Figure:
    """One metric of one system; `against` is the comparison with the first system."""

    score: float
    interval: Interval | None
    against: Comparison | None


@dataclass(frozen=True)
class SystemScores:
    """All metrics of one system, by name."""

    name: str
    origin: str
    figures: dict[str, Figure]


@dataclass(frozen=True)
class Evaluation:
    """The results of all systems, the first of which is the baseline of the others."""

    reference: str
    lines: int
    #: what the bootstrap draws: lines, or texts that have several references
    texts: int
    samples: int
    seed: int
    metrics: tuple[Metric, ...]
    results: tuple[SystemScores, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "command": "evaluate",
            "bothends": __version__,
            "reference": self.reference,
            "lines": self.lines,
            "texts": self.texts,
            "bootstrap": {"samples": self.samples, "seed": self.seed} if self.samples else None,
            "signatures": {metric.name: metric.signature for metric in self.metrics},
            "systems": [asdict(result) for result in self.results],
        }


def evaluate(
    systems: Sequence[System],
    reference: str,
    references: Sequence[str],
    metrics: Sequence[Metric],
    samples: int = 1000,
    seed: int = 0,
    sources: Sequence[str] | None = None,
) -> Evaluation:
    """Score systems on the lines of `reference`; without bootstrap if `samples` is 0.

    With `sources`, consecutive lines with the same source are references of one text.
    """
    texts = len(references)
    figures: list[dict[str, Figure]] = [{} for _ in systems]
    for metric in metrics:
        statistics = [metric.statistics(system.lines, references) for system in systems]
        scores = [float(metric.score(each.sum(axis=0))) for each in statistics]
        # Side by side, so that all systems are summed over the same samples: (S, K) -> (S, N * K)
        drawn = np.hstack(statistics)
        if sources is not None:
            drawn = sum_by_text(drawn, sources)
            texts = len(drawn)
        # Seeded for each metric: its figures do not depend on which others were asked for.
        sums = np.split(resample(drawn, samples, seed), len(systems), axis=1)
        sampled = [metric.score(each) for each in sums] if samples else []
        for number, score in enumerate(scores):
            interval = Interval.of(sampled[number]) if samples else None
            against = None
            if samples and number:
                against = compare(score - scores[0], sampled[number] - sampled[0])
            figures[number][metric.name] = Figure(score, interval, against)
    results = [
        SystemScores(system.name, system.origin, found)
        for system, found in zip(systems, figures, strict=True)
    ]
    return Evaluation(
        reference, len(references), texts, samples, seed, tuple(metrics), tuple(results)
    )
