"""Scores of given targets: the part of a translator that writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bothends.errors import UsageError
from bothends.search.options import check_whole_number
from bothends.search.scoring import ForcedScore
from bothends.text.arguments import SOURCES, TARGETS, check_lines, check_pair
from bothends.translating.pair_job import NumberedPair, Scoring
from bothends.translating.streaming import Workers, split_into_windows
from bothends.translating.text_model import TextModel
from bothends.translating.translation import BATCH_TOKENS, MAX_SCORED_LENGTH

if TYPE_CHECKING:
    from collections.abc import Generator as Stream


class Scorer:
    """A model with its workers. `Translator` is one, and sets the fields."""

    threads: int
    _model: TextModel
    _workers: Workers

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str | Sequence[int]],
        *,
        max_length: int = MAX_SCORED_LENGTH,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[ForcedScore]:
        """The log probability of each target, given its source.

        A target is text, or the `tokens` of a `Translation`: text can be cut into tokens in more
        than one way, and is scored as the vocabulary cuts it. A source or target of more than
        `max_length` tokens is an error, because the score of a part of it would mean little.
        """
        sources = list(check_lines(SOURCES, sources))
        targets = list(check_lines(TARGETS, targets, or_tokens=True))
        check_whole_number("batch_tokens", batch_tokens, 1)
        if len(sources) != len(targets):
            raise UsageError(f"{len(sources)} sources, but {len(targets)} targets: expected pairs")
        pairs = [
            NumberedPair(number, source, target)
            for number, (source, target) in enumerate(zip(sources, targets, strict=True), start=1)
        ]
        job = Scoring(self._model, max_length, self.threads)
        return list(self._workers.stream([pairs] if pairs else [], job, batch_tokens))

    def stream_scores(
        self,
        pairs: Iterable[tuple[str, str | Sequence[int]]],
        *,
        max_length: int = MAX_SCORED_LENGTH,
        batch_tokens: int = BATCH_TOKENS,
    ) -> Stream[ForcedScore, None, None]:
        """As `score`, pair by pair, in memory that does not grow with their number."""
        check_whole_number("batch_tokens", batch_tokens, 1)
        numbered = (
            NumberedPair(number, *check_pair(number, pair))
            for number, pair in enumerate(pairs, start=1)
        )
        job = Scoring(self._model, max_length, self.threads)
        return self._workers.stream(split_into_windows(numbered), job, batch_tokens)
