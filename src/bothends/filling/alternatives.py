"""Other ways to say a part of a translation: a gap whose first word must be a new one."""

from __future__ import annotations

from dataclasses import replace

from bothends.errors import UsageError
from bothends.filling.filler import Filler
from bothends.filling.options import Filling, FillOptions
from bothends.search.options import MAX_BEAM
from bothends.text.words import first_word


def find_span(translation: str, span: str | tuple[int, int]) -> tuple[int, int]:
    """Where a span is: a pair of character offsets, or a part of the text that occurs once."""
    if isinstance(span, str):
        count = translation.count(span) if span else 0
        if count != 1:
            many = "is not in the translation" if not count else f"occurs {count} times in it"
            raise UsageError(f"span {span!r} {many}; give its first and last offset instead")
        start = translation.index(span)
        return start, start + len(span)
    start, end = span
    if not 0 <= start < end <= len(translation):
        raise UsageError(
            f"span {start}:{end} is not in the translation, which has {len(translation)} characters"
        )
    return start, end


def find_alternatives(
    filler: Filler,
    source: str,
    translation: str,
    span: str | tuple[int, int],
    options: FillOptions,
) -> list[Filling]:
    """Other ways to say a span of a translation; each begins with another word than the span.

    Those that also differ from each other in their first word come first. A span that cuts a word
    is widened to all of it: half a word has no other way to be said.
    """
    start, end = _whole_words(translation, *find_span(translation, span))
    old = translation[start:end]
    if not old:
        raise UsageError("the span is nothing but spaces")
    most = min(MAX_BEAM, max(8, 3 * options.n_best))
    wide = replace(options, n_best=most, beam=max(8, options.beam))
    # The same words may well be on both sides of a span.
    ends = (translation[:start], translation[end:])
    found = filler.fill(source, *ends, wide, filter(None, [first_word(old)]), may_overlap=True)
    seen: set[str] = set()
    fresh: list[Filling] = []
    others: list[Filling] = []
    for filling in found:
        new = filling.middle.strip()
        if not new or new == old or (first := first_word(new)) == first_word(old) != "":
            continue  # to leave a span out, or to say the same again, is no other way to say it
        (others if first in seen else fresh).append(filling)
        seen.add(first)
    return (fresh + others)[: options.n_best]


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without spaces around it, and with the whole of a word that it begins or ends in."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    while 0 < start < end and _in_word(text[start - 1]) and _in_word(text[start]):
        start -= 1
    while start < end < len(text) and _in_word(text[end - 1]) and _in_word(text[end]):
        end += 1
    return start, end


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
