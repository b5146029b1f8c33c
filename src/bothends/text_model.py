"""The one path from text to text: vocabulary, search, vocabulary. And from pairs to scores.

A `TextModel` works on one batch. `Translating` and `Scoring` are the jobs that `Workers` run: they
cut a window of lines or pairs into tasks, and hand batches of tasks to the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

from bothends.errors import BothendsError, UsageError
from bothends.search.beam import Hypothesis
from bothends.search.generator import Generator
from bothends.search.scoring import ForcedScore
from bothends.streaming import Work
from bothends.text.repeats import remove_repeated_words
from bothends.text.vocabulary import Vocabularies
from bothends.translation import EMPTY, Translation, TranslationOptions

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class TextModel:
    """A generator and its vocabularies: text in, text out, a batch at a time."""

    generator: Generator
    vocabularies: Vocabularies
    #: what each batch runs in, e.g. with a number of threads that is PyTorch's for its duration
    context: Callable[[], AbstractContextManager[None]] = nullcontext

    def translate_from_draft(
        self, source: Tokens, draft: Sequence[int], options: TranslationOptions
    ) -> Translation:
        """The greedy translation of an encoded line, from a draft of it."""
        begin = time.perf_counter()
        cut = source[: options.max_source_length]
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
        cut = [source[: options.max_source_length] for source in sources]
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
        if options.deduplicate:
            found = list(map(self._without_repeats, found))
        seconds = time.perf_counter() - begin
        vocabulary = self.vocabularies.target
        texts = iter(vocabulary.decode([each.tokens for ranked in found for each in ranked]))
        translations = []
        for source, ranked in zip(sources, found, strict=True):
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
                    truncated=len(source) > options.max_source_length,
                    time=seconds,
                    source_tokens=source,
                    source_pieces=pieces,
                )
                for hypothesis in ranked
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

    def _without_repeats(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The hypotheses without repeated words; the first of those that are now the same."""
        kept: dict[Tokens, Hypothesis] = {}
        for hypothesis in hypotheses:
            pieces = self.vocabularies.target.pieces(hypothesis.tokens)
            tokens = remove_repeated_words(hypothesis.tokens, pieces)
            kept.setdefault(tuple(tokens), replace(hypothesis, tokens=tokens))
        return list(kept.values())


@dataclass(frozen=True)
class Translating:
    """The job of translating lines. Lines that are the same to the model are one task."""

    model: TextModel
    options: TranslationOptions
    #: that encode a large window
    threads: int = 1
    nothing: Translation = EMPTY

    def prepare(self, window: Sequence[str]) -> Work[Tokens]:
        encoded = self.model.vocabularies.source.encode(window, self.threads)
        numbers: dict[Tokens, int] = {}  # lists and logs are full of equal lines
        task_of_line = [
            # A vocabulary may have nothing for a line, even if the line has characters.
            numbers.setdefault(tuple(ids), len(numbers)) if line.strip() and ids else None
            for line, ids in zip(window, encoded, strict=True)
        ]
        limit = self.options.max_source_length
        sizes = [min(len(source), limit) + 1 for source in numbers]
        return Work(list(numbers), sizes, task_of_line)

    def run(self, tasks: Sequence[Tokens]) -> list[Translation]:
        return self.model.translate(tasks, self.options)


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

    @property
    def nothing(self) -> ForcedScore:
        raise AssertionError("every pair has a score: an empty target has an end symbol")

    def prepare(self, window: Sequence[NumberedPair]) -> Work[EncodedPair]:
        vocabularies, size = self.model.vocabularies, self.model.vocabularies.target.size
        sources = vocabularies.source.encode([pair.source for pair in window], self.threads)
        texts = [pair.target if isinstance(pair.target, str) else "" for pair in window]
        encoded = vocabularies.target.encode(texts, self.threads)
        tasks = []
        for pair, source, of_text in zip(window, sources, encoded, strict=True):
            target = of_text if isinstance(pair.target, str) else pair.target
            longest = max(len(source), len(target))
            if longest > self.max_length:
                raise BothendsError(
                    f"pair {pair.number}: {longest} tokens, but at most {self.max_length} are "
                    "scored; leave it out, or allow a larger maximum length"
                )
            if not all(token in range(size) for token in target):
                raise UsageError(f"pair {pair.number}: a token is outside the vocabulary's {size}")
            tasks.append(EncodedPair(source, target))
        sizes = [max(len(task.source), len(task.target)) + 1 for task in tasks]
        return Work(tasks, sizes, range(len(tasks)))

    def run(self, tasks: Sequence[EncodedPair]) -> list[ForcedScore]:
        return self.model.score(tasks)


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
