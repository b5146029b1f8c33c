"""How wide text is on a terminal, where a Chinese character takes as much room as two letters."""

from __future__ import annotations

import unicodedata


def display_width(text: str) -> int:
    """The columns that `text` takes: two for a wide character, none for a mark on another."""
    return sum(map(_columns, text))


def align_right(text: str, columns: int) -> str:
    """As `str.rjust`, which counts characters."""
    return " " * (columns - display_width(text)) + text


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):  # combining marks
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
