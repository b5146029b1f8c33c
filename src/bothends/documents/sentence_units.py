"""One sentence of a flow: what a model is asked, and the flow's pieces around its answer.

A sentence is text, things (opaque pieces, protected spans, glossary terms) and the marks of inline
tags. Things become placeholders in the request. What comes back is checked: each thing is there
exactly once, or the answer is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from bothends.documents.pieces import Atom, Close, New, Open, Piece, Text, merge_new
from bothends.documents.placeholders import PlaceholderStyle, is_letter
from bothends.documents.placement import OffsetToken, Tag, place_tags, tokenize

_SPACE = re.compile(r"\s+")
_WIDE = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
#: Sentences with more tags, or longer ones with tags, are translated in pieces: there, placing
#: would take too long and mean little.
MAX_TAGS = 32
MAX_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class Thing:
    """An opaque part of a sentence; a glossary term carries its target."""

    pieces: tuple[Piece, ...]
    target: str | None = None
    term: str = ""


Item = Text | Thing | Open | Close


class _Touching(NamedTuple):
    """Whether a thing stands right after a word, and right before one, as a note's mark does."""

    left: bool
    right: bool


def source_pieces(items: Iterable[Item]) -> list[Piece]:
    """The pieces that the items came from."""
    pieces: list[Piece] = []
    for item in items:
        pieces.extend(item.pieces if isinstance(item, Thing) else [item])
    return pieces


def without_terms(items: Sequence[Item]) -> list[Item]:
    """The items with glossary terms as the text that they are in the source."""
    plain: list[Item] = []
    for item in items:
        if isinstance(item, Thing) and item.target is not None:
            plain.extend(piece for piece in item.pieces if isinstance(piece, Text))
        else:
            plain.append(item)
    return plain


def join_spaces(text: str) -> str:
    """Each run of white space as one space; a line break between wide characters as nothing."""

    def joined(match: re.Match[str]) -> str:
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        wide = "\n" in match[0] and _WIDE.match(before) and _WIDE.match(after)
        return "" if wide else " "

    return _SPACE.sub(joined, text).strip()


def is_words(text: str) -> bool:
    return any(character.isalpha() for character in text)


def has_words(items: Sequence[Item]) -> bool:
    return any(isinstance(item, Text) and is_words(item.text) for item in items)


def _is_break(thing: Thing) -> bool:
    return any(isinstance(piece, Atom) and piece.role == "break" for piece in thing.pieces)


class SentenceRequest:
    """A sentence as one string for a model, with names for its things."""

    def __init__(self, items: Sequence[Item], style: PlaceholderStyle) -> None:
        self.items = items
        self.things = [item for item in items if isinstance(item, Thing)]
        self.tags = _tags(items)
        self._style = style
        text = "".join(item.text for item in items if isinstance(item, Text))
        numbers = style.numbers(text, len(self.things)) if self.things else []
        self.numbers = numbers or []
        #: False: the sentence must be translated in pieces
        tags = len(_all(self.tags))
        self.possible = (
            numbers is not None
            and not any(map(_is_break, self.things))  # what is on both sides is no one sentence
            and (not tags or (tags <= MAX_TAGS and len(text) <= MAX_CHARACTERS))
        )
        names = iter([style.make(number) for number in self.numbers])
        self._named = [
            item.text if isinstance(item, Text) else next(names) if isinstance(item, Thing) else ""
            for item in (items if self.possible else ())
        ]
        self._touching = self._set_apart() if self.possible else []
        self.text = join_spaces("".join(self._named))

    def _set_apart(self) -> list[_Touching]:
        """Put a space between names and words that they touch; which things do, on which side."""
        touching: list[_Touching] = []
        visible = [index for index, named in enumerate(self._named) if named]
        for before, index, after in zip(
            [None, *visible], visible, [*visible[1:], None], strict=False
        ):
            if isinstance(self.items[index], Thing):
                left = before is not None and is_letter(self._named[before][-1])
                # Of two things that touch, the second one does so.
                right = (
                    after is not None
                    and isinstance(self.items[after], Text)
                    and is_letter(self._named[after][0])
                )
                touching.append(_Touching(left, right))
                self._named[index] = f"{' ' * left}{self._named[index]}{' ' * right}"
        return touching

    def hints(self) -> list[str]:
        """What else to ask: the text of each tag alone, to find it in the translation."""
        return list(dict.fromkeys(text for _, text in self._tag_texts()))

    def _tag_texts(self) -> list[tuple[Tag, str]]:
        pairs = []
        for tag in _all(self.tags):
            text = join_spaces("".join(self._named[tag.first : tag.last]))
            if any(character.isalpha() for character in text):
                pairs.append((tag, text))
        return pairs

    def answer(self, translation: str, hints: dict[str, str]) -> tuple[list[Piece], int] | None:
        """The pieces of the translated sentence and how many tags were guessed.

        None if a thing is lost or repeated, or all words are. Raises `UnplaceableError` if the tags
        do not fit.
        """
        found = self._style.find(translation, self.numbers)
        if found is None or self._lost_words(translation, found):
            return None
        target: list[OffsetToken] = []
        cursor = 0
        for start, end, index in found:
            target += tokenize(translation[cursor:start], cursor)
            target.append(OffsetToken(start, end, thing=index))
            cursor = end
        target += tokenize(translation[cursor:], cursor)
        placed, length = self._in_tokens(hints)
        guessed = place_tags(placed, length, target) if placed else 0
        writer = _Writer(translation, target, self.things, self._touching)
        pieces = writer.write(placed)
        return _with_breaks(merge_new(pieces), self.items), guessed

    def _lost_words(self, translation: str, found: Sequence[tuple[int, int, int]]) -> bool:
        """Whether nothing but the names of things came back for a sentence with words."""
        if not found or any(thing.target is not None for thing in self.things):
            return False
        ends = [0, *(end for _, end, _ in found)]
        starts = [*(start for start, _, _ in found), len(translation)]
        rest = "".join(translation[end:start] for end, start in zip(ends, starts, strict=True))
        return has_words(self.items) and not is_words(rest)

    def _in_tokens(self, hints: dict[str, str]) -> tuple[list[Tag], int]:
        """The tags over source tokens instead of items, with their words and things."""
        starts: list[int] = []
        tokens: list[OffsetToken] = []
        thing = 0
        for item in self.items:
            starts.append(len(tokens))
            if isinstance(item, Text):
                tokens += tokenize(item.text)
            elif isinstance(item, Thing):
                tokens.append(OffsetToken(0, 0, thing=thing))
                thing += 1
        starts.append(len(tokens))
        texts = {id(tag): text for tag, text in self._tag_texts()}

        def convert(tag: Tag) -> Tag:
            first, last = starts[tag.first], starts[tag.last]
            inside = tokens[first:last]
            hint = self._style_free(hints.get(texts.get(id(tag), ""), ""))
            return Tag(
                tag.opening,
                tag.closing,
                first,
                last,
                tag.from_start,
                tag.to_end,
                [convert(child) for child in tag.children],
                hint,
                [token.word for token in inside if token.is_word],
                [token.thing for token in inside if token.thing is not None],
                _edge_marks(inside),
                _edge_marks(inside[::-1]),
            )

        return [convert(tag) for tag in self.tags], len(tokens)

    def _style_free(self, hint: str) -> list[str]:
        names = {self._style.make(number).casefold() for number in self.numbers}
        return [token.word for token in tokenize(hint) if token.is_word and token.word not in names]


def _edge_marks(tokens: Sequence[OffsetToken]) -> list[str]:
    return [
        token.word for token in takewhile(lambda token: token.word and not token.is_word, tokens)
    ]


def _tags(items: Sequence[Item]) -> list[Tag]:
    """The tree of tags over item indices; those that begin before or end after are pinned."""
    roots: list[Tag] = []
    stack: list[Tag] = []
    for index, item in enumerate(items):
        if isinstance(item, Open):
            tag = Tag(item.raw, "", index, len(items), to_end=True)
            (stack[-1].children if stack else roots).append(tag)
            stack.append(tag)
        elif isinstance(item, Close):
            if stack:
                tag = stack.pop()
                tag.closing, tag.last, tag.to_end = item.raw, index + 1, False
            else:
                roots = [Tag("", item.raw, 0, index + 1, from_start=True, children=roots)]
    return roots


def _all(tags: Sequence[Tag]) -> list[Tag]:
    found = list(tags)
    for tag in found:  # grows while it is read
        found.extend(tag.children)
    return found


class _Writer:
    """Writes a translation with its tags and things as pieces."""

    def __init__(
        self,
        text: str,
        tokens: Sequence[OffsetToken],
        things: Sequence[Thing],
        touching: Sequence[_Touching],
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.things = things
        self.touching = touching
        self.pieces: list[Piece] = []
        self._in_order = [token for token in tokens if token.thing is not None]
        self._next = 0

    def write(self, tags: Sequence[Tag]) -> list[Piece]:
        self._inside(tags, 0, len(self.text))
        return self.pieces

    def _inside(self, tags: Sequence[Tag], start: int, end: int) -> None:
        cursor = start
        for tag in sorted(tags, key=lambda tag: (tag.begin, tag.end)):
            begin = start if tag.from_start else self._offset(tag.begin, end)
            if tag.to_end:
                finish = end
            else:
                finish = self.tokens[tag.end - 1].end if tag.end > tag.begin else begin
            self._plain(cursor, begin)
            if not tag.from_start:
                self.pieces.append(Open(tag.opening))
            self._inside(tag.children, begin, finish)
            if not tag.to_end:
                self.pieces.append(Close(tag.closing))
            cursor = finish
        self._plain(cursor, end)

    def _offset(self, index: int, end: int) -> int:
        return min(self.tokens[index].start, end) if index < len(self.tokens) else end

    def _plain(self, start: int, end: int) -> None:
        while self._next < len(self._in_order) and self._in_order[self._next].start < end:
            token = self._in_order[self._next]
            self._next += 1
            thing, touches = self.things[token.thing or 0], self.touching[token.thing or 0]
            before = self.text[start : token.start]
            self._new(before.rstrip(" ") if touches.left else before)
            self.pieces.extend(thing.pieces if thing.target is None else [New(thing.target)])
            start = token.end + (touches.right and self.text[token.end : token.end + 1] == " ")
        self._new(self.text[start:end])

    def _new(self, text: str) -> None:
        if text:
            self.pieces.append(New(text))


def _with_breaks(pieces: Sequence[Piece], items: Sequence[Item]) -> list[Piece]:
    """The pieces with the source's line breaks at the nearest spaces, in proportion."""
    source = "".join(
        item.text if isinstance(item, Text) else "\ufffc" if isinstance(item, Thing) else ""
        for item in items
    )
    breaks = [match for match in _SPACE.finditer(source) if "\n" in match[0]]
    if not breaks:
        return list(pieces)
    spaces: list[tuple[int, int, int]] = []  # place in the sentence, piece, offset in the piece
    length = 0
    for number, piece in enumerate(pieces):
        if isinstance(piece, New):
            found = (offset for offset, character in enumerate(piece.text) if character == " ")
            spaces += [(length + offset, number, offset) for offset in found]
            length += len(piece.text)
        elif isinstance(piece, (Text, Atom)):
            length += len(piece.raw)
    chosen: dict[int, dict[int, str]] = {}
    first = 0
    for index, match in enumerate(breaks):
        last = len(spaces) - (len(breaks) - index)  # the breaks after this one need spaces too
        if first > last:
            continue
        wanted = match.start() / max(1, len(source)) * length
        while first < last and abs(spaces[first + 1][0] - wanted) <= abs(spaces[first][0] - wanted):
            first += 1
        _, number, offset = spaces[first]
        chosen.setdefault(number, {})[offset] = match[0]
        first += 1
    written: list[Piece] = []
    for number, piece in enumerate(pieces):
        if isinstance(piece, New) and number in chosen:
            here = chosen[number]
            piece = New("".join(here.get(at, letter) for at, letter in enumerate(piece.text)))
        written.append(piece)
    return written
