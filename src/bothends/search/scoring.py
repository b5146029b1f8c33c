"""Forced scores: the logprob that a model gives to targets it did not choose itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bothends.engines.protocol import Engine, FloatArray
from bothends.errors import UsageError
from bothends.order import GenerationOrder, IntArray
from bothends.text.vocabulary import SpecialTokens

State = TypeVar("State")


@dataclass(frozen=True)
class ForcedScore:
    """The logprob of one target, token by token.

    Attributes:
        token_logprobs: Logprob of each token, in text order.
        end_logprob: Logprob of the end symbol.
    """

    token_logprobs: list[float]
    end_logprob: float

    @property
    def logprob(self) -> float:
        """Logprob of the whole target and its end symbol."""
        return sum(self.token_logprobs) + self.end_logprob

    @property
    def length(self) -> int:
        """Number of tokens; the end symbol is not counted."""
        return len(self.token_logprobs)

    @property
    def perplexity(self) -> float:
        """Perplexity per symbol, the end symbol included."""
        return corpus_perplexity([self])


def force_scores(
    engine: Engine[State],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    targets: Sequence[Sequence[int]],
) -> list[ForcedScore]:
    """Score one target, in text order, for each source sentence `(S, N)`, as one batch."""
    if len(source) != len(targets):
        raise UsageError(f"{len(source)} source sentences came with {len(targets)} targets")
    if not targets:
        return []
    slots = order.target_slots(targets, special.end, special.pad)  # (S, T)
    logprobs = engine.force(
        engine.encode(source),
        order.shift(slots, special.start),
        order.whole(slots.shape[1]),
        slots,
    )
    return _scores(order, logprobs, targets)


def force_scores_of_each(
    engine: Engine[State],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    targets: Sequence[Sequence[Sequence[int]]],
) -> list[list[ForcedScore]]:
    """Score several targets for each source sentence `(S, N)`, which is read once."""
    every = [target for some in targets for target in some]
    if not every:
        return [[] for _ in targets]
    sentences = np.repeat(np.arange(len(targets)), [len(some) for some in targets])
    slots = order.target_slots(every, special.end, special.pad)  # (R, T)
    # Rows of one sentence share what was read of it: `force` is for one row each.
    state = engine.select(engine.encode(source), sentences[:, None])
    fed, block = order.shift(slots, special.start), order.whole(slots.shape[1])
    _, logprobs = engine.step_and_force(state, fed, block, 1, slots)
    scores = iter(_scores(order, logprobs, every))
    return [[next(scores) for _ in some] for some in targets]


def _scores(
    order: GenerationOrder, logprobs: FloatArray, targets: Sequence[Sequence[int]]
) -> list[ForcedScore]:
    """Logprobs in generation order `(R, T)`, padding included, as those of targets."""
    return [
        ForcedScore(order.inverse(row[: len(target)].tolist()), float(row[len(target)]))
        for row, target in zip(logprobs.astype(np.float64), targets, strict=True)
    ]


def corpus_perplexity(scores: Iterable[ForcedScore]) -> float:
    """`exp` of the mean negative logprob per symbol over all targets, end symbols included."""
    logprob, symbols = 0.0, 0
    for score in scores:
        logprob += score.logprob
        symbols += score.length + 1
    if not symbols:
        raise UsageError("no targets to compute a perplexity from; score at least one")
    with np.errstate(over="ignore"):  # a hopeless model: infinity says so
        return float(np.exp(-logprob / symbols))
