"""Sentences that are too long for a model, cut at clauses.

The cut falls after the last strong mark (semicolon, colon, dash) that lets the part fit, else after
a comma, else at a space, else anywhere. The caller learns of it: more than one span comes back.
"""

# Marks of other scripts look like ours to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Callable

from bothends.text.sentences import Span

#: Counts what a model would see of a text: tokens, or characters.
Length = Callable[[str], int]

# Best places first. Each match ends where the next part begins.
_PLACES = (
    re.compile(r"(?:[;:—–]|(?<=\s)-)\s+|[；：。！？]"),
    re.compile(r"[,،]\s+|[、，]"),
    re.compile(r"\s+"),
)
#: A part shorter than this share of the longest one is not worth the better mark.
_SHORTEST = 0.25


def cut_at_clauses(text: str, span: Span, length: Length, limit: int) -> list[Span]:
    """The parts of a sentence, each at most `limit` long if single characters are.

    Gaps between the parts are white space or nothing, as between sentences.
    """
    if limit < 1:
        raise ValueError(f"the limit must be at least 1, but is {limit}")
    parts: list[Span] = []
    start, end = span
    while start < end:
        stop = _longest(text, start, end, length, limit)
        if stop < end:
            stop = _better(text, start, stop)
        parts.append(_trimmed(text, start, stop))
        start = stop
        while start < end and text[start].isspace():
            start += 1
    return parts or [span]


def _longest(text: str, start: int, end: int, length: Length, limit: int) -> int:
    """The largest end that fits, by bisection; at least one character.

    Grows from a small window, so that a huge sentence is not measured whole for each part.
    """
    low, high = start + 1, min(end, start + max(16, 8 * limit))
    while high < end and length(text[start:high]) <= limit:
        low, high = high, min(end, start + 2 * (high - start))
    if length(text[start:high]) <= limit:
        return high
    while low + 1 < high:
        middle = (low + high) // 2
        if length(text[start:middle]) <= limit:
            low = middle
        else:
            high = middle
    return low


def _better(text: str, start: int, stop: int) -> int:
    shortest = start + int((stop - start) * _SHORTEST)
    for place in _PLACES:
        found = -1
        for match in place.finditer(text, start, stop):
            if match.end() > shortest:
                found = match.end()
        if found > start:
            return found
    # A space right behind the longest part is a place too.
    return stop


def _trimmed(text: str, start: int, end: int) -> Span:
    while end > start + 1 and text[end - 1].isspace():
        end -= 1
    return Span(start, end)
