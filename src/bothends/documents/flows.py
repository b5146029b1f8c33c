"""Flows translated: split into sentences, asked in few large calls, put together again.

Two rounds of questions do for any document: sentences as they are, with placeholders for what must
not change; then those whose placeholders or tags did not come back well, piece by piece around
them. A sentence that comes back unchanged keeps its source to the letter.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from bothends.documents.glossary import count_term
from bothends.documents.options import DocumentOptions, DocumentReport, Translate
from bothends.documents.pieces import Atom, Close, Flow, New, Open, Piece, Text
from bothends.documents.placement import UnplaceableError
from bothends.documents.protected import find_protected
from bothends.documents.sentence_units import (
    Item,
    Request,
    Thing,
    join_spaces,
    source_pieces,
    without_terms,
)
from bothends.errors import BothendsError
from bothends.text.clauses import cut_at_clauses
from bothends.text.sentences import OBJECT, SEPARATOR, Span

_OBJECTS = re.compile(f"{OBJECT}+")


@dataclass
class _Sentence:
    """A sentence on its way."""

    items: list[Item]
    #: with glossary terms masked, if there are any; and with all terms as text
    masked: Request | None = None
    plain: Request | None = None
    #: its translation, once known
    pieces: list[Piece] | None = None
    targets: list[tuple[str, str]] = field(default_factory=list)


class FlowTranslator:
    """Translates the flows of one document and keeps its report."""

    def __init__(
        self,
        translate: Translate,
        options: DocumentOptions,
        report: DocumentReport,
        protect: Collection[str],
    ) -> None:
        self._translate = translate
        self._options = options
        self._report = report
        self._protect = protect
        self._known: dict[str, str] = {}

    def translate(
        self, flows: Sequence[Flow], *, whole: bool = False, in_pieces: bool = False
    ) -> list[list[Piece]]:
        """The flows translated, in order; with `whole`, each is one sentence.

        With `in_pieces`, the text between tags is translated alone: for flows that were
        translated before, but whose tags a format could not write where they were placed.
        """
        cut = [self._cut(flow, whole, counted=not in_pieces) for flow in flows]
        sentences = [part for parts in cut for part in parts if isinstance(part, _Sentence)]
        if not in_pieces:
            self._ask(self._first_questions(sentences))
            for sentence in sentences:
                self._settle(sentence)
        failed = [sentence for sentence in sentences if sentence.pieces is None]
        self._ask([text for sentence in failed for text in self._pieces_to_ask(sentence.items)])
        for sentence in failed:
            sentence.pieces = self._in_pieces(sentence)
        return [
            [
                piece
                for part in parts
                for piece in (part.pieces or [] if isinstance(part, _Sentence) else part)
            ]
            for parts in cut
        ]

    # Questions

    def _ask(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text and text not in self._known]
        if not new:
            return
        self._learn(new, self._translate(new))

    def _learn(self, texts: Sequence[str], answers: Sequence[str]) -> None:
        if len(answers) != len(texts):
            raise BothendsError(
                f"the translator answered {len(answers)} of {len(texts)} sentences: expected all"
            )
        for text, answer in zip(texts, answers, strict=True):
            # An object mark would be taken for something opaque.
            self._known[text] = " ".join(answer.replace(OBJECT, "").split())

    def _first_questions(self, sentences: Sequence[_Sentence]) -> list[str]:
        style = self._options.placeholders
        texts: list[str] = []
        constrained: dict[str, tuple[str, ...]] = {}
        for sentence in sentences:
            items = sentence.items
            sentence.targets = [
                (item.term, item.target)
                for item in items
                if isinstance(item, Thing) and item.target is not None
            ]
            if not _has_words(items):
                continue
            sentence.plain = Request(without_terms(items), style)
            if sentence.targets and self._options.translate_with is not None:
                targets = tuple(target for _, target in sentence.targets)
                if sentence.plain.possible:
                    constrained.setdefault(sentence.plain.text, targets)
            elif sentence.targets:
                sentence.masked = Request(items, style)
            for request in (sentence.plain, sentence.masked):
                if request is not None and request.possible:
                    texts += [request.text, *request.hints()]
        if constrained and self._options.translate_with is not None:
            answers = self._options.translate_with(list(constrained), list(constrained.values()))
            self._learn(list(constrained), answers)
        return texts

    # Answers

    def _settle(self, sentence: _Sentence) -> None:
        """Choose the answer that keeps everything, if there is one."""
        if sentence.plain is None:
            # Nothing to translate, unless a glossary says so.
            sentence.pieces = self._in_pieces(sentence, counted=False)
            return
        plain = self._answer(sentence.plain)
        honoured = plain is not None and not self._missing(sentence, plain[0])
        masked = None
        if sentence.masked is not None and not honoured:
            masked = self._answer(sentence.masked)
        chosen = masked or plain
        if chosen is None:
            return
        sentence.pieces, guessed = chosen
        missing = [] if masked else self._missing(sentence, sentence.pieces)
        self._count_terms(sentence, missing)
        self._report.unplaced_tags += guessed

    def _answer(self, request: Request) -> tuple[list[Piece], int] | None:
        if not request.possible:
            return None
        answer = self._known.get(request.text, "")
        if answer == request.text and all(thing.target is None for thing in request.things):
            return source_pieces(request.items), 0
        try:
            return request.answer(answer, self._known)
        except UnplaceableError:
            return None

    def _missing(self, sentence: _Sentence, pieces: Sequence[Piece]) -> list[tuple[str, str]]:
        """The terms of a sentence that its translation uses less often than the source."""
        text = "".join(piece.text for piece in pieces if isinstance(piece, (New, Text)))
        missing = []
        for term, target in dict.fromkeys(sentence.targets):
            wanted = sentence.targets.count((term, target))
            missing += [(term, target)] * max(0, wanted - count_term(text, target))
        return missing

    def _count_terms(self, sentence: _Sentence, missing: Sequence[tuple[str, str]]) -> None:
        self._report.glossary_misses += len(missing)
        self._report.glossary_hits += len(sentence.targets) - len(missing)
        for term, _ in missing:
            self._report.missed_terms[term] = self._report.missed_terms.get(term, 0) + 1

    # Piece by piece

    def _pieces_to_ask(self, items: Sequence[Item]) -> list[str]:
        return [join_spaces(run) for run in _runs(items) if _is_words(run)]

    def _in_pieces(self, sentence: _Sentence, counted: bool = True) -> list[Piece]:
        """The text between things and tags translated alone; everything else stays in place."""
        if counted:
            self._report.fallbacks += any(isinstance(item, Thing) for item in sentence.items)
            self._report.unplaced_tags += sum(isinstance(item, Open) for item in sentence.items)
        self._count_terms(sentence, [])
        pieces: list[Piece] = []
        run: list[Text] = []
        for item in [*sentence.items, None]:
            if isinstance(item, Text):
                run.append(item)
                continue
            pieces += self._run(run)
            run = []
            if isinstance(item, Thing):
                pieces += item.pieces if item.target is None else [New(item.target)]
            elif item is not None:
                pieces.append(item)
        return pieces

    def _run(self, run: Sequence[Text]) -> list[Piece]:
        text = "".join(piece.text for piece in run)
        asked = join_spaces(text)
        answer = self._known.get(asked, "") if _is_words(text) else asked
        if answer == asked:
            return list(run)
        before = text[: len(text) - len(text.lstrip())]
        after = text[len(text.rstrip()) :]
        return [New(before + answer + after)]

    # Cutting

    def _cut(self, flow: Flow, whole: bool, counted: bool) -> list[_Sentence | list[Piece]]:
        """Sentences, and the pieces between them."""
        items, text = self._itemise(flow)
        spans = self._spans(text, items, whole, counted)
        cursor = _Cursor(items)
        ends = _tag_ends(items)
        parts: list[_Sentence | list[Piece]] = []
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
            sentence = _Sentence(own)
            parts += [source_pieces(gap), sentence]
            if counted:
                self._count(sentence.items)
        parts.append(source_pieces(cursor.take(len(text), marks=True)))
        return parts

    def _count(self, items: Sequence[Item]) -> None:
        self._report.sentences += _has_words(items)
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
        found = [(span.start, span.end, None, "") for span in find_protected(text, self._protect)]
        if self._options.glossary is not None:
            taken = [(start, end) for start, end, _, _ in found]
            found += [
                (match.start, match.end, match.target, match.source)
                for match in self._options.glossary.find(text)
                if not _overlaps(taken, match.start, match.end)
            ]
            found.sort()
        items: list[Item] = []
        filled: list[str] = []
        cursor = _Cursor([_as_item(piece) for piece in flow])
        for start, end, target, term in found:
            before = list(cursor.take(start, marks=True))
            inside = list(cursor.take(end, marks=False))
            items += before
            # A tag inside would be lost: then it is no span. Nor is one over something opaque.
            if all(isinstance(item, Text) for item in inside):
                items.append(Thing(tuple(source_pieces(inside)), target, term))
            else:
                items += inside
        items += cursor.take(len(text), marks=True)
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


def _fill(thing: Thing) -> str:
    piece = thing.pieces[0]
    if isinstance(piece, Atom):
        return SEPARATOR if piece.role == "break" else OBJECT
    return OBJECT * _width(thing)


def _width(item: Item) -> int:
    if isinstance(item, Text):
        return len(item.text)
    if isinstance(item, Thing):
        return sum(len(piece.text) if isinstance(piece, Text) else 1 for piece in item.pieces)
    return 0


def _part(item: Item, start: int, end: int) -> Item:
    """Some characters of a text or of a long protected span; how they are spelled stays known."""
    if isinstance(item, Thing):
        inner = _Cursor([piece for piece in item.pieces if isinstance(piece, Text)])
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
        if isinstance(item, Thing) and isinstance(item.pieces[0], Atom):
            if item.pieces[0].role == "void":
                places.append(offset)
        offset += _width(item)
    return places


def _without_voids(text: str, span: Span, voids: Sequence[int]) -> Span:
    """The span without images and comments at its edges."""
    start, end = span
    inside = voids[bisect_left(voids, start) : bisect_right(voids, end)]
    places = set(inside)
    while start < end and (start in places or text[start].isspace()):
        start += 1
    while end > start and (end - 1 in places or text[end - 1].isspace()):
        end -= 1
    return Span(start, end)


def _is_words(text: str) -> bool:
    return any(character.isalpha() for character in text)


def _has_words(items: Sequence[Item]) -> bool:
    return any(isinstance(item, Text) and _is_words(item.text) for item in items)


def _runs(items: Sequence[Item]) -> list[str]:
    """The text between things and tags."""
    runs = [""]
    for item in items:
        if isinstance(item, Text):
            runs[-1] += item.text
        elif isinstance(item, (Thing, Open, Close)):
            runs.append("")
    return runs
