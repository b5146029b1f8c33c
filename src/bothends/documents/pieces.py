"""The inline content of a block: text, opaque things and tags, in order.

A format cuts a document into literal source, which never changes, and flows: stretches of running
text such as a paragraph, a heading or a table cell. Only flows are translated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Text:
    """Characters as a reader sees them, and how the document spells them (`&` and `&amp;`)."""

    text: str
    raw: str


@dataclass(frozen=True, slots=True)
class New:
    """Text that a translator wrote: the format spells it so that it is only text."""

    text: str


Role = Literal["word", "void", "break"]


@dataclass(frozen=True, slots=True)
class Atom:
    """Something opaque that stays as it is.

    A `word` takes part in its sentence (code, a link without text), a `void` does not if it stands
    at the edge (an image, a comment), and a `break` ends the sentence (a line break).
    """

    raw: str
    role: Role = "word"


@dataclass(frozen=True, slots=True)
class Open:
    """The start of an inline tag; each has its `Close` in the same flow, properly nested."""

    raw: str


@dataclass(frozen=True, slots=True)
class Close:
    """The end of the innermost open tag."""

    raw: str


Piece = Text | New | Atom | Open | Close
Flow = Sequence[Piece]


def merge_new(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces with neighbouring new texts joined: spelling may depend on neighbours."""
    merged: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, New) and merged and isinstance(merged[-1], New):
            merged[-1] = New(merged[-1].text + piece.text)
        else:
            merged.append(piece)
    return merged
