"""What people see or hear of a tag's attributes: descriptions of images, hints, labels.

The value of an attribute is a small text of its own. It is asked for beside the running text, and
written in the place of the old one, in its quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from html import escape, unescape

from bothends.documents.html_scanner import OPAQUE_NAMES
from bothends.documents.html_text import text_pieces, write_html
from bothends.documents.pieces import Atom, Flow, Open, Piece
from bothends.text.languages import distance, web_code

#: Attributes that hold text.
SEEN = frozenset({"alt", "title", "placeholder", "aria-label", "summary"})
#: Elements whose attributes are no text: code, what no browser shows, and style sheets, which a
#: title tells apart.
_SILENT = {"link", *OPAQUE_NAMES} - {*"textarea iframe svg canvas audio video object".split()}
_TRANSLATE_NO = re.compile(
    r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*["'][^"']*\bnotranslate\b""", re.IGNORECASE
)
_NAME = re.compile(r"<([A-Za-z][^\s/>]*)")
_ATTRIBUTE = re.compile(
    r"""[\s/]*(?P<name>[^\s/>][^\s/>=]*)"""
    r"""(?:\s*=\s*(?P<value>"[^"]*"|'[^']*'|(?!["'])[^\s>]+)?)?"""
)
#: What needs quotes around it.
_UNQUOTED = re.compile(r"""[^\s"'=<>`/]+""")
#: What only words of programs have: getName, get_name, a::b, name(), IMG2034, x=1
_CODE = re.compile(r"[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]|[_={}<>$\\|]|::|\(\)")

#: The new spelling of a value, between these quotes (none, " or '); None to keep it.
Respell = Callable[[str, str], str | None]


def is_kept(tag: str) -> bool:
    """Whether a tag says that what belongs to it must not be translated."""
    return _TRANSLATE_NO.search(tag) is not None


def is_for_people(text: str) -> bool:
    """Whether a short text beside the running text is worth translating: words, and not code.

    Addresses and names of files are protected wherever they stand.
    """
    is_word = text.isascii() and not any(map(str.isspace, text.strip()))
    return any(map(str.isalpha, text)) and not (is_word and _CODE.search(text))


def respell_attributes(raw: str, respell: Respell, names: Collection[str] = SEEN) -> str:
    """A tag, or an element that begins with it, with other values of attributes of these names."""
    named = _NAME.match(raw)
    if named is None or named[1].lower() in _SILENT:
        return raw
    changes: list[tuple[int, int, str]] = []
    position = named.end()
    while match := _ATTRIBUTE.match(raw, position):
        position = match.end()
        value = match["value"]
        if value and match["name"].lower() in names:
            quote = value[0] if value[0] in "\"'" else ""
            new = respell(value[len(quote) : len(value) - len(quote)], quote)
            if new is not None:
                changes.append((*match.span("value"), f"{quote}{new}{quote}"))
        elif not value and match[0].rstrip().endswith("="):  # a quote that is never closed
            break
    if not changes or is_kept(raw[: position + 1]):
        return raw
    for start, end, value in reversed(changes):
        raw = raw[:start] + value + raw[end:]
    return raw


def in_language(raw: str, source: str | None, target: str | None) -> str:
    """The tag of a whole page, `<html lang="en">`, with the language that it is in now.

    Browsers and screen readers go by it. A page that says to be in another language keeps its own.
    """
    named = _NAME.match(raw)
    if source is None or target is None or named is None or named[1].lower() != "html":
        return raw

    def respell(value: str, _: str) -> str | None:
        return None if distance(source, value) is None else web_code(target)

    return respell_attributes(raw, respell, {"lang", "xml:lang"})


class AttributeTexts:
    """The texts in the attributes of a document, each of which is asked for once."""

    def __init__(self) -> None:
        self._values: dict[str, str | None] = {}

    def note(self, raw: str) -> None:
        """Look for texts in a tag."""

        def note(value: str, _: str) -> None:
            if is_for_people(unescape(value)):
                self._values.setdefault(value)

        respell_attributes(raw, note)

    def note_pieces(self, pieces: Sequence[Piece]) -> None:
        """Look for texts in the tags of a flow."""
        for piece in pieces:
            if isinstance(piece, (Open, Atom)):
                self.note(piece.raw)

    def flows(self) -> list[Flow]:
        """What there is to ask."""
        return [text_pieces(value) for value in self._values]

    def learn(self, answers: Sequence[Sequence[Piece]]) -> None:
        """The answers to `flows`."""
        self._values = dict(zip(self._values, map(write_html, answers), strict=True))

    def written(self, raw: str) -> str:
        """A tag with the texts that were learned."""
        return respell_attributes(raw, self._respell)

    def written_pieces(self, pieces: Sequence[Piece]) -> list[Piece]:
        """A flow with them."""
        return [self._written_piece(piece) for piece in pieces]

    def _written_piece(self, piece: Piece) -> Piece:
        if isinstance(piece, Open):
            return Open(self.written(piece.raw))
        return Atom(self.written(piece.raw), piece.role) if isinstance(piece, Atom) else piece

    def _respell(self, value: str, quote: str) -> str | None:
        new = self._values.get(value)
        if not new or new == value:
            return None
        if not quote:
            return new if _UNQUOTED.fullmatch(new) else f'"{new.replace(chr(34), "&quot;")}"'
        return new.replace(quote, escape(quote))
