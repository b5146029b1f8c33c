"""The one path from text to text: vocabulary, search, vocabulary. And from pairs to scores.

A `TextModel` works on one batch. The jobs that `Workers` run make batches of a window of lines or
pairs: `Translating` (`line_job.py`), `Drafting` (`drafting.py`) and `Scoring` (`pair_job.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

from bothends.errors import BothendsError
from bothends.model.lengths import LengthStatistics
from bothends.search.beam import Hypothesis
from bothends.search.generator import Generator
from bothends.search.scoring import ForcedScore
from bothends.text.repeats import without_repeated_words
from bothends.text.vocabulary import Vocabularies
from bothends.translating.translation import Translation, TranslationOptions

Tokens = tuple[int, ...]


class EncodedPair(NamedTuple):
    """A source and its target as token ids."""

    source: Sequence[int]
    target: Sequence[int]


@dataclass(frozen=True)
class TextModel:
    """A generator and its vocabularies: text in, text out, a batch at a time."""

    generator: Generator
    vocabularies: Vocabularies
    #: each batch runs inside this context, e.g. with a number of PyTorch threads
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    #: of the text that the model learned from, if they are known
    lengths: LengthStatistics | None = None

    def longest_source(self, options: TranslationOptions) -> int:
        """Tokens of a source that are translated; learned positions may allow fewer than asked."""
        return self.generator.longest_source(options.max_source_length)

    def longest_sentence(self, options: TranslationOptions) -> int:
        """Tokens of a sentence that is translated whole; a longer one is cut at its clauses."""
        longest = self.longest_source(options)
        learned = None if self.lengths is None else self.lengths.longest_source
        return longest if learned is None else min(longest, learned)

    def translate_from_draft(
        self, source: Tokens, draft: Sequence[int], options: TranslationOptions
    ) -> Translation:
        """The greedy translation of an encoded line, from a draft of it."""
        begin = time.perf_counter()
        cut = source[: self.longest_source(options)]
        with self.context(), _enough_memory([cut], "--max-source-length"):
            drafted = self.generator.search_from_draft(cut, draft, options)
        found = [[drafted.hypothesis]]
        (translation,) = self._translations([source], found, options, begin)
        return replace(translation, steps=drafted.passes, steps_saved=drafted.steps_saved)

    def translate(
        self, sources: Sequence[Tokens], options: TranslationOptions
    ) -> list[Translation]:
        """The translations of encoded lines, as one batch."""
        begin = time.perf_counter()
        longest = self.longest_source(options)
        cut = [source[:longest] for source in sources]
        with self.context(), _enough_memory(cut, "--batch-tokens, --beam or --max-source-length"):
            found = self.generator.search(cut, options)
        return self._translations(sources, found, options, begin)

    def _translations(
        self,
        sources: Sequence[Tokens],
        found: list[list[Hypothesis]],
        options: TranslationOptions,
        begin: float,
    ) -> list[Translation]:
        """What a search that began at `begin` has found, as text."""
        kept = [
            self._without_repeats(source, ranked, options)
            for source, ranked in zip(sources, found, strict=True)
        ]
        seconds = time.perf_counter() - begin
        vocabulary = self.vocabularies.target
        texts = iter(vocabulary.decode([each.tokens for ranked in kept for each, _ in ranked]))
        translations = []
        for source, ranked in zip(sources, kept, strict=True):
            pieces = tuple(self.vocabularies.source.pieces(source))
            best, *others = (
                Translation(
                    text=next(texts),
                    score=hypothesis.score,
                    logprob=hypothesis.logprob,
                    tokens=tuple(hypothesis.tokens),
                    pieces=tuple(vocabulary.pieces(hypothesis.tokens)),
                    steps=hypothesis.steps,
                    finished=hypothesis.finished,
                    truncated=len(source) > self.longest_source(options),
                    time=seconds,
                    source_tokens=source,
                    source_pieces=pieces,
                    short=self.lengths is not None
                    and self.lengths.is_short(len(source), len(hypothesis.tokens)),
                    dropped=dropped,
                )
                for hypothesis, dropped in ranked
            )
            translations.append(replace(best, next_best=tuple(others)))
        return translations

    def score(self, pairs: Sequence[EncodedPair]) -> list[ForcedScore]:
        """The forced scores of encoded pairs, as one batch."""
        longest = [max(pair.source, pair.target, key=len) for pair in pairs]
        with self.context(), _enough_memory(longest, "--batch-tokens or --max-length"):
            return self.generator.score(
                [pair.source for pair in pairs], [pair.target for pair in pairs]
            )

    def score_each(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[Sequence[int]]]
    ) -> list[list[float]]:
        """The logprobs of several encoded targets for each encoded source, as one batch."""
        longest = [max(some, key=len, default=()) for some in targets]
        with self.context(), _enough_memory([*sources, *longest], "--batch-tokens or --beam"):
            scores = self.generator.score_each(sources, targets)
        return [[score.logprob for score in some] for some in scores]

    def _without_repeats(
        self, source: Tokens, hypotheses: list[Hypothesis], options: TranslationOptions
    ) -> list[tuple[Hypothesis, Tokens]]:
        """The hypotheses without repeated words, and the places of these in what was written.

        Of hypotheses that are the same now, the first is kept.
        """
        order, everywhere = self.generator.order, options.deduplicate is True
        as_written: list[tuple[Hypothesis, Tokens]] = [(each, ()) for each in hypotheses]
        if options.deduplicate is False or (order.directions == 1 and not everywhere):
            return as_written
        if not everywhere and self._repeats(source):
            return as_written
        kept: dict[Tokens, tuple[Hypothesis, Tokens]] = {}
        for hypothesis in hypotheses:
            written = hypothesis.tokens
            seams = None if everywhere else order.seams(len(written))
            pieces = self.vocabularies.target.pieces(written)
            indices = without_repeated_words(written, pieces, seams)
            if not everywhere and len(indices) < options.min_length:
                indices = list(range(len(written)))
            tokens = [written[index] for index in indices]
            dropped = tuple(sorted(set(range(len(written))) - set(indices)))
            kept.setdefault(tuple(tokens), (replace(hypothesis, tokens=tokens), dropped))
        return list(kept.values())

    def _repeats(self, source: Tokens) -> bool:
        """Whether a line repeats words itself; its translation may, then."""
        pieces = self.vocabularies.source.pieces(source)
        return len(without_repeated_words(source, pieces)) < len(source)


@contextmanager
def _enough_memory(sentences: Sequence[Sequence[int]], options: str) -> Iterator[None]:
    """Turns a lack of memory for a batch into an error that names the options to lower."""
    try:
        yield
    except MemoryError:
        tokens = len(sentences) * (max(map(len, sentences)) + 1)
        raise BothendsError(
            f"not enough memory for a batch of {tokens:,} tokens; lower {options}"
        ) from None
