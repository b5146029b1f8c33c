"""Fill the gap between a given beginning and end of a translation, from text to text.

    for filling in translator.fill("He lives in Berlin.", prefix="Er", suffix="Berlin.", n_best=3):
        print(filling.text, filling.score)

How long the gap is, is not known: all lengths that the source makes likely are tried side by side
(`search/fill.py`), with every way in which the given text joins what is written (`text/ends.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations

import numpy as np

from bothends.errors import BothendsError, UsageError
from bothends.filling.options import Filling, FillOptions
from bothends.filling.rules import Rules
from bothends.search.fill import FREE, Choice, FilledFrame, Frame
from bothends.search.generator import Generator
from bothends.search.options import SearchOptions
from bothends.text.ends import Ends, GivenEnds
from bothends.text.vocabulary import TextVocabulary, Vocabularies
from bothends.text.words import bare_word

#: Frames that are searched with the whole beam. Where there are more, each is first filled
#: greedily, and those with the best scores go on.
FULL_SEARCH = 24
#: Lengths of the gap that are tried where the given text is already long.
SHORT_GAP = 8
#: Tokens by which a text is tried shorter or longer than its source, at most.
FAR = 24
#: Longer sources are refused: every length is a search of its own.
MAX_SOURCE_LENGTH = 512
#: Frames that are tried at all.
MAX_FRAMES = 4096


@dataclass(frozen=True)
class _FillRequest:
    source: Sequence[int]
    given: GivenEnds
    #: most tokens of the text
    limit: int
    #: words that no gap may begin with
    first_words: frozenset[str]


@dataclass(frozen=True)
class Filler:
    """A model that fills gaps."""

    generator: Generator
    vocabularies: Vocabularies

    def fill(
        self,
        source: str,
        prefix: str | Sequence[int],
        suffix: str | Sequence[int],
        options: FillOptions,
        first_words: Iterable[str] = (),
        *,
        may_overlap: bool = False,
    ) -> list[Filling]:
        """The best fillings, best first; `first_words` are words that no gap may begin with.

        Prefix and suffix that have words in common are refused, unless they `may_overlap`.
        """
        (source_tokens,) = self.vocabularies.source.encode([source])
        if not source_tokens:
            raise UsageError("the source is empty: there is nothing to translate")
        longest = self.generator.longest_source(MAX_SOURCE_LENGTH)
        if len(source_tokens) > longest:
            raise UsageError(
                f"the source has {len(source_tokens)} tokens, and at most {longest} are "
                "taken; give one sentence at a time"
            )
        given = GivenEnds(self.vocabularies.target, prefix, suffix, may_overlap=may_overlap)
        self._check_include(options.include)
        limit = self.generator.limit(
            len(source_tokens), SearchOptions(max_length=options.length or options.max_length)
        )
        if limit < (options.length or 0):
            raise UsageError(f"length {options.length}: this model writes at most {limit} tokens")
        if given.shortest > limit:
            raise UsageError(
                f"prefix and suffix have {given.shortest} tokens, but a translation of this source "
                f"has at most {limit}; shorten them"
            )
        words = len(f"{given.prefix} {given.suffix}".split()) - 1  # those at the gap may be one
        if words > (options.max_words or words):
            raise UsageError(
                f"prefix and suffix have {words + 1} words, more than max_words "
                f"{options.max_words}; allow more"
            )
        request = _FillRequest(source_tokens, given, limit, frozenset(map(bare_word, first_words)))
        fillings = self._find(request, options)
        if not fillings and options.words is not None:
            fillings = self._nearest(request, replace(options, words=None), options.words)
        if not fillings:
            raise BothendsError(
                "no filling was found that keeps to what was asked; allow other numbers of words, "
                "include or exclude fewer, or widen the beam"
            )
        return fillings[: options.n_best]

    def _nearest(self, request: _FillRequest, options: FillOptions, words: int) -> list[Filling]:
        """Fillings with a number of words as near to `words` as is found."""
        for distance in range(1, 4):
            for number in (words - distance, words + distance):
                if number > 0 and (found := self._find(request, replace(options, words=number))):
                    return found
        wide = replace(options, n_best=max(options.n_best, 16), beam=max(options.beam, 16))
        return sorted(self._find(request, wide), key=lambda one: abs(one.words - words))

    def _find(self, request: _FillRequest, options: FillOptions) -> list[Filling]:
        given = request.given
        rules = Rules(self.vocabularies.target, given, options, request.first_words)
        frames: dict[Frame, Ends] = {}
        for ends in given.ways:
            if len(ends) + bool(ends.opening) > request.limit:
                continue
            for gap in _gaps(len(request.source), len(ends), request.limit, options):
                for frame in self._frames(ends, gap, options.include):
                    if rules(frame, np.array(frame.tokens, dtype=np.int64)):
                        frames.setdefault(frame, ends)
                    if len(frames) > MAX_FRAMES:
                        raise UsageError(
                            f"the words to include can be placed in more than {MAX_FRAMES:,} ways; "
                            "include fewer, or set max_length"
                        )
        return self._search(request.source, frames, rules, options.search, given)

    def _search(
        self,
        source: Sequence[int],
        frames: dict[Frame, Ends],
        rules: Rules,
        options: SearchOptions,
        given: GivenEnds,
    ) -> list[Filling]:
        """Fillings of any of the frames, best first, each text once."""

        def fill(some: Iterable[Frame], how: SearchOptions, n_best: int) -> list[FilledFrame]:
            allowed = rules if rules.matter else None
            return self.generator.fill(source, some, how, allowed, n_best)

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

    def _check_include(self, phrases: Sequence[str]) -> None:
        """Complain about words that the vocabulary cannot write as they are spelled."""
        target = self.vocabularies.target
        for phrase, ids in zip(phrases, target.encode(phrases), strict=True):
            (spelled,) = target.decode([ids])
            if target.special.unknown in ids or spelled != " ".join(phrase.split()):
                raise UsageError(
                    f"include: the model's vocabulary writes {phrase!r} as {spelled!r}; "
                    "give it in characters that the model knows"
                )

    def _frames(self, ends: Ends, gap: int, include: Sequence[str]) -> Iterator[Frame]:
        """Frames with a gap of so many tokens, and each way to place the words to include."""
        target = self.vocabularies.target
        phrases = [tuple(ids) for ids in target.encode(include)]
        choices: tuple[tuple[int, Choice], ...] = ()
        if ends.opening:
            if not gap:
                return
            choices = ((len(ends.prefix), _opening(target, ends.opening)),)
        for order in dict.fromkeys(permutations(phrases)):
            for middle in _placements(order, gap):
                if not choices or middle[0] == FREE:
                    yield Frame((*ends.prefix, *middle, *ends.suffix), choices=choices)


@lru_cache(maxsize=64)
def _opening(vocabulary: TextVocabulary, opening: str) -> Choice:
    """Pieces that begin with these characters and go on."""
    pieces = vocabulary.pieces(range(vocabulary.size))
    return Choice(np.array([p.startswith(opening) and p != opening for p in pieces]))


def _gaps(source_length: int, known: int, limit: int, options: FillOptions) -> range:
    """The lengths of the gap that are tried, in tokens.

    Translations are about as long as their sources. Where that leaves little for the gap, it is for
    the given text to be unusually long, so a few lengths are always tried.
    """
    if options.length is not None:
        return range(options.length - known, options.length - known + 1)
    shortest = max(source_length // 2 - 2, source_length - FAR)
    longest = min(source_length * 3 // 2 + 4, source_length + FAR)
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
