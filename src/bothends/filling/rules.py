"""What a filling must keep to: spaces at the seams, numbers of words, words that must not be.

Every token of a frame has its place in the text from the start. So a text that is only partly
written can be asked whether it can still become one that keeps to the rules.
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from bothends.filling.options import FillOptions
from bothends.order import BoolArray, IntArray
from bothends.search.fill import FREE, Frame
from bothends.text.ends import GivenEnds
from bothends.text.vocabulary import SPACE, TextVocabulary
from bothends.text.words import bare_word


class Rules:
    """What a text must keep to, asked about texts that are only partly written."""

    def __init__(
        self,
        vocabulary: TextVocabulary,
        given: GivenEnds,
        options: FillOptions,
        first_words: frozenset[str],
    ) -> None:
        self._vocabulary = vocabulary
        self._given = given
        self._prefix_length = len(given.ways[0].prefix)
        #: tokens that may follow a given space
        self._after_space = {FREE, *np.flatnonzero(vocabulary.starts_word).tolist()}
        self._fewest, self._most = options.fewest_words, options.most_words
        self._include = options.include
        self._excluded = frozenset(map(bare_word, options.exclude))
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
        if self._given.space_follows and after < len(text) and text[after] not in self._after_space:
            return False
        if self._fewest or self._most:
            free = int((text == FREE).sum())
            # The first word has no space before it where its token has none.
            words = int(starts.sum()) + bool(len(text) and text[0] != FREE and not starts[0])
            if words > (self._most or words) or words + free < self._fewest:
                return False
        if self._excluded or self._first_words:
            return self._words_allowed(frame, text, starts)
        return True

    def accept(self, text: str, middle: str) -> bool:
        """Does a finished text keep to what was asked? Tokens alone do not say where words end."""
        words = len(text.split())
        if words < self._fewest or (self._most and words > self._most):
            return False
        bare = set(map(bare_word, middle.split()))
        if bare & self._excluded:
            return False
        first = len(self._given.prefix)
        gap = range(first, first + len(middle) + 1)
        return all(
            any(
                found.start() in gap and found.end() in gap
                for found in re.finditer(rf"(?<!\w){re.escape(phrase.strip())}(?!\w)", text)
            )
            for phrase in self._include
        )

    def _words_allowed(self, frame: Frame, text: IntArray, starts: BoolArray) -> bool:
        """Is no word that was written, and is complete, one that must not be?"""
        bounds = [0, *(int(i) for i in np.flatnonzero(starts) if i), len(text)]
        for first, after in pairwise(bounds):
            tokens = text[first:after]
            if (tokens == FREE).any() or FREE not in frame.tokens[first:after]:
                continue
            word = bare_word("".join(self._vocabulary.pieces(tokens.tolist())).replace(SPACE, ""))
            if word in self._excluded:
                return False
            if word in self._first_words and first <= self._prefix_length < after:
                return False
        return True
