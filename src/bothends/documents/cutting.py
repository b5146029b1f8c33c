"""Flows cut into sentences, with what must not be translated made opaque.

A flow becomes items: text, things and tag marks. Sentences are found in its text, in which a thing
fills as many places as it had characters, so that offsets hold from beginning to end.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

from bothends.documents.options import DocumentOptions, DocumentReport
from bothends.documents.pieces import Atom, Close, Flow, New, Open, Piece, Role, Text
from bothends.documents.protected import find_protected
from bothends.documents.sentence_units import Item, Thing, has_words, source_pieces
from bothends.text.clauses import cut_at_clauses
from bothends.text.sentences import OBJECT, SEPARATOR, Span

_OBJECTS = re.compile(f"{OBJECT}+")
#: Protected spans that are no words: beside a sentence, as an image would be, or between two.
_BESIDE: dict[str, Role] = {"symbol": "void", "escape": "break"}
#: Letters of alphabets, which a thing may have as its ending.
_ENDING = re.compile("[A-Za-z\u00c0-\u052f]{1,12}(?![^\\W_])")


class FlowCutter:
    """Cuts flows by the options of a document, and counts what it finds."""

    def __init__(
        self, options: DocumentOptions, report: DocumentReport, protect: Collection[str]
    ) -> None:
        self._options = options
        self._report = report
        self._protect = protect

    def cut(self, flow: Flow, whole: bool, counted: bool) -> list[list[Item]]:
        """Gap, sentence, gap, ..., gap: items in order, none left out."""
        items, text = self._itemise(flow)
        spans = self._spans(text, items, whole, counted)
        cursor = _Cursor(items)
        ends = _tag_ends(items)
        parts: list[list[Item]] = []
        for span in spans:
            gap = list(cursor.take(span.start, marks=True))
            # A tag that ends inside the sentence belongs to it, and so does one that begins inside.
            own: list[Item] = []
            while gap and isinstance(gap[-1], Open):
                if ends[cursor.index - len(own) - 1] >= span.end:
                    break
                own.insert(0, gap.pop())
            own += cursor.take(span.end, marks=False)
            while isinstance(cursor.mark(), Close) and ends[cursor.index] > span.start:
                own += cursor.take_mark()
            parts += [gap, own]
            if counted:
                self._count(own)
        return [*parts, list(cursor.take(len(text), marks=True))]

    def _count(self, items: Sequence[Item]) -> None:
        self._report.sentences += has_words(items)
        for item in items:
            self._report.tags += isinstance(item, Open)
            self._report.protected_spans += isinstance(item, Thing) and item.target is None

    def _itemise(self, flow: Flow) -> tuple[list[Item], str]:
        """The flow with its protected spans and terms as things, and its text.

        A thing fills as many places of the text as it had characters, so that offsets hold.
        """
        text = "".join(
            piece.text if isinstance(piece, Text) else OBJECT if isinstance(piece, Atom) else ""
            for piece in flow
        )
        protected = find_protected(text, self._protect)
        found: list[tuple[int, int, str | None, str]] = [
            (start, end, None, "") for start, end, _ in protected
        ]
        beside = {start: _BESIDE[kind] for start, _, kind in protected if kind in _BESIDE}
        if self._options.glossary is not None:
            taken = [(start, end) for start, end, _, _ in found]
            found += [
                (match.start, match.end, match.target, match.source)
                for match in self._options.glossary.find(text)
                if not _overlaps(taken, match.start, match.end)
            ]
        if self._options.unknown_words is not None and self._protect:
            taken = sorted((start, end) for start, end, _, _ in found)
            found += [
                (start, end, None, "")
                for start, end in self._options.unknown_words(text)
                if not _overlaps(taken, start, end)
            ]
        found.sort(key=lambda span: span[0])
        items: list[Item] = []
        filled: list[str] = []
        cursor = _Cursor([_as_item(piece) for piece in flow])
        for start, end, target, term in found:
            before = list(cursor.take(start, marks=True))
            inside = list(cursor.take(end, marks=False))
            items += before
            # A tag inside would be lost: then it is no span. Nor is one over something opaque.
            if all(isinstance(item, Text) for item in inside):
                pieces = tuple(source_pieces(inside))
                if start in beside and target is None:
                    raw = "".join(piece.raw for piece in pieces if isinstance(piece, Text))
                    pieces = (Atom(raw, beside[start]),)
                items.append(Thing(pieces, target, term))
            else:
                items += inside
        items += cursor.take(len(text), marks=True)
        items = _joined(items)
        for item in items:
            if isinstance(item, Text):
                filled.append(item.text)
            elif isinstance(item, Thing):
                filled.append(_fill(item))
        return items, "".join(filled)

    def _spans(self, text: str, items: Sequence[Item], whole: bool, counted: bool) -> list[Span]:
        options = self._options
        if whole:
            stripped = text.strip()
            start = text.find(stripped)
            spans = [Span(start, start + len(stripped))] if stripped else []
        else:
            spans = list(options.splitter(text, options.language))
        voids = _void_places(items)
        trimmed = [_without_voids(text, span, voids) for span in spans] if voids else spans
        spans = [span for span in trimmed if span.end > span.start]
        if options.max_length is None:
            return spans
        cut: list[Span] = []
        for span in spans:
            parts = cut_at_clauses(text, span, self._measure, options.max_length)
            self._report.cut_sentences += counted and len(parts) > 1
            cut += parts
        return cut

    def _measure(self, text: str) -> int:
        return self._options.length(_OBJECTS.sub(self._options.placeholders.make(1), text))


class _Cursor:
    """Walks over items once, by offsets into their text."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        #: of the next item
        self.index = 0
        self._offset = 0
        self._used = 0  # of the item at the index

    def take(self, upto: int, marks: bool) -> Iterator[Item]:
        """The items up to an offset; with `marks`, also the tags that stand right there."""
        while self.index < len(self._items):
            item = self._items[self.index]
            width = _width(item)
            if width == 0:
                if self._offset > upto or (self._offset == upto and not marks):
                    return
                self.index += 1
                yield item
                continue
            if self._offset >= upto:
                return
            step = min(width - self._used, upto - self._offset)
            whole = step == width
            part = item if whole else _part(item, self._used, self._used + step)
            self._used += step
            self._offset += step
            if self._used == width:
                self.index += 1
                self._used = 0
            yield part

    def mark(self) -> Item | None:
        """The tag that stands here, if one does."""
        item = self._items[self.index] if self.index < len(self._items) else None
        return item if isinstance(item, (Open, Close)) else None

    def take_mark(self) -> list[Item]:
        self.index += 1
        return [self._items[self.index - 1]]


def _tag_ends(items: Sequence[Item]) -> dict[int, int]:
    """For each tag mark, by its index, the offset of its other end."""
    ends: dict[int, int] = {}
    stack: list[tuple[int, int]] = []
    offset = 0
    for index, item in enumerate(items):
        if isinstance(item, Open):
            stack.append((index, offset))
        elif isinstance(item, Close):
            opened, start = stack.pop()
            ends[opened], ends[index] = offset, start
        offset += _width(item)
    return ends


def _as_item(piece: Piece) -> Item:
    if isinstance(piece, New):
        return Text(piece.text, piece.text)
    return Thing((piece,)) if isinstance(piece, Atom) else piece


def _joined(items: Sequence[Item]) -> list[Item]:
    """The items with things that touch as one, and with an ending such as the s of `Foo`s.

    Names that touch would read as one word, which no model copies.
    """
    joined: list[Item] = []
    for item in items:
        last = joined[-1] if joined else None
        if _is_word(last) and isinstance(last, Thing):
            if _is_word(item) and isinstance(item, Thing):
                joined[-1] = Thing((*last.pieces, *item.pieces))
                continue
            ending = _ENDING.match(item.text) if isinstance(item, Text) else None
            if ending is not None:
                joined[-1] = Thing((*last.pieces, *source_pieces([_part(item, 0, ending.end())])))
                item = _part(item, ending.end(), _width(item))
        if _width(item) or isinstance(item, (Open, Close)):
            joined.append(item)
    return joined


def _is_word(item: Item | None) -> bool:
    """Whether this is a thing that takes part in its sentence as it is."""
    if not isinstance(item, Thing) or item.target is not None:
        return False
    return all(not isinstance(piece, Atom) or piece.role == "word" for piece in item.pieces)


def _fill(thing: Thing) -> str:
    piece = thing.pieces[0]
    ends = isinstance(piece, Atom) and piece.role == "break"
    return SEPARATOR if ends else OBJECT * _width(thing)


def _width(item: Item) -> int:
    if isinstance(item, Text):
        return len(item.text)
    if isinstance(item, Thing):
        return sum(len(piece.text) if isinstance(piece, Text) else 1 for piece in item.pieces)
    return 0


def _part(item: Item, start: int, end: int) -> Item:
    """Some characters of a text or of a long protected span; how they are spelled stays known."""
    if isinstance(item, Thing):
        inner = _Cursor([_as_item(piece) for piece in item.pieces])
        list(inner.take(start, marks=False))
        return Thing(tuple(source_pieces(inner.take(end, marks=False))), None)
    if isinstance(item, Text):
        if item.raw == item.text:
            return Text(item.text[start:end], item.text[start:end])
        # An entity of several characters: its spelling goes with the first.
        return Text(item.text[start:end], item.raw if start == 0 else "")
    return item


def _overlaps(taken: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of these sorted, separate spans shares a character with [start, end)."""
    index = bisect_left(taken, (end, 0)) - 1
    return index >= 0 and taken[index][1] > start


def _void_places(items: Sequence[Item]) -> list[int]:
    places = []
    offset = 0
    for item in items:
        first = item.pieces[0] if isinstance(item, Thing) else None
        if isinstance(first, Atom) and first.role != "word":
            places.append(offset)
        offset += _width(item)
    return places


def _without_voids(text: str, span: Span, voids: Sequence[int]) -> Span:
    """The span without images, comments and breaks at its edges."""
    start, end = span
    inside = voids[bisect_left(voids, start) : bisect_right(voids, end)]
    places = set(inside)
    while start < end and (start in places or text[start].isspace()):
        start += 1
    while end > start and (end - 1 in places or text[end - 1].isspace()):
        end -= 1
    return Span(start, end)
