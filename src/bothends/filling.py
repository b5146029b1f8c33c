"""Fill the gap between a given beginning and end of a translation, from text to text.

    for filling in translator.fill("He lives in Berlin.", prefix="Er", suffix="Berlin.", n_best=3):
        print(filling.text, filling.score)

How long the gap is, is not known: all lengths that the source makes likely are tried side by side
(`search/fill.py`), with every way in which the given text joins what is written (`text/ends.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from typing import Any

import numpy as np

from bothends.engines.protocol import Engine
from bothends.errors import BothendsError, UsageError
from bothends.order import BoolArray, GenerationOrder, IntArray
from bothends.search.fill import FREE, FilledFrame, Frame, fill_frames
from bothends.search.options import SearchOptions, check_whole_number
from bothends.text.ends import Ends, GivenEnds
from bothends.text.vocabulary import SPACE, SpecialTokens, Vocabularies, Vocabulary

#: Frames that are searched with the whole beam. Where there are more, each is first filled
#: greedily, and those with the best scores go on.
FULL_SEARCH = 24
#: Lengths of the gap that are tried where the given text is already long.
SHORT_GAP = 8
#: Frames that are tried at all.
MAX_FRAMES = 4096


@dataclass(frozen=True)
class FillOptions:
    """What is asked of a filling. Words are those of the whole text, given ends included.

    Attributes:
        n_best: Fillings to return.
        beam: Hypotheses kept for each length of the gap.
        length_penalty: How much longer texts are preferred.
        words: Exactly so many words; the nearest number that the model finds otherwise.
        min_words: Fewest words.
        max_words: Most words.
        include: Words or phrases that must be in the gap, spelled exactly so.
        exclude: Words that must not be in the gap, in any capitalisation.
        max_length: Most tokens of the text; by default twice those of the source and 20 more.
    """

    n_best: int = 1
    beam: int = SearchOptions.beam
    length_penalty: float = SearchOptions.length_penalty
    words: int | None = None
    min_words: int = 0
    max_words: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_length: int | None = None

    def __post_init__(self) -> None:
        check_whole_number("n_best", self.n_best, 1)
        check_whole_number("min_words", self.min_words, 0)
        for name in ("words", "max_words", "max_length"):
            if getattr(self, name) is not None:
                check_whole_number(name, getattr(self, name), 1)
        if self.max_words is not None and self.min_words > self.max_words:
            raise UsageError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        for name in ("include", "exclude"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} takes a list of words")
            object.__setattr__(self, name, tuple(getattr(self, name)))
            for word in getattr(self, name):
                if not word.strip():
                    raise UsageError(f"{name}: an empty word")
        for word in self.exclude:
            if len(word.split()) > 1:
                raise UsageError(f"exclude: {word!r} is more than one word")
        self.search  # noqa: B018 (checks the rest)

    @property
    def fewest_words(self) -> int:
        return self.words or self.min_words

    @property
    def most_words(self) -> int | None:
        return self.words or self.max_words

    @property
    def search(self) -> SearchOptions:
        # Some results say the same in other tokens, so as many as the beam are kept.
        beam = max(self.beam, self.n_best)
        return SearchOptions(beam=beam, n_best=beam, length_penalty=self.length_penalty)


@dataclass(frozen=True)
class Filling:
    """A text with the given beginning and end, character by character.

    Attributes:
        text: `prefix + middle + suffix`.
        middle: What was written between them, with its spaces.
        score: `logprob` after length normalisation: fillings are ranked by it.
        logprob: Log probability of the whole text and its end symbol, given the source.
        tokens: Ids in the target vocabulary, in text order, without the end symbol.
        pieces: The same tokens as the vocabulary spells them, `▁` for a space.
        gap: The first token of the gap and the first after it.
        steps: Decoder steps for a text of this length.
        words: Words of `text`.
    """

    text: str
    prefix: str
    middle: str
    suffix: str
    score: float
    logprob: float
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    gap: tuple[int, int]
    steps: int

    @property
    def words(self) -> int:
        return len(self.text.split())


@dataclass(frozen=True)
class Filler:
    """A model that fills gaps."""

    engine: Engine[Any]
    order: GenerationOrder
    special: SpecialTokens
    vocabularies: Vocabularies

    def fill(
        self,
        source: str,
        prefix: str | Sequence[int],
        suffix: str | Sequence[int],
        options: FillOptions,
        first_words: Iterable[str] = (),
    ) -> list[Filling]:
        """The best fillings, best first; `first_words` are words that no gap may begin with."""
        (source_tokens,) = self.vocabularies.source.encode([source])
        if not source_tokens:
            raise UsageError("the source is empty: there is nothing to translate")
        target = self.vocabularies.target
        given = GivenEnds(target, prefix, suffix)
        length = len(source_tokens)
        limit = SearchOptions(max_length=options.max_length).limit(length)
        known = min(map(len, given.ways))
        if known > limit:
            raise UsageError(
                f"prefix and suffix have {known} tokens, but a translation of this source has at "
                f"most {limit}; shorten them"
            )
        rules = Rules(target, given, options, frozenset(map(_bare, first_words)))
        frames: dict[Frame, Ends] = {}
        for ends in given.ways:
            for gap in _gaps(length, len(ends), limit, options):
                for frame in self._frames(ends, gap, options.include):
                    if rules(frame, np.array(frame.tokens, dtype=np.int64)):
                        frames.setdefault(frame, ends)
        if len(frames) > MAX_FRAMES:
            raise UsageError(
                f"{len(options.include)} words to include can be placed in {len(frames):,} ways, "
                f"and at most {MAX_FRAMES:,} are tried; include fewer, or set max_length"
            )
        batch = np.array([[*source_tokens, self.special.end]])
        fillings = self._search(batch, frames, rules, options.search, given)
        if not fillings and options.words is not None:
            loose = replace(options, words=None)
            return self._nearest(source, prefix, suffix, loose, options.words)
        if not fillings:
            raise BothendsError(
                "no filling was found that keeps to what was asked; allow more words, include "
                "or exclude fewer, or widen the beam"
            )
        return fillings[: options.n_best]

    def _nearest(
        self,
        source: str,
        prefix: str | Sequence[int],
        suffix: str | Sequence[int],
        options: FillOptions,
        words: int,
    ) -> list[Filling]:
        """Fillings with a number of words as near to `words` as is found."""
        wide = replace(options, n_best=max(options.n_best, 16), beam=max(options.beam, 16))
        found = self.fill(source, prefix, suffix, wide)
        return sorted(found, key=lambda one: abs(one.words - words))[: options.n_best]

    def _search(
        self,
        batch: IntArray,
        frames: dict[Frame, Ends],
        rules: Rules,
        options: SearchOptions,
        given: GivenEnds,
    ) -> list[Filling]:
        """Fillings of any of the frames, best first, each text once."""

        def fill(some: Iterable[Frame], how: SearchOptions, n_best: int) -> list[FilledFrame]:
            allowed = rules if rules.matter else None
            model = (self.engine, self.order, self.special)
            return fill_frames(*model, batch, some, how, allowed, n_best)[0]

        chosen = list(frames)
        if len(chosen) > FULL_SEARCH:
            greedy = replace(options, beam=1, n_best=1)
            chosen = [one.frame for one in fill(chosen, greedy, len(chosen))][:FULL_SEARCH]
        fillings: dict[str, Filling] = {}
        for found in fill(chosen, options, options.n_best):
            ends = frames[found.frame]
            middle = given.middle(ends, found.tokens)
            if middle is None:
                continue
            text = given.prefix + middle + given.suffix
            if text in fillings or not rules.accept(text, middle):
                continue
            fillings[text] = Filling(
                text=text,
                prefix=given.prefix,
                middle=middle,
                suffix=given.suffix,
                score=found.score,
                logprob=found.logprob,
                tokens=tuple(found.tokens),
                pieces=tuple(self.vocabularies.target.pieces(found.tokens)),
                gap=(len(ends.prefix), len(found.tokens) - len(ends.suffix)),
                steps=found.steps,
            )
        return list(fillings.values())

    def _frames(self, ends: Ends, gap: int, include: Sequence[str]) -> Iterator[Frame]:
        """Frames with a gap of so many tokens, and each way to place the words to include."""
        phrases = [tuple(ids) for ids in self.vocabularies.target.encode(include)]
        for order in dict.fromkeys(permutations(phrases)):
            for middle in _placements(order, gap):
                yield Frame((*ends.prefix, *middle, *ends.suffix))


class Rules:
    """What a text must keep to, asked about texts that are only partly written."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        given: GivenEnds,
        options: FillOptions,
        first_words: frozenset[str],
    ) -> None:
        self._vocabulary = vocabulary
        self._given = given
        self._prefix_length = len(given.ways[0].prefix)
        self._fewest, self._most = options.fewest_words, options.most_words
        self._include = options.include
        self._excluded = frozenset(map(_bare, options.exclude))
        self._first_words = first_words
        #: is there anything to keep to?
        self.matter = bool(
            given.space_follows
            or self._fewest
            or self._most
            or self._include
            or self._excluded
            or first_words
        )

    def __call__(self, frame: Frame, text: IntArray) -> bool:
        """Can this text still become one that keeps to everything?"""
        starts = np.where(text == FREE, False, self._vocabulary.starts_word[text])
        after = self._prefix_length
        if self._given.space_follows and after < len(text) and text[after] != FREE:
            if not starts[after]:
                return False
        if self._fewest or self._most:
            free = int((text == FREE).sum())
            # The first word has no space before it where its token has none.
            words = int(starts.sum()) + bool(len(text) and text[0] != FREE and not starts[0])
            if self._most and words > self._most or words + free < self._fewest:
                return False
        if self._excluded or self._first_words:
            return self._words_allowed(frame, text, starts)
        return True

    def accept(self, text: str, middle: str) -> bool:
        """Does a finished text keep to what was asked? Tokens alone do not say where words end."""
        words = len(text.split())
        if words < self._fewest or (self._most and words > self._most):
            return False
        bare = set(map(_bare, middle.split()))
        if bare & self._excluded:
            return False
        return all(
            re.search(rf"(?<!\w){re.escape(phrase.strip())}(?!\w)", text) for phrase in self._include
        )

    def _words_allowed(self, frame: Frame, text: IntArray, starts: BoolArray) -> bool:
        """Is no word that was written, and is complete, one that must not be?"""
        bounds = [0, *(int(i) for i in np.flatnonzero(starts) if i), len(text)]
        for first, after in pairwise(bounds):
            tokens = text[first:after]
            if (tokens == FREE).any() or FREE not in frame.tokens[first:after]:
                continue
            word = _bare("".join(self._vocabulary.pieces(tokens)).replace(SPACE, ""))
            if word in self._excluded:
                return False
            if word in self._first_words and first <= self._prefix_length < after:
                return False
        return True


def _gaps(source_length: int, known: int, limit: int, options: FillOptions) -> range:
    """The lengths of the gap that are tried, in tokens.

    Translations are about as long as their sources. Where that leaves little for the gap, it is for
    the given text to be unusually long, so a few lengths are always tried.
    """
    shortest, longest = source_length // 2 - 2, source_length * 3 // 2 + 4
    if options.most_words:
        shortest = options.fewest_words
        longest = 3 * options.most_words + 4
    elif options.fewest_words:
        longest = max(longest, 3 * options.fewest_words + 4)
    few = SHORT_GAP + sum(2 * len(phrase) // 3 for phrase in options.include)
    low = max(0, min(shortest - known, limit - known))
    return range(low, max(min(max(longest - known, low + few), limit - known), 0) + 1)


def _placements(phrases: Sequence[tuple[int, ...]], gap: int) -> Iterator[tuple[int, ...]]:
    """A gap of so many tokens with the phrases in this order, at all distances."""
    spare = gap - sum(map(len, phrases))
    if spare < 0:
        return
    if not phrases:
        yield (FREE,) * gap
        return
    first, *rest = phrases
    for before in range(spare + 1):
        for after in _placements(rest, gap - before - len(first)):
            yield (*(FREE,) * before, *first, *after)


def _bare(word: str) -> str:
    """A word as it is compared: without punctuation around it, in lower case."""
    return re.sub(r"^\W+|\W+$", "", word).casefold()
