"""Where inline tags go in a translation: around the words that they had in the source.

A tag's words are found by what is known for sure first: opaque things inside it, whose place in the
translation is known. Then by its own translation: "<b>red</b>" is looked up as the translation of
"red" alone. Then by words that are the same in both languages. What is still unknown is guessed by
proportion, and counted. Tags keep their nesting; tags side by side may change order, as words do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

#: Words, single characters of scripts without spaces, and marks.
_TOKEN = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W\u3040-\u30ff\u3400-\u9fff]+|[^\\w\\s]")
#: The share of a tag's words that must be found.
_ENOUGH = 0.6


class UnplaceableError(Exception):
    """The tags cannot be nested around this translation as they were in the source."""


@dataclass(slots=True)
class OffsetToken:
    """A word or mark at its offsets, or an opaque thing with its number."""

    start: int
    end: int
    word: str = ""
    thing: int | None = None

    @property
    def is_word(self) -> bool:
        return self.word[:1].isalnum()


@dataclass(slots=True)
class Tag:
    """An inline tag that begins or ends inside a sentence, over source tokens [first, last)."""

    opening: str
    closing: str
    first: int
    last: int
    #: begins before the sentence; ends after it
    from_start: bool = False
    to_end: bool = False
    children: list[Tag] = field(default_factory=list)
    #: the words of its own translation, and of its source
    hint: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    things: list[int] = field(default_factory=list)
    #: marks at its edges, such as quotation marks, from the edge inwards
    first_marks: list[str] = field(default_factory=list)
    last_marks: list[str] = field(default_factory=list)
    #: target tokens, once placed
    begin: int = 0
    end: int = 0


def tokenize(text: str, offset: int = 0) -> list[OffsetToken]:
    """The words and marks of a text; white space is between them."""
    return [
        OffsetToken(offset + match.start(), offset + match.end(), match[0].casefold())
        for match in _TOKEN.finditer(text)
    ]


def place_tags(tags: Sequence[Tag], source_length: int, target: Sequence[OffsetToken]) -> int:
    """Set `begin` and `end` of all tags; the number of those whose place was guessed."""
    where = {token.thing: at for at, token in enumerate(target) if token.thing is not None}
    ratio = len(target) / max(1, source_length)
    return _place_among(tags, 0, len(target), target, where, ratio)


def _place_among(
    tags: Sequence[Tag],
    low: int,
    high: int,
    target: Sequence[OffsetToken],
    where: dict[int, int],
    ratio: float,
) -> int:
    guessed = 0
    taken = bytearray(high - low)
    # Tags with a fixed place choose first.
    order = sorted(tags, key=lambda tag: (not (tag.from_start or tag.to_end), not tag.things))
    for tag in order:
        own = {where[thing] for thing in tag.things}
        gaps = [
            gap
            for gap in _gaps(low, high, target, taken, own)
            if (not own or (gap[0] <= min(own) and max(own) < gap[1]))
            and (not tag.from_start or gap[0] == low)
            and (not tag.to_end or gap[1] == high)
        ]
        if not gaps:
            raise UnplaceableError
        guessed += _choose(tag, gaps, target, own, ratio)
        taken[tag.begin - low : tag.end - low] = b"\1" * (tag.end - tag.begin)
    for tag in tags:
        guessed += _place_among(tag.children, tag.begin, tag.end, target, where, ratio)
    return guessed


def _gaps(
    low: int, high: int, target: Sequence[OffsetToken], taken: bytearray, own: set[int]
) -> list[tuple[int, int]]:
    """Stretches without other tags and without things of others; empty ones at the edges too."""
    gaps = []
    start = low
    for index in range(low, high + 1):
        if (
            index == high
            or taken[index - low]
            or (target[index].thing is not None and index not in own)
        ):
            gaps.append((start, index))
            start = index + 1
    return gaps


def _choose(
    tag: Tag,
    gaps: list[tuple[int, int]],
    target: Sequence[OffsetToken],
    own: set[int],
    ratio: float,
) -> bool:
    """Choose a stretch in one of the gaps; whether it is a guess."""
    expected = tag.first * ratio
    if tag.first == tag.last:
        spot = min(
            (min(max(round(expected), start), end) for start, end in gaps),
            key=lambda spot: abs(spot - expected),
        )
        tag.begin = tag.end = spot
        return True
    found: tuple[int, int] | None = None
    guess = False
    if tag.words or not own:
        found = _find(tag.hint, gaps, target, expected) or _find(tag.words, gaps, target, expected)
        if found is None:
            guess = True
            found = _proportional(tag, gaps, ratio)
    begin, end = found or (min(own), max(own) + 1)
    if not guess and found is not None:
        begin, end = _with_marks(tag, begin, end, gaps, target)
    if own:
        begin, end = min(begin, *own), max(end, *(index + 1 for index in own))
        gap = next(gap for gap in gaps if gap[0] <= min(own) < gap[1])
        begin, end = max(begin, gap[0]), min(end, gap[1])
    if tag.from_start:
        begin = gaps[0][0]
    if tag.to_end:
        end = gaps[-1][1]
    tag.begin, tag.end = begin, end
    return guess


def _find(
    words: Sequence[str],
    gaps: list[tuple[int, int]],
    target: Sequence[OffsetToken],
    expected: float,
) -> tuple[int, int] | None:
    """The stretch that shares most with these words, near the expected place where several do."""
    if not words:
        return None
    known = set(words)
    stems = {_stem(word) for word in words if len(word) > 3}
    best: tuple[float, float] | None = None
    chosen: tuple[int, int] | None = None
    for low, high in gaps:
        sums, counts = [0.0], [0]
        for token in target[low:high]:
            hit = 1.0 if token.word in known else 0.8 if _stem(token.word) in stems else 0.0
            sums.append(sums[-1] + (hit if token.word else 0))
            counts.append(counts[-1] + token.is_word)
        # Marks and things lie between the words: a stretch may have more tokens than words.
        for start in range(high - low):
            if not target[low + start].is_word and target[low + start].word not in known:
                continue
            for end in range(start + 1, min(high - low, start + len(words) + 4) + 1):
                share = (sums[end] - sums[start]) / max(len(words), counts[end] - counts[start])
                rank = (round(share, 6), -abs(low + start - expected) - (end - start) / 1000)
                if share >= _ENOUGH and (best is None or rank > best):
                    best, chosen = rank, (low + start, low + end)
    return chosen


def _with_marks(
    tag: Tag, begin: int, end: int, gaps: list[tuple[int, int]], target: Sequence[OffsetToken]
) -> tuple[int, int]:
    """The stretch with the marks beside it that the tag holds in the source too."""
    low, high = next(gap for gap in gaps if gap[0] <= begin <= gap[1])
    for mark in reversed(tag.first_marks):
        if begin > low and target[begin - 1].word == mark:
            begin -= 1
    for mark in reversed(tag.last_marks):
        if end < high and target[end].word == mark:
            end += 1
    return begin, end


def _proportional(tag: Tag, gaps: list[tuple[int, int]], ratio: float) -> tuple[int, int]:
    wide = [gap for gap in gaps if gap[1] > gap[0]]
    if not wide:
        raise UnplaceableError
    middle = (tag.first + tag.last) * ratio / 2
    low, high = min(wide, key=lambda gap: max(gap[0] - middle, middle - gap[1], 0))
    size = min(high - low, max(1, round((tag.last - tag.first) * ratio)))
    begin = min(max(low, round(middle - size / 2)), high - size)
    return begin, begin + size


def _stem(word: str) -> str:
    """The first letters of a word, more of a longer one: inflection is mostly at the end."""
    return word[: max(4, round(len(word) * 0.7))] if len(word) > 3 else "\0"
