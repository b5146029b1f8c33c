"""Pieces as Markdown: new text is escaped wherever it could be taken for markup."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bothends.documents.pieces import New, Open, Piece

# What may begin a block, or markup, at the start of a line of text.
_BLOCK_START = re.compile(
    r"(#{1,6}(?=\s|$)|[-+*](?=\s|$)|>|=+\s*$|-+\s*$|(?:-\s*){3,}$|~~~|\||:(?=\s?-))"
    r"|(\d{1,9})([.)])(?=\s|$)"
)
_SPECIAL = re.compile(
    r"\\(?=[!-/:-@\[-`{-~\n]|$)|[`\[\]*]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])"
    r"|&(?=#?\w{1,40};)|~(?=~)|(?<=~)~"
)


def write_markdown(pieces: Sequence[Piece]) -> str:
    """Pieces as Markdown; new text is escaped where it could be taken for markup."""
    parts: list[str] = []
    for index, piece in enumerate(pieces):
        if not isinstance(piece, New):
            parts.append(piece.raw)
            continue
        escaped = _SPECIAL.sub(r"\\\g<0>", piece.text)
        following = pieces[index + 1] if index + 1 < len(pieces) else None
        if escaped.endswith("!") and isinstance(following, Open):
            escaped = escaped[:-1] + "\\!"
        at_start = not parts or parts[-1].endswith("\n")
        lines = escaped.split("\n")
        lines = [
            _escape_start(line.lstrip() if number else line) if number or at_start else line
            for number, line in enumerate(lines)
        ]
        parts.append("\n".join(lines))
    return "".join(parts)


def _escape_start(line: str) -> str:
    match = _BLOCK_START.match(line)
    if match is None:
        return line
    if match[2]:
        return f"{match[2]}\\{line[len(match[2]) :]}"
    return f"\\{line}"
