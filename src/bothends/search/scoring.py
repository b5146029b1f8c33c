"""Forced scores: the logprob that a model gives to targets it did not choose itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bothends.engines.protocol import Engine
from bothends.errors import UsageError
from bothends.order import GenerationOrder, IntArray
from bothends.text.vocabulary import SpecialTokens

State = TypeVar("State")


@dataclass(frozen=True)
class ForcedScore:
    """The logprob of one target, token by token."""

    token_logprobs: list[float]  # text order
    end_logprob: float

    @property
    def logprob(self) -> float:
        """Of the whole target and its end symbol."""
        return sum(self.token_logprobs) + self.end_logprob

    @property
    def length(self) -> int:
        """Tokens of text; the end symbol is not counted."""
        return len(self.token_logprobs)

    @property
    def perplexity(self) -> float:
        """Per symbol, the end symbol included: an empty target has one too."""
        return corpus_perplexity([self])


def force_scores(
    engine: Engine[State],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    targets: Sequence[Sequence[int]],
    sources: Sequence[int] | None = None,
) -> list[ForcedScore]:
    """Score targets, in text order, as one batch: one for each source sentence `(S, N)`.

    Or several for some: then `sources` has the number of each target's source, which is read once.
    """
    if len(source if sources is None else sources) != len(targets):
        raise UsageError(f"{len(source)} source sentences came with {len(targets)} targets")
    if not targets:
        return []
    slots = order.target_slots(targets, special.end, special.pad)  # (S, T)
    state = engine.encode(source)
    if sources is not None:
        state = engine.select(state, np.array(sources, dtype=np.int64)[:, None])
    logprobs = engine.force(
        state,
        order.shift(slots, special.start),
        order.whole(slots.shape[1]),
        slots,
    ).astype(np.float64)
    return [
        ForcedScore(order.inverse(row[: len(target)].tolist()), float(row[len(target)]))
        for row, target in zip(logprobs, targets, strict=True)
    ]


def corpus_perplexity(scores: Iterable[ForcedScore]) -> float:
    """`exp` of the mean negative logprob per symbol over all targets, end symbols included."""
    logprob, symbols = 0.0, 0
    for score in scores:
        logprob += score.logprob
        symbols += score.length + 1
    if not symbols:
        raise UsageError("the perplexity of no targets at all is undefined; score at least one")
    with np.errstate(over="ignore"):  # a hopeless model: infinity says so
        return float(np.exp(-logprob / symbols))
