"""Token ids in, token ids out: what everything that runs a model calls.

    generator = Generator(engine, order, special)
    generator.search([[12, 7, 31], [9]], SearchOptions(beam=4))

Sentences come and go without an end symbol and without padding. Both are added here, in one place
(and whatever else a converted model has around a text),
and the longest target of each sentence follows from its own source and not from its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bothends.engines.protocol import Engine, RestrictedSteps, pad_sources
from bothends.errors import BothendsError
from bothends.model.config import ModelConfig
from bothends.model.shortlist import Shortlist
from bothends.order import GenerationOrder, IntArray
from bothends.search.batch import search_batch
from bothends.search.beam import Hypothesis
from bothends.search.options import SearchOptions
from bothends.search.scoring import ForcedScore, force_scores, force_scores_of_each
from bothends.text.vocabulary import SpecialTokens

if TYPE_CHECKING:
    from bothends.search.draft import DraftedHypothesis
    from bothends.search.fill import Allowed, FilledFrame, Frame

#: Slots of targets that are scored together: logits of all words are held for each of them.
SLOTS_TOGETHER = 512
#: The ids of one sentence.
Sentence = Sequence[int] | IntArray


@dataclass(frozen=True)
class Generator:
    """A network that runs, and the order in which it generates."""

    engine: Engine[Any]
    order: GenerationOrder
    special: SpecialTokens
    #: of a model that frames its sources in a way of its own, or has learned positions
    config: ModelConfig | None = None
    #: which words the search may use; scores and filled gaps are of all words
    shortlist: Shortlist | None = None

    def __post_init__(self) -> None:
        if self.shortlist is not None and isinstance(self.engine, RestrictedSteps):
            self.engine.share_words(self.shortlist.always)

    def search(self, sources: Sequence[Sentence], options: SearchOptions) -> list[list[Hypothesis]]:
        """The `n_best` hypotheses of each source, best first, as one batch."""
        if not len(sources):
            return []
        model = (self.engine, self.order, self.special)
        allowed = None
        if self.shortlist is not None:
            # Each from its own source: nothing depends on who else is in the batch.
            allowed = [self.shortlist.allowed(source) for source in sources]
        limits = self._limits(sources, options)
        return search_batch(*model, self.batch(sources), options, limits, allowed)

    def score(
        self, sources: Sequence[Sentence], targets: Sequence[Sequence[int]]
    ) -> list[ForcedScore]:
        """The logprob of one target for each source, as one batch."""
        if not len(sources):
            return []
        return force_scores(self.engine, self.order, self.special, self.batch(sources), targets)

    def score_each(
        self, sources: Sequence[Sentence], targets: Sequence[Sequence[Sequence[int]]]
    ) -> list[list[ForcedScore]]:
        """The logprobs of several targets for each source, a few sources at a time."""
        model = (self.engine, self.order, self.special)
        longest = max((len(target) for some in targets for target in some), default=0) + 1
        most = max(map(len, targets), default=0)
        together = max(1, SLOTS_TOGETHER // (longest * max(most, 1)))
        scores: list[list[ForcedScore]] = []
        for first in range(0, len(sources), together):
            some = slice(first, first + together)
            scores += force_scores_of_each(*model, self.batch(sources[some]), targets[some])
        return scores

    def fill(
        self,
        source: Sentence,
        frames: Iterable[Frame],
        options: SearchOptions,
        allowed: Allowed | None = None,
        n_best: int | None = None,
    ) -> list[FilledFrame]:
        """The best ways to fill any of the frames of one source, as one batch."""
        from bothends.search.fill import fill_frames

        batch, model = self.batch([source]), (self.engine, self.order, self.special)
        (found,) = fill_frames(*model, batch, frames, options, allowed, n_best)
        return found

    def search_from_draft(
        self, source: Sentence, draft: Sequence[int], options: SearchOptions
    ) -> DraftedHypothesis:
        """The greedy hypothesis of one source, which a draft can only make quicker."""
        from bothends.search.draft import search_from_draft

        model = (self.engine, self.order, self.special)
        limits = self._limits([source], options)
        allowed = None if self.shortlist is None else self.shortlist.allowed(source)
        return search_from_draft(*model, self.batch([source]), draft, options, limits, allowed)

    def limit(self, source_length: int, options: SearchOptions) -> int:
        """The most tokens that the target of a source with this many tokens may have."""
        limit = options.limit(source_length)
        longest = None if self.config is None else self.config.longest_target
        return limit if longest is None else min(limit, longest)

    def longest_source(self, asked: int) -> int:
        """Tokens of a source that are read: as many as asked, or as positions were learned for."""
        longest = None if self.config is None else self.config.longest_source
        return asked if longest is None else min(asked, longest)

    def batch(self, sources: Sequence[Sentence]) -> IntArray:
        """Sources as an engine takes them: each with its end symbol, then padding.

        One that is too long is an error: who wants the beginning of it cuts it, and says so.
        """
        if self.config is None:
            framed = [[*source, self.special.end] for source in sources]
        else:
            longest, most = self.config.longest_source, max(map(len, sources), default=0)
            if longest is not None and most > longest:
                raise BothendsError(
                    f"a source of {most} tokens, but the model has learned positions for "
                    f"{longest}; shorten it"
                )
            framed = [self.config.framed(source) for source in sources]
        return pad_sources(framed, self.special.pad)

    def _limits(self, sources: Sequence[Sentence], options: SearchOptions) -> IntArray:
        """The most tokens that each target may have."""
        return np.array([self.limit(len(source), options) for source in sources])
