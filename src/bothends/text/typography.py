"""Typographic quotes, apostrophes, hyphens and dashes as the plain ones of corpora, and back.

Web pages and word processors write “it’s”, corpora "it's". Of a model that has hardly seen the
former, a closing quote or a word is lost now and then. A dash between words without spaces—like
these—makes one odd word of both, and so does that of a typewriter--this one.
"""

# The marks look like others to the linter.
# ruff: noqa: RUF001, RUF002, RUF003

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
#: A dash of two or three hyphens, between words or spaces, or where speech breaks off; no option
#: (--help), no range of numbers and no comment
_HYPHENS_AS_DASH = (
    r"(?:(?:(?<=[^\W\d_])|(?<=[?!\"')])(?<!<!))-{2,3}(?=[^\W\d_]|[\s\"')\].,!?]|$)"
    r"|(?<=[^\s-][^\S\n])-{2,3}(?=[^\S\n]))(?!-)"
)
#: A dash between parts of a sentence: — with spaces or without, – with spaces.
_DASH = rf"[^\S\n]?(?:[—―]+|(?<!\S)–+(?!\S)|{_HYPHENS_AS_DASH})[^\S\n]?"
#: Before the end of what is quoted or bracketed: "I was about to—"
_LAST_DASH = r"[^\S\n]?(?:(?<![—―])[—―]+|(?<=[^\W\d_])-{2,3})(?=[\"')\].,!?]{1,3}(?:\s|$))"
#: A dash of a typewriter; in an answer, it may touch a mark after it.
_PLAIN_DASH = r"[^\S\n]?(?<!\S)-+(?=[\s\"')\].,!?]|$)[^\S\n]?"
#: Their corpora have these quotes and dashes, and no other ones.
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
    if text.isascii() and "--" not in text:
        return text
    if language is not None and short_code(language) in _OWN_QUOTES:
        return text
    text = re.sub(r"(?<=\w)–(?=\w)", "-", text.translate(_PLAIN))  # 10–20, London–Paris
    if re.search(_DASH, text) is None:
        return text
    return re.sub(_DASH, " - ", re.sub(_LAST_DASH, " -", text)).strip()


def typographic_marks(text: str, source: str, language: str | None) -> str:
    """A translation with typographic quotes, apostrophes and dashes if its source had them."""
    if short_code(language or "") not in _OWN_QUOTES:
        text = _with_dashes(text, source)
    if any(mark in source for mark in _QUOTES) and text.count('"') % 2 == 0:
        pair = _PAIRS.get(short_code(language or ""), "“”")
        first, *parts = text.split('"')
        text = first + "".join(pair[number % 2] + part for number, part in enumerate(parts))
    if any(mark in source for mark in _APOSTROPHES):
        text = re.sub(r"(?<=\w)'(?=\w)", "’", text)
    return text


def _with_dashes(text: str, source: str) -> str:
    """The dashes of the source, with its spaces, for as many plain ones of the translation."""
    if re.search(_DASH, source) is None:
        return text
    dashes = re.findall(f"{_DASH}|{_PLAIN_DASH}", source)
    if len(dashes) != len(re.findall(_PLAIN_DASH, text)):
        return text
    following = iter(dashes)
    return re.sub(_PLAIN_DASH, lambda _: next(following), text)
