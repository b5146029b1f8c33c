"""The one path from text to text: vocabulary, search, vocabulary. And from pairs to scores.

A `TextModel` works on one batch. `Translating` and `Scoring` are jobs that `Workers` run: they cut
a window of lines or pairs into tasks, and hand batches to the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

from bothends.errors import BothendsError, UsageError
from bothends.model.lengths import LengthStatistics
from bothends.search.beam import Hypothesis
from bothends.search.generator import Generator
from bothends.search.scoring import ForcedScore
from bothends.text.clauses import cut_at_clauses
from bothends.text.languages import short_code
from bothends.text.repeats import without_repeated_words
from bothends.text.sentences import Span, split_sentences
from bothends.text.vocabulary import Vocabularies, most_tokens
from bothends.translating.streaming import WindowTasks
from bothends.translating.translation import EMPTY, Translation, TranslationOptions

Tokens = tuple[int, ...]

#: Languages whose sentences follow each other without a space.
WITHOUT_SPACES = frozenset({"ja", "zh", "yue", "th", "lo", "km", "my"})


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


@dataclass(frozen=True)
class Translating:
    """The job of translating lines. Lines that are the same to the model are one task."""

    model: TextModel
    options: TranslationOptions
    #: that encode a large window
    threads: int = 1
    source_language: str | None = None
    target_language: str | None = None

    def prepare(self, window: Sequence[str]) -> WindowTasks[Tokens]:
        parts = [self.sentences(line) for line in window]
        texts = [text for sentences in parts for text in sentences]
        encoded = iter(self.model.vocabularies.source.encode(texts, self.threads))
        numbers: dict[Tokens, int] = {}  # lists and logs are full of equal lines
        tasks_of_line = [
            [
                numbers.setdefault(tuple(ids), len(numbers))
                # A vocabulary may have nothing for a text, even if the text has characters.
                for text, ids in zip(sentences, encoded, strict=False)
                if text.strip() and ids
            ]
            for sentences in parts
        ]
        limit = self.model.longest_source(self.options)
        # A target that has to be long takes as much memory as one of a long source.
        least = self.options.min_length
        sizes = [max(min(len(source), limit), least) + 1 for source in numbers]
        return WindowTasks(list(numbers), sizes, tasks_of_line)

    def run(self, tasks: Sequence[Tokens]) -> list[Translation]:
        return self.model.translate(tasks, self.options)

    def join(self, results: Sequence[Translation]) -> Translation:
        if not results:
            return EMPTY
        return results[0] if len(results) == 1 else self._join(results)

    def _join(self, results: Sequence[Translation]) -> Translation:
        """The translation of a line from those of its sentences."""
        # Of a rank that a sentence does not have, its best.
        ranks = max(len(each.hypotheses) for each in results)
        ranked = [
            [each.hypotheses[rank if rank < len(each.hypotheses) else 0] for each in results]
            for rank in range(ranks)
        ]
        best, *others = (
            join_sentences(sentences, self.options, self.target_language) for sentences in ranked
        )
        return replace(best, next_best=tuple(others))

    def sentences(self, line: str) -> list[str]:
        """The sentences of a line; one that is too long for the model is cut at its clauses."""
        if not self.options.split_sentences:
            return [line]
        limit = self.model.longest_sentence(self.options)
        spans = [
            part
            for span in split_sentences(line, self.source_language)
            for part in self._clauses(line, span, limit)
        ]
        return [line[start:end] for start, end in spans] if len(spans) > 1 else [line]

    def _clauses(self, line: str, span: Span, limit: int) -> list[Span]:
        def count(text: str) -> int:
            return len(self.model.vocabularies.source.encode([text])[0])

        text = line[span.start : span.end]
        if most_tokens(text) <= limit or count(text) <= limit:
            return [span]
        return cut_at_clauses(line, span, count, limit)


def join_sentences(
    sentences: Sequence[Translation], options: TranslationOptions, language: str | None
) -> Translation:
    """One translation of several, in order: figures are sums, and the score is of all tokens."""
    spaced = language is None or short_code(language) not in WITHOUT_SPACES
    logprob = sum(each.logprob for each in sentences)
    length = sum(len(each.tokens) for each in sentences)
    return Translation(
        text=(" " if spaced else "").join(each.text for each in sentences),
        score=options.score(logprob, length),
        logprob=logprob,
        tokens=tuple(token for each in sentences for token in each.tokens),
        pieces=tuple(piece for each in sentences for piece in each.pieces),
        steps=sum(each.steps for each in sentences),
        steps_saved=sum(each.steps_saved for each in sentences),
        finished=all(each.finished for each in sentences),
        truncated=any(each.truncated for each in sentences),
        time=sum(each.time for each in sentences),
        source_tokens=tuple(token for each in sentences for token in each.source_tokens),
        source_pieces=tuple(piece for each in sentences for piece in each.source_pieces),
        sentences=sum(each.sentences for each in sentences),
        short=any(each.short for each in sentences),
    )


class EncodedPair(NamedTuple):
    """A source and its target as token ids."""

    source: Sequence[int]
    target: Sequence[int]


class NumberedPair(NamedTuple):
    """A source and its target, text or ids, with its number for messages, counted from 1."""

    number: int
    source: str
    target: str | Sequence[int]


@dataclass(frozen=True)
class Scoring:
    """The job of scoring pairs."""

    model: TextModel
    #: a source or target of more tokens is an error
    max_length: int
    threads: int = 1

    def prepare(self, window: Sequence[NumberedPair]) -> WindowTasks[EncodedPair]:
        vocabularies, size = self.model.vocabularies, self.model.vocabularies.target.size
        sources = vocabularies.source.encode([pair.source for pair in window], self.threads)
        texts = [pair.target if isinstance(pair.target, str) else "" for pair in window]
        encoded = vocabularies.target.encode(texts, self.threads)
        learned = self.model.generator.longest_source(self.max_length)
        tasks = []
        for pair, source, of_text in zip(window, sources, encoded, strict=True):
            target = of_text if isinstance(pair.target, str) else pair.target
            longest = max(len(source), len(target))
            if longest > self.max_length:
                raise BothendsError(
                    f"pair {pair.number}: {longest} tokens, but at most {self.max_length} are "
                    "scored; leave it out, or allow a larger maximum length"
                )
            if len(source) > learned:
                raise BothendsError(
                    f"pair {pair.number}: a source of {len(source)} tokens, but the model has "
                    f"learned positions for {learned}; leave it out"
                )
            if not all(token in range(size) for token in target):
                raise UsageError(f"pair {pair.number}: a token is outside the vocabulary's {size}")
            tasks.append(EncodedPair(source, target))
        sizes = [max(len(task.source), len(task.target)) + 1 for task in tasks]
        return WindowTasks(tasks, sizes, [[number] for number in range(len(tasks))])

    def run(self, tasks: Sequence[EncodedPair]) -> list[ForcedScore]:
        return self.model.score(tasks)

    def join(self, results: Sequence[ForcedScore]) -> ForcedScore:
        (score,) = results
        return score


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
