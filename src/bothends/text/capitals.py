"""Text in capitals, written as models have learned to read it, and back.

Models have seen few sentences in capitals and cut their words into odd pieces: the default model
makes "HELLO VELHOR" of "HELLO WORLD". So such text is asked for in small letters, and its
translation is written in capitals. Labels ("Blue shirt") lose the capital that they begin with.
"""

from __future__ import annotations

import re

from bothends.text.languages import short_code

# Patterns as text: `re` compiles them when they are needed, which most texts do not.
_WORD = r"[^\W\d_]+"
#: A word with what is written together with it: A4, COVID-19, I'M
_TOKEN = r"[^\W_](?:[\w'\u2019-]*\w)?"
_FIRST_LETTER = r"(?:^|[.!?\u2026][\"'\u2019\u201d)\]]*\s)[^\w]*[^\W\d_]"
_NO_VOWELS = "[B-DF-HJ-NP-TV-XZ]{2,}"
#: Marks that may stand before the first word
_OPENING = r"[\"'\u2018\u201c\u201e\u00ab\u00bb\u00bf\u00a1(\[*_\s]*"
#: The word that a text begins with; no address or name of a file, which have marks inside
_FIRST_WORD = rf"{_OPENING}(\w[\w'\u2019-]*)(?=[^\w\s]*(?:\s|$))"
#: Letters of a word at least: of shorter ones alone, most are abbreviations.
_LONG = 4
#: Without a vowel, but no abbreviations that are spelled in capitals.
_TITLES = {"DR", "JR", "MR", "MRS", "MS", "SR", "ST", "VS"}
#: Languages with an i that keeps its dot as a capital.
_DOTTED = ("az", "tr")


def in_capitals(text: str) -> bool:
    """Whether a text has words, and all of them in capitals; abbreviations are no words."""
    if not text.isupper():
        return False
    return any(
        len(word) >= _LONG
        for token in re.findall(_TOKEN, text)
        if not _is_abbreviation(token)
        for word in re.findall(_WORD, token)
    )


def in_small_letters(text: str, language: str | None) -> str:
    """The text in small letters but for abbreviations and the first letters of its sentences."""

    def small(token: re.Match[str]) -> str:
        if _is_abbreviation(token[0]):
            return token[0]
        if token[0] in _TITLES:
            return token[0].capitalize()
        return _lower(token[0], language)

    text = re.sub(_TOKEN, small, text)
    text = re.sub(
        _FIRST_LETTER, lambda match: match[0][:-1] + with_capitals(match[0][-1], language), text
    )
    return re.sub(r"\bi\b", "I", text) if _is(language, "en") else text


def with_capitals(text: str, language: str | None) -> str:
    """A text of this language in capitals."""
    if _is(language, *_DOTTED):
        text = text.replace("i", "\u0130")
    return text.upper()


def with_first_capital(answer: str, text: str, language: str | None) -> str:
    """A translation in this language with a capital at its beginning, if the text has one there.

    Names that begin with a small letter (iPhone), addresses and the like keep theirs.
    """
    asked, own = re.match(_FIRST_WORD, text), re.match(_FIRST_WORD, answer)
    if asked is None or own is None or not asked[1][0].isupper() or not own[1].islower():
        return answer
    if any(map(str.isdigit, own[1])):
        return answer
    at = own.start(1)
    return answer[:at] + with_capitals(answer[at], language) + answer[at + 1 :]


def _is_abbreviation(token: str) -> bool:
    """Whether a token has digits, or no vowels, as in DVD."""
    if any(character.isdigit() for character in token):
        return True
    return token not in _TITLES and re.fullmatch(_NO_VOWELS, token) is not None


def _lower(text: str, language: str | None) -> str:
    if _is(language, *_DOTTED):
        text = text.replace("I", "\u0131").replace("\u0130", "i")
    return text.lower()


def _is(language: str | None, *codes: str) -> bool:
    return language is not None and short_code(language) in codes
