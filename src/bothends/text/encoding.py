"""Encode a corpus by its words, each distinct word once: two to four times faster than by lines.

The result is the same where no entry of the vocabulary reaches across a space, since the merges
inside a word do not depend on its neighbours. Vocabularies that we train are like that; one that is
not, or that does not treat spaces as ours do, is used line by line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from bothends.text.vocabulary import SPACE, TextVocabulary

#: Tokens of remembered words, at about a hundred bytes each with their share of the word.
_REMEMBERED_TOKENS = 2_000_000


class CorpusEncoder:
    """Gives the ids that `vocabulary.encode` gives, and remembers words between calls."""

    def __init__(self, vocabulary: TextVocabulary, threads: int = 1) -> None:
        self._vocabulary = vocabulary
        self._threads = threads
        self._by_words = _separable(vocabulary)
        self._known: dict[str, list[int]] = {}
        self._known_tokens = 0

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids of each line, text only."""
        if not self._by_words:
            return self._vocabulary.encode(lines, self._threads)
        # A line with SentencePiece's own sign for a space is cut where we would not cut it.
        words = [[line] if SPACE in line else line.split(" ") for line in lines]
        if self._known_tokens > _REMEMBERED_TOKENS:
            self._known.clear()
            self._known_tokens = 0
        new = list(dict.fromkeys(chain.from_iterable(words)).keys() - self._known.keys())
        if new:
            encoded = self._vocabulary.encode(new, self._threads)
            self._known.update(zip(new, encoded, strict=True))
            self._known_tokens += sum(map(len, encoded))
        known = self._known.__getitem__
        return [list(chain.from_iterable(map(known, line))) for line in words]


def _separable(vocabulary: TextVocabulary) -> bool:
    """Whether a line's ids are those of its words, one after the other."""
    within_words = all(
        SPACE not in piece[1:] for piece in vocabulary.pieces(range(vocabulary.size))
    )
    together, first, second = vocabulary.encode(["  a   b ", "a", "b"])
    return within_words and together == first + second
