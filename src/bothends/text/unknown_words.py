"""Words with letters that a vocabulary does not have: Erdoğan, Łódź, שלום.

A model sees such a letter as bytes, or as nothing, and writes something else. They are names and
foreign words nearly always, which should come back as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from bothends.text.languages import short_code
from bothends.text.vocabulary import TextVocabulary

#: Languages of more characters than vocabularies have: there, a rare one is no foreign word.
_MANY_CHARACTERS = frozenset({"ja", "zh", "yue", "ko", "th", "lo", "km", "my"})
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_CANDIDATE = re.compile(r"[^\s\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+")
#: What joins the words of one name.
_BETWEEN = re.compile(r"\s+|[-'\u2019]")


class UnknownWords:
    """Finds them in a text, for one vocabulary."""

    def __init__(self, vocabulary: TextVocabulary, language: str | None) -> None:
        self._vocabulary = vocabulary
        self._applies = language is None or short_code(language) not in _MANY_CHARACTERS
        self._is_unknown = lru_cache(10_000)(self._look_up)

    def __call__(self, text: str) -> list[tuple[int, int]]:
        """Half-open offsets, in order; words side by side are one span."""
        if text.isascii() or not self._applies:
            return []
        spans: list[tuple[int, int]] = []
        for start, end in _words(text):
            if self._is_unknown(text[start:end]):
                if spans and _BETWEEN.fullmatch(text, spans[-1][1], start):
                    start = spans.pop()[0]
                spans.append((start, end))
        return spans

    def _look_up(self, word: str) -> bool:
        (ids,) = self._vocabulary.encode([word])
        unknown = self._vocabulary.special.unknown in ids
        return unknown or any(map(_BYTE.fullmatch, self._vocabulary.pieces(ids)))


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Runs of letters, with marks and digits, that are not all of ASCII."""
    for candidate in _CANDIDATE.finditer(text):
        if candidate[0].isascii():
            continue
        start = candidate.start()
        for index in range(start, candidate.end() + 1):
            if index == candidate.end() or unicodedata.category(text[index])[0] not in "LMN":
                word = text[start:index]
                if not word.isascii() and any(map(str.isalpha, word)):
                    yield start, index
                start = index + 1
