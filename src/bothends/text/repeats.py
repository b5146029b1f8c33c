"""Words and phrases that immediately repeat: what strands that cannot see each other both write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TypeVar

from bothends.text.vocabulary import SPACE

#: Words of the longest phrase whose repetition is removed; a longer one is more likely meant.
LONGEST_REPEAT = 4

Item = TypeVar("Item")


def remove_repeats(items: Sequence[Item], longest: int = LONGEST_REPEAT) -> list[Item]:
    """`items` without the n-grams, of up to `longest` items, that repeat what is right before."""
    kept: list[Item] = []
    for item in items:
        kept.append(item)
        for n in range(1, longest + 1):
            if len(kept) >= 2 * n and kept[-n:] == kept[-2 * n : -n]:
                del kept[-n:]
                break  # what is left was free of repeats one item ago
    return kept


@dataclass(frozen=True)
class _Word:
    """Its tokens, and the index of the first; words are the same wherever they are."""

    tokens: tuple[int, ...]
    first: int = field(compare=False)


def without_repeated_words(
    tokens: Sequence[int], pieces: Sequence[str], seams: Sequence[int] | None = None
) -> list[int]:
    """The indices of `tokens` without those of repeated words; `pieces` are their entries.

    Words are what spaces separate, and the punctuation after a word is one of its own: `1999` and
    `...` stay as they are, however the vocabulary cuts them. Given `seams`, indices of tokens, only
    words and phrases go whose two copies lie on both sides of one.
    """
    words = _words(tokens, pieces)
    if seams is None:
        words = remove_repeats(words)
    else:
        for seam in reversed(seams):  # what is removed moves no earlier seam
            words = _without_repeats_across(words, seam)
    return [index for word in words for index in range(word.first, word.first + len(word.tokens))]


def _words(tokens: Sequence[int], pieces: Sequence[str]) -> list[_Word]:
    starts: list[int] = []
    inside = False  # a word, and not the punctuation after it
    for index, piece in enumerate(pieces):
        letters = any(map(str.isalnum, piece)) or piece == SPACE
        if not starts or piece.startswith(SPACE) or (inside and not letters):
            starts.append(index)
            inside = letters
    return [_Word(tuple(tokens[i:j]), i) for i, j in pairwise([*starts, len(pieces)])]


def _without_repeats_across(words: list[_Word], seam: int) -> list[_Word]:
    offsets = [0, *accumulate(len(word.tokens) for word in words)]
    for n in range(1, LONGEST_REPEAT + 1):
        for first in range(len(words) - 2 * n + 1):
            second, end = first + n, first + 2 * n
            is_across = offsets[first] < seam < offsets[end]
            if is_across and words[first:second] == words[second:end]:
                left = words[:second] + words[end:]
                return _without_repeats_across(left, min(seam, offsets[second]))
    return words
