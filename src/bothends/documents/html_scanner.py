"""HTML as tokens with their exact source: tags, text, comments, and raw text such as scripts.

Follows the tokeniser of the HTML standard as far as a correct place of each token needs it. Parsers
that build a tree tell no offsets; one of them judges the result (see `html`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

_VOID_NAMES_LIST = "area base br col embed hr img input link meta param source track wbr "
VOID_NAMES = frozenset(_VOID_NAMES_LIST.split())
#: Elements whose text is no running text.
_OPAQUE_NAMES_LIST = (
    "code kbd samp var tt pre script style textarea svg math template noscript object iframe "
    "canvas audio video map datalist xmp noembed noframes plaintext listing "
)
OPAQUE_NAMES = frozenset(_OPAQUE_NAMES_LIST.split())
#: Elements inside which tags are text.
_RAW_NAMES_LIST = "script style xmp iframe noembed noframes textarea title "
_RAW_NAMES = frozenset(_RAW_NAMES_LIST.split())

# A quote that is never closed takes the rest of the page into its tag.
_ATTRIBUTES = r"""(?:[^>"'=]|=\s*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z))|=(?!\s*["'])|["'])*"""
_TOKEN = re.compile(
    r"(?P<comment><!--(?:>|->|[\s\S]*?(?:--!?>|\Z)))"
    r"|(?P<doctype><[!?][^>]*(?:>|\Z)|</(?![A-Za-z>])[^>]*(?:>|\Z))"
    rf"|(?P<close></[A-Za-z]{_ATTRIBUTES}(?:>|\Z))"
    rf"|(?P<open><[A-Za-z]{_ATTRIBUTES}(?:>|\Z))"
    r"|(?P<text>(?:[^<]+|<)(?:[^<]|<(?![A-Za-z/!?]))*)"
)
_NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")


class HtmlToken(NamedTuple):
    """A token and its source; the sources concatenated are the document."""

    kind: Literal["text", "raw", "open", "close", "comment", "doctype"]
    raw: str
    name: str = ""


def scan_html(text: str) -> Iterator[HtmlToken]:
    """The tokens of a document, in one pass."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:  # a lone character that begins nothing
            yield HtmlToken("text", text[position])
            position += 1
            continue
        kind = match.lastgroup
        position = match.end()
        found = _NAME.match(match[0]) if kind in ("open", "close") else None
        name = found[1].lower() if found else ""
        yield HtmlToken(kind, match[0], name)  # type: ignore[arg-type]
        if kind == "open" and name in _RAW_NAMES:
            end = re.compile(rf"</{re.escape(name)}(?=[\s/>])", re.IGNORECASE).search(
                text, position
            )
            stop = end.start() if end else len(text)
            if stop > position:
                # The text of a title is running text, but holds no tags.
                yield HtmlToken("text" if name == "title" else "raw", text[position:stop])
            position = stop
        elif kind == "open" and name == "plaintext":
            yield HtmlToken("raw", text[position:])
            return
