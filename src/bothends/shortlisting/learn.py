"""From translated text to a shortlist: the best words of each word, and those of everybody.

Some words are always allowed, whatever the text says of them: special tokens, bytes, single
characters, digits and punctuation, which spell all that has no word of its own, and the most
frequent words. A source word may always be copied, with a space before it or without.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bothends.errors import UsageError
from bothends.model.shortlist import Shortlist
from bothends.order import BoolArray, IntArray
from bothends.shortlisting.alignment import WordTable, learn_table
from bothends.text.vocabulary import SPACE, TextVocabulary, Vocabularies

_BYTE = re.compile("<0x[0-9A-Fa-f]{2}>")


@dataclass(frozen=True)
class ShortlistOptions:
    """How large a shortlist is, and how long it learns."""

    #: target words of each source word, besides those that are always allowed
    best: int = 100
    #: most frequent target words that are always allowed
    frequent: int = 1000
    #: a word of less probability than this, given the source word, is none of its best
    least: float = 1e-5
    iterations: int = 5
    #: pairs of text that it learns from, evenly out of all
    pairs: int = 200_000
    #: longer lines teach little, and have as many links as many short ones
    longest: int = 100

    def __post_init__(self) -> None:
        for name, least in {"best": 1, "frequent": 0, "iterations": 1, "pairs": 1}.items():
            if getattr(self, name) < least:
                raise UsageError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if not 0 <= self.least <= 1:
            raise UsageError(f"least is a probability, between 0 and 1, and not {self.least}")


Sentences = Sequence[Sequence[int]]


def learn_shortlist(
    vocabularies: Vocabularies,
    sources: Sentences,
    targets: Sentences,
    options: ShortlistOptions,
    tell: Callable[[str], None] = lambda message: None,
) -> Shortlist:
    """The shortlist of a model with these vocabularies, from pairs of encoded lines."""
    sizes = vocabularies.source.size, vocabularies.target.size
    pairs = evenly(
        [
            number
            for number, (source, target) in enumerate(zip(sources, targets, strict=True))
            if source and target and max(len(source), len(target)) <= options.longest
        ],
        options.pairs,
    )
    tell(f"learning from {len(pairs):,} pairs")
    chosen = [sources[number] for number in pairs], [targets[number] for number in pairs]
    table = learn_table(*chosen, *sizes, options.iterations, tell)
    always = always_allowed(vocabularies.target)
    counts = np.bincount(np.concatenate([np.array(each, np.int64) for each in chosen[1]]))
    counts = np.pad(counts, (0, sizes[1] - len(counts)))
    counts[always] = 0
    always[(-counts).argsort(kind="stable")[: options.frequent]] = True
    words = _best(table, always, sizes[0], options)
    for source, copies in _copies(vocabularies).items():
        words[source] = words[source] | {copy for copy in copies if not always[copy]}
    first = np.cumsum([0, *(len(words[source]) for source in range(sizes[0]))])
    ids = [word for source in range(sizes[0]) for word in sorted(words[source])]
    return Shortlist(*sizes, always.nonzero()[0], first, np.array(ids, np.int64))


def evenly(items: Sequence[int], count: int) -> list[int]:
    """At most `count` of the items, from all over them."""
    if len(items) <= count:
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]


def always_allowed(vocabulary: TextVocabulary) -> BoolArray:
    """`(V,)`: special tokens, bytes, single characters, digits and punctuation."""
    always = np.array([_is_basic(piece) for piece in vocabulary.pieces(range(vocabulary.size))])
    always[[*vocabulary.special.ids]] = True
    return always


def _is_basic(piece: str) -> bool:
    text = piece.removeprefix(SPACE)
    if len(text) <= 1 or _BYTE.fullmatch(piece):
        return True
    return all(unicodedata.category(each)[0] in "NPSZ" for each in text)


def _best(
    table: WordTable, always: BoolArray, source_words: int, options: ShortlistOptions
) -> defaultdict[int, set[int]]:
    """The best words of each source word that are not allowed anyway."""
    kept = ~always[table.targets] & (table.probabilities >= options.least)
    kept &= table.sources < source_words
    sources, targets = table.sources[kept], table.targets[kept]
    order = np.lexsort((-table.probabilities[kept], sources))
    sources, targets = sources[order], targets[order]
    # The rank of each among those of its source word
    rank = np.arange(len(sources)) - np.searchsorted(sources, sources)
    words: defaultdict[int, set[int]] = defaultdict(set)
    few = rank < options.best
    for source, target in zip(sources[few].tolist(), targets[few].tolist(), strict=True):
        words[source].add(target)
    return words


def _copies(vocabularies: Vocabularies) -> dict[int, set[int]]:
    """The target words that are spelled as a source word, but for a space before it."""
    of_text: defaultdict[str, set[int]] = defaultdict(set)
    for word, piece in enumerate(vocabularies.target.pieces(range(vocabularies.target.size))):
        of_text[piece.removeprefix(SPACE)].add(word)
    pieces = vocabularies.source.pieces(range(vocabularies.source.size))
    return {
        word: of_text[text]
        for word, piece in enumerate(pieces)
        if (text := piece.removeprefix(SPACE)) in of_text
    }


@dataclass(frozen=True)
class Coverage:
    """How much of some translations a shortlist allows."""

    tokens: int
    covered_tokens: int
    lines: int
    #: lines all of whose words are allowed
    covered_lines: int
    #: words allowed, on average
    allowed: float

    def __str__(self) -> str:
        tokens = self.covered_tokens / max(self.tokens, 1)
        lines = self.covered_lines / max(self.lines, 1)
        return f"{tokens:.2%} of {self.tokens:,} tokens, {lines:.1%} of {self.lines:,} lines whole"


def measure_coverage(shortlist: Shortlist, sources: Sentences, targets: Sentences) -> Coverage:
    """The coverage of encoded translations."""
    covered, whole, allowed = 0, 0, 0
    for source, target in zip(sources, targets, strict=True):
        words: IntArray = shortlist.allowed(source)
        inside = int(np.isin(np.array(target, np.int64), words).sum())
        covered, whole, allowed = (
            covered + inside,
            whole + (inside == len(target)),
            allowed + len(words),
        )
    tokens = sum(map(len, targets))
    return Coverage(tokens, covered, len(targets), whole, allowed / max(len(targets), 1))
