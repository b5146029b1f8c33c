"""What people see of images and links in Markdown: descriptions and titles.

Tags of HTML among the text have them, too. All are asked for beside the running text, and written
in the place of the old ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from bothends.documents.html_attributes import AttributeTexts, is_for_people
from bothends.documents.markdown_writing import write_markdown
from bothends.documents.pieces import Atom, Close, Flow, Piece, Text, merge_new

#: Characters that are nothing but themselves.
_PLAIN = r"[^\[\]\\`*_<>&{0}]|&(?!#?\w{{1,40}};)"
_ALT = re.compile(rf"\A!\[((?:{_PLAIN.format('')})+)\](?=\(|\[[^\]])")
#: At the end of an image or a link: ](address "a title")
_TITLE = re.compile(
    rf"""(?<=\s)(?:"((?:{_PLAIN.format('"')})+)"|'((?:{_PLAIN.format("'")})+)')(?=\s*\)\Z)"""
)

#: The new spelling of a text.
Respell = Callable[[str], str]


class ImageAndLinkTexts:
    """The texts of a document's images and links, each of which is asked for once."""

    def __init__(self) -> None:
        self._html = AttributeTexts()
        self._values: dict[str, str] = {}

    def note(self, flow: Flow) -> None:
        """Look for texts in a flow."""

        def note(value: str) -> str:
            if is_for_people(value):
                self._values.setdefault(value, value)
            return value

        self._html.note_pieces(flow)
        for piece in flow:
            _respelled(piece, note)

    def flows(self) -> list[Flow]:
        """What there is to ask."""
        return [*self._html.flows(), *([Text(value, value)] for value in self._values)]

    def learn(self, answers: Sequence[Sequence[Piece]]) -> None:
        """The answers to `flows`."""
        count = len(answers) - len(self._values)
        self._html.learn(answers[:count])
        written = [write_markdown(merge_new(pieces)) for pieces in answers[count:]]
        self._values = {
            value: new or value for value, new in zip(self._values, written, strict=True)
        }

    def written(self, pieces: Sequence[Piece]) -> list[Piece]:
        """A flow with the texts that were learned."""

        def learned(value: str) -> str:
            return self._values.get(value, value)

        return [_respelled(piece, learned) for piece in self._html.written_pieces(pieces)]


def _respelled(piece: Piece, respell: Respell) -> Piece:
    """An image, or the end of a link, with another description and title."""
    if not isinstance(piece, (Atom, Close)):
        return piece
    is_image = isinstance(piece, Atom) and piece.raw.startswith("![")
    if not is_image and not piece.raw.startswith("]("):
        return piece

    def describe(match: re.Match[str]) -> str:
        return f"![{respell(match[1])}]"

    def entitle(match: re.Match[str]) -> str:
        quote = match[0][0]
        title = respell(match[1] or match[2])
        return f"{quote}{title.replace(quote, chr(92) + quote)}{quote}"

    raw = _TITLE.sub(entitle, _ALT.sub(describe, piece.raw) if is_image else piece.raw)
    return Atom(raw, piece.role) if isinstance(piece, Atom) else Close(raw)
