"""Typographic quotes, apostrophes and hyphens as the plain ones that models know best, and back.

Web pages and word processors write “it’s”, corpora "it's". Of a model that has hardly seen the
former, a closing quote or a word is lost now and then.
"""

# The marks look like others to the linter.
# ruff: noqa: RUF001, RUF002

from __future__ import annotations

import re

from bothends.text.languages import short_code

_QUOTES, _APOSTROPHES, _HYPHENS = "“”„‟", "’‘‚‛", "‐‑−"
_PLAIN = str.maketrans(
    {
        **dict.fromkeys(_QUOTES, '"'),
        **dict.fromkeys(_APOSTROPHES, "'"),
        **dict.fromkeys(_HYPHENS, "-"),
        "\u00ad": None,  # where a word may be hyphenated
    }
)
#: Their corpora have these quotes, and no other ones.
_OWN_QUOTES = ("ja", "ko", "zh")
#: The quotes of languages that do not write “these”; those with spaces inside are left plain.
_PAIRS = {
    **dict.fromkeys(("bg", "cs", "de", "et", "is", "lt", "sk", "sl"), "„“"),
    **dict.fromkeys(("hr", "hu", "pl", "ro", "sr"), "„”"),
    **dict.fromkeys(("fi", "sv"), "””"),
    **dict.fromkeys(("be", "el", "it", "nb", "no", "ru", "uk"), "«»"),
    "fr": '""',
}


def plain_marks(text: str, language: str | None) -> str:
    """The text with the marks of a typewriter."""
    if text.isascii() or (language is not None and short_code(language) in _OWN_QUOTES):
        return text
    return re.sub(r"(?<=\d)–(?=\d)", "-", text.translate(_PLAIN))


def typographic_marks(text: str, source: str, language: str | None) -> str:
    """A translation with typographic quotes and apostrophes if its source had them."""
    if any(mark in source for mark in _QUOTES) and text.count('"') % 2 == 0:
        pair = _PAIRS.get(short_code(language or ""), "“”")
        first, *parts = text.split('"')
        text = first + "".join(pair[number % 2] + part for number, part in enumerate(parts))
    if any(mark in source for mark in _APOSTROPHES):
        text = re.sub(r"(?<=\w)'(?=\w)", "’", text)
    return text
