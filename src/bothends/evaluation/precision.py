"""What a lower precision costs: the outputs of one engine against those of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothends.engines.protocol import Engine, pad_sources
from bothends.order import GenerationOrder, IntArray
from bothends.search.beam import beam_search
from bothends.search.options import SearchOptions
from bothends.search.scoring import force_scores
from bothends.text.vocabulary import SpecialTokens
from bothends.translation import TranslationOptions

#: Sentences that are translated together.
BATCH = 16

Tokens = list[int]


@dataclass(frozen=True)
class Agreement:
    """How near two engines are on a sample."""

    outputs: list[Tokens]
    reference_outputs: list[Tokens]
    #: logprob of each symbol of the reference's outputs: the engine's minus the reference's
    differences: list[float]

    @property
    def identical(self) -> float:
        """Share of outputs that are the same, token for token."""
        pairs = zip(self.outputs, self.reference_outputs, strict=True)
        return float(np.mean([one == other for one, other in pairs]))

    @property
    def mean_difference(self) -> float:
        """Per symbol; below 0 where the engine likes the reference's outputs less."""
        return float(np.mean(self.differences))

    @property
    def mean_distance(self) -> float:
        """Per symbol, whatever its sign."""
        return float(np.mean(np.abs(self.differences)))


def compare(
    engine: Engine[Any],
    reference: Engine[Any],
    order: GenerationOrder,
    special: SpecialTokens,
    sources: Sequence[IntArray],
    beam: int,
) -> Agreement:
    """Translate `sources`, each closed by its end symbol, with both engines."""
    outputs: list[Tokens] = []
    reference_outputs: list[Tokens] = []
    differences: list[float] = []
    for start in range(0, len(sources), BATCH):
        batch = pad_sources(sources[start : start + BATCH], special.pad)
        options = SearchOptions(
            beam=beam, max_length=TranslationOptions().longest(batch.shape[1] - 1)
        )
        mine, theirs = (
            [best[0].tokens for best in beam_search(each, order, special, batch, options)]
            for each in (engine, reference)
        )
        outputs += mine
        reference_outputs += theirs
        scores, reference_scores = (
            force_scores(each, order, special, batch, theirs) for each in (engine, reference)
        )
        for score, reference_score in zip(scores, reference_scores, strict=True):
            symbols = [*score.token_logprobs, score.end_logprob]
            expected = [*reference_score.token_logprobs, reference_score.end_logprob]
            differences += np.subtract(symbols, expected).tolist()
    return Agreement(outputs, reference_outputs, differences)
