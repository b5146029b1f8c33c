"""Words as they are compared: the unit in which people count and forbid."""

from __future__ import annotations

import re


def bare_word(word: str) -> str:
    """A word as it is compared: without punctuation around it, in lower case."""
    return re.sub(r"^\W+|\W+$", "", word).casefold()


def first_word(text: str) -> str:
    """The first word of a text that has letters or digits, as it is compared; empty if none has."""
    return next(filter(None, map(bare_word, text.split())), "")
