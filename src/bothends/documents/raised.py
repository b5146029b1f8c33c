"""Superscripts and subscripts that touch a word: H<sub>2</sub>O, 5 m<sup>2</sup>, notes of a page.

As inline tags they would be placed around a word of the translation, and their text would go to the
model as a part of the word: a year with a note would be another year.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bothends.documents.pieces import Atom, Close, Open, Piece, Text
from bothends.documents.plain import write_text

_RAISED = re.compile(r"<(su[bp])\b", re.IGNORECASE)
_WORD_BEFORE = re.compile(r"[^\W_]+$")
#: A longer one is a word with a note, and not a unit or the symbol of a formula.
_LONGEST_SYMBOL = 3
#: What stands for a note: 1, [2], [a], *
_NOTE = re.compile(r"[\W\d_]*[^\W\d_]?[\W\d_]*")
#: Characters, and pieces: tags around it, entities.
_LONGEST = 12


def with_raised_opaque(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with formulas and powers as opaque words, and notes as opaque marks."""
    kept: list[Piece] = []
    index = 0
    while index < len(pieces):
        end = _end_of_raised(pieces, index)
        before = kept[-1] if kept else None
        if end is None or not isinstance(before, Text) or before.text[-1:].isspace():
            kept.append(pieces[index])
            index += 1
            continue
        inside = list(pieces[index:end])
        raw = write_text(inside)
        word = _WORD_BEFORE.search(before.text) if before.text == before.raw else None
        if word and _belongs_to(word[0], inside):
            rest = before.text[: word.start()]
            kept[-1:] = [*([Text(rest, rest)] if rest else []), Atom(word[0] + raw)]
        elif _NOTE.fullmatch(_text(inside)):
            kept.append(Atom(raw, "void"))
        else:
            kept.extend(inside)
        index = end
    return kept


def _belongs_to(word: str, inside: Sequence[Piece]) -> bool:
    """Whether the word is nothing without it."""
    is_index = inside[0].raw[:4].lower() == "<sub"  # type: ignore[union-attr]
    return is_index or len(word) <= _LONGEST_SYMBOL or word[-1].isdecimal()


def _end_of_raised(pieces: Sequence[Piece], start: int) -> int | None:
    """The index after a short element that begins here, without spaces or anything opaque."""
    first = pieces[start]
    if not isinstance(first, Open) or not _RAISED.match(first.raw):
        return None
    depth = 0
    for index in range(start, min(start + _LONGEST, len(pieces))):
        piece = pieces[index]
        depth += isinstance(piece, Open) - isinstance(piece, Close)
        if not depth:
            text = _text(pieces[start:index])
            short = 0 < len(text) <= _LONGEST and not re.search(r"\s", text)
            return index + 1 if short else None
        if isinstance(piece, Atom):
            return None
    return None


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))
