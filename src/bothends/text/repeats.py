"""Words and phrases that immediately repeat: what strands that cannot see each other both write."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
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


def remove_repeated_words(
    tokens: Sequence[int], pieces: Sequence[str], seams: Sequence[int] | None = None
) -> list[int]:
    """`tokens` without repeated words; `pieces` are their entries in the vocabulary.

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
    return [token for word in words for token in word]


def _words(tokens: Sequence[int], pieces: Sequence[str]) -> list[tuple[int, ...]]:
    words: list[tuple[int, ...]] = []
    inside = False  # a word, and not the punctuation after it
    for token, piece in zip(tokens, pieces, strict=True):
        letters = any(map(str.isalnum, piece)) or piece == SPACE
        if not words or piece.startswith(SPACE) or (inside and not letters):
            words.append((token,))
            inside = letters
        else:
            words[-1] += (token,)
    return words


def _without_repeats_across(words: list[tuple[int, ...]], seam: int) -> list[tuple[int, ...]]:
    offsets = [0, *accumulate(map(len, words))]
    for n in range(1, LONGEST_REPEAT + 1):
        for first in range(len(words) - 2 * n + 1):
            second, end = first + n, first + 2 * n
            is_across = offsets[first] < seam < offsets[end]
            if is_across and words[first:second] == words[second:end]:
                left = words[:second] + words[end:]
                return _without_repeats_across(left, min(seam, offsets[second]))
    return words
