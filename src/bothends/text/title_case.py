"""English headlines, In Which Most Words Have a Capital, as sentences, and the capitals of names.

Models take a word with a capital for a name and copy it. Only English writes whole lines so, and a
line of names alone looks the same: taken for a headline is what has four words and one that no
name is made of.
"""

from __future__ import annotations

import re

# Patterns as text: `re` compiles them when they are needed, which most texts do not.
_WORD = r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*"
_CAPITALISED = r"[A-Z][a-z]+(?:['\u2019-][A-Za-z]?[a-z]*)*"
#: Words of a headline at least.
_WORDS = 4
#: What headlines write in small letters, if they like.
_SMALL = frozenset(
    "a an and as at but by for from in into is it nor of off on onto or over per than that the to "
    "up upon via vs with".split()
)
#: No name is made of these alone: a line that has one of them is not just a name.
_TELLING = _SMALL - {"of", "the", "and"} | frozenset(
    "after all are be before best can do does get has have here his her how if its make more most "
    "my new no not now our out she he should so their they these this those top until was we were "
    "what when where which who why will without you your".split()
)


def in_title_case(text: str) -> bool:
    """Whether a line looks like an English headline."""
    if sum(word[:1].isupper() for word in text.split()) < _WORDS // 2:
        return False  # a quick look
    words = re.findall(_WORD, text)
    if len(words) < _WORDS or text.rstrip().endswith((".", ",", ";")):
        return False
    large = [word for word in words if word not in _SMALL]
    return (
        all(word[0].isupper() for word in large)
        and any(word.lower() in _TELLING for word in words)
        and sum(re.fullmatch(_CAPITALISED, word) is not None for word in words) >= 2
    )


def without_title_case(text: str) -> str:
    """A headline as a sentence: only its first word keeps its capital, and what has several."""
    first = re.search(_WORD, text)

    def small(word: re.Match[str]) -> str:
        keep = word[0] == "I" or (first is not None and word.start() == first.start())
        return word[0] if keep or not re.fullmatch(_CAPITALISED, word[0]) else word[0].lower()

    return re.sub(_WORD, small, text)


def with_names(text: str, source: str) -> str:
    """A translation in which words of the headline have the capitals that they had there."""
    written = {
        word.lower(): word for word in re.findall(_WORD, source) if word.lower() not in _SMALL
    }
    return re.sub(_WORD, lambda word: written.get(word[0], word[0]), text)
