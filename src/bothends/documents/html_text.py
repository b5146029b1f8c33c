"""Text as HTML spells it: characters with their entities, and new text escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape, unescape

from bothends.documents.pieces import New, Piece, Text

_ENTITY = re.compile(r"&(?:#\d{1,8};?|#[xX][0-9a-fA-F]{1,7};?|[A-Za-z][A-Za-z0-9]{1,32};)")


def text_pieces(raw: str) -> list[Piece]:
    """Text with its entities, each with its spelling."""
    pieces: list[Piece] = []
    cursor = 0
    for match in _ENTITY.finditer(raw):
        if match.start() > cursor:
            pieces.append(Text(raw[cursor : match.start()], raw[cursor : match.start()]))
        pieces.append(Text(unescape(match[0]), match[0]))
        cursor = match.end()
    if cursor < len(raw):
        pieces.append(Text(raw[cursor:], raw[cursor:]))
    return pieces


def write_html(pieces: Sequence[Piece]) -> str:
    """Pieces as HTML; new text is escaped."""
    return "".join(
        escape(piece.text, quote=False) if isinstance(piece, New) else piece.raw for piece in pieces
    )
