"""Token ids in, token ids out: what everything that runs a model calls.

    generator = Generator(engine, order, special)
    generator.search([[12, 7, 31], [9]], SearchOptions(beam=4))

Sentences come and go without an end symbol and without padding. Both are added here, in one place,
and the longest target of each sentence follows from its own source and not from its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bothends.engines.protocol import Engine, pad_sources
from bothends.order import GenerationOrder, IntArray
from bothends.search.batch import search_batch
from bothends.search.beam import Hypothesis
from bothends.search.draft import DraftedHypothesis, search_from_draft
from bothends.search.fill import Allowed, FilledFrame, Frame, fill_frames
from bothends.search.options import SearchOptions
from bothends.search.scoring import ForcedScore, force_scores
from bothends.text.vocabulary import SpecialTokens

#: The ids of one sentence.
Sentence = Sequence[int] | IntArray


@dataclass(frozen=True)
class Generator:
    """A network that runs, and the order in which it generates."""

    engine: Engine[Any]
    order: GenerationOrder
    special: SpecialTokens

    def search(self, sources: Sequence[Sentence], options: SearchOptions) -> list[list[Hypothesis]]:
        """The `n_best` hypotheses of each source, best first, as one batch."""
        if not len(sources):
            return []
        return search_batch(self.engine, self.order, self.special, self.batch(sources), options)

    def score(
        self, sources: Sequence[Sentence], targets: Sequence[Sequence[int]]
    ) -> list[ForcedScore]:
        """The logprob of one target for each source, as one batch."""
        if not len(sources):
            return []
        return force_scores(self.engine, self.order, self.special, self.batch(sources), targets)

    def fill(
        self,
        source: Sentence,
        frames: Iterable[Frame],
        options: SearchOptions,
        allowed: Allowed | None = None,
        n_best: int | None = None,
    ) -> list[FilledFrame]:
        """The best ways to fill any of the frames of one source, as one batch."""
        batch, model = self.batch([source]), (self.engine, self.order, self.special)
        (found,) = fill_frames(*model, batch, frames, options, allowed, n_best)
        return found

    def search_from_draft(
        self, source: Sentence, draft: Sequence[int], options: SearchOptions
    ) -> DraftedHypothesis:
        """The greedy hypothesis of one source, which a draft can only make quicker."""
        model = (self.engine, self.order, self.special)
        return search_from_draft(*model, self.batch([source]), draft, options)

    def batch(self, sources: Sequence[Sentence]) -> IntArray:
        """Sources as an engine takes them: each with its end symbol, then padding."""
        return pad_sources([[*source, self.special.end] for source in sources], self.special.pad)
