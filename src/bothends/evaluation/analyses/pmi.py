"""How much the words of one step depend on each other (the paper's appendix B).

A model that writes two words at once takes their probabilities to be independent, p(a) p(b); the
model of the same order that writes one at a time has p(a) p(b | a). So the log perplexity of the
first minus that of the second estimates the words' pointwise mutual information, on average and per
symbol. From left to right that is `1x2` against `1x1`, from both ends `2x1` against
`2x1+autoregressive`.

All logs are natural. The 0.235 and -0.014 that the paper prints fit logs of base 10: log10 of its
perplexities gives 0.2356 and -0.0127, which is the same only within their rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bothends import __version__
from bothends.errors import BothendsError
from bothends.metrics.significance import Comparison, Interval, compare, resample
from bothends.metrics.sums import Numbers
from bothends.order import GenerationOrder
from bothends.progress import progress
from bothends.search.scoring import ForcedScore
from bothends.tables import Table
from bothends.translating.load_options import LoadOptions


@dataclass(frozen=True)
class ScoredModel:
    """A model, and the logprob and symbols (end symbols included) of each target."""

    name: str
    order: GenerationOrder
    #: (S, 2): logprob, symbols
    statistics: Numbers

    @classmethod
    def of(cls, name: str, order: GenerationOrder, scores: Sequence[ForcedScore]) -> ScoredModel:
        rows = [[score.logprob, score.length + 1] for score in scores]
        return cls(name, order, np.array(rows, np.float64).reshape(len(rows), 2))


def measure(
    models: Sequence[Path], sources: Sequence[str], targets: Sequence[str], loading: LoadOptions
) -> list[ScoredModel]:
    """The logprobs that each model gives to the targets."""
    found = []
    for directory in models:
        with (
            loading.load(directory) as translator,
            progress(str(directory), "pairs", len(sources)) as advance,
        ):
            scores = []
            for score in translator.stream_scores(zip(sources, targets, strict=True)):
                scores.append(score)
                advance(1)
        found.append(ScoredModel.of(str(directory), translator.description.order, scores))
    return found


@dataclass(frozen=True)
class Perplexity:
    """Of one model, per symbol."""

    name: str
    order: str
    perplexity: float
    interval: Interval | None
    log_perplexity: float
    logprob: float
    symbols: int


@dataclass(frozen=True)
class Estimate:
    """Mutual information, in nats, of words that one model writes at once and another in turn."""

    parallel: str
    in_turn: str
    #: `left to right` or `both ends`
    direction: str
    pmi: Comparison | None
    nats: float


@dataclass(frozen=True)
class Analysis:
    """Perplexities, and an estimate for each pair of models that makes one."""

    sentences: int
    samples: int
    seed: int
    perplexities: tuple[Perplexity, ...]
    estimates: tuple[Estimate, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "command": "pmi",
            "bothends": __version__,
            "logs": "natural",
            **asdict(self),
        }


def analyse(models: Sequence[ScoredModel], samples: int = 1000, seed: int = 0) -> Analysis:
    """Perplexities and estimates with bootstrap intervals; without those if `samples` is 0."""
    statistics = np.hstack([model.statistics for model in models])  # (S, 2) each -> (S, 2 * M)
    totals = [_log_perplexity(model.statistics.sum(axis=0)) for model in models]
    # The same sentences for all models: (samples, 2 * M) -> (samples, 2) for each
    sums = np.split(resample(statistics, samples, seed), len(models), axis=1)
    sampled = [_log_perplexity(each) for each in sums]
    perplexities = tuple(
        Perplexity(
            name=model.name,
            order=str(model.order),
            perplexity=math.exp(total),
            interval=Interval.of(np.exp(draws)) if samples else None,
            log_perplexity=float(total),
            logprob=float(model.statistics[:, 0].sum()),
            symbols=int(model.statistics[:, 1].sum()),
        )
        for model, total, draws in zip(models, totals, sampled, strict=True)
    )
    estimates = []
    for number, model in enumerate(models):
        for other, alone in enumerate(models):
            if alone.order == model.order.one_at_a_time != model.order:
                _check_symbols(model, alone)
                nats = float(totals[number] - totals[other])
                estimates.append(
                    Estimate(
                        parallel=model.name,
                        in_turn=alone.name,
                        direction=_direction(model.order),
                        pmi=compare(nats, sampled[number] - sampled[other]) if samples else None,
                        nats=nats,
                    )
                )
    return Analysis(len(statistics), samples, seed, perplexities, tuple(estimates))


def _check_symbols(model: ScoredModel, other: ScoredModel) -> None:
    """Complain about models with different symbols: their perplexities cannot be compared."""
    ours, theirs = model.statistics[:, 1], other.statistics[:, 1]
    for number in np.flatnonzero(ours != theirs)[:1]:
        raise BothendsError(
            f"{model.name} and {other.name} have different vocabularies, so that perplexities do "
            f"not compare: target {number + 1} is {ours[number]:.0f} symbols for the one and "
            f"{theirs[number]:.0f} for the other"
        )


def tables(analysis: Analysis) -> list[Table]:
    """Perplexities, and the estimates if there are any."""
    found = [
        Table(
            f"Perplexity of {analysis.sentences:,} targets",
            ("model", "order", "perplexity", "log perplexity", "logprob", "symbols"),
            tuple(
                (
                    each.name,
                    each.order,
                    f"{each.perplexity:.3f}" + _interval(each.interval, ".3f"),
                    f"{each.log_perplexity:.4f}",
                    f"{each.logprob:.1f}",
                    f"{each.symbols:,}",
                )
                for each in analysis.perplexities
            ),
        )
    ]
    if analysis.estimates:
        lines = tuple(
            (
                each.direction,
                each.parallel,
                each.in_turn,
                f"{each.nats:+.4f}" + _interval(each.pmi.interval if each.pmi else None, "+.4f"),
            )
            for each in analysis.estimates
        )
        headings = ("direction", "at once", "in turn", "PMI, nats per symbol")
        found.append(Table("Mutual information of the words of a step", headings, lines))
    return found


def _log_perplexity(sums: Numbers) -> Numbers:
    """(..., 2) -> (...)"""
    value: Numbers = -sums[..., 0] / sums[..., 1]
    return value


def _direction(order: GenerationOrder) -> str:
    names = {1: "left to right", 2: "both ends"}
    return names.get(order.directions, f"{order.directions} directions")


def _interval(interval: Interval | None, form: str) -> str:
    return "" if interval is None else f" ({interval.low:{form}} to {interval.high:{form}})"
