"""Other ways to say a part of a translation: a gap whose first word must be a new one."""

from __future__ import annotations

from dataclasses import replace

from bothends.errors import UsageError
from bothends.filling.filler import Filler
from bothends.filling.options import Filling, FillOptions
from bothends.filling.rules import bare_word


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

    Those that also differ from each other in their first word come first.
    """
    start, end = find_span(translation, span)
    while start < end and translation[start].isspace():
        start += 1
    while start < end and translation[end - 1].isspace():
        end -= 1
    old = translation[start:end].split()
    if not old:
        raise UsageError("the span is nothing but spaces")
    wide = replace(options, n_best=max(8, 3 * options.n_best), beam=max(8, options.beam))
    found = filler.fill(source, translation[:start], translation[end:], wide, old[:1])
    seen: set[str] = set()
    fresh: list[Filling] = []
    others: list[Filling] = []
    for filling in found:
        if not filling.middle.strip():
            continue  # leaving the span out is no way to say it
        first = bare_word((filling.middle.split() or [""])[0])
        (others if first in seen else fresh).append(filling)
        seen.add(first)
    return (fresh + others)[: options.n_best]
