"""Numbers of a text that its translation does not have, or has with a digit too many or too few."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

#: Share of digits in common from which a number is taken for another one with an error.
LIKENESS = 0.7

#: Three digits or more: shorter ones may be spelled out. No decimals, times, dates and ranges,
#: which languages write in their own ways.
_PLAIN = re.compile("(?<![\\w.,:/'\u2019-])\\d{3,}(?!\\w|[.,:/'\u2019-]\\d)")
_WRITTEN = re.compile("\\d+(?:[.,'\u2019\u00a0\u202f]\\d{3}(?!\\d))*")
_DIGITS = re.compile(r"\d+")


def lost_numbers(source: str, translation: str) -> list[tuple[int, int]]:
    """Where plain numbers stand in the source that the translation has less often."""
    found = [(_value(match[0]), match.span()) for match in _PLAIN.finditer(source)]
    if not found:
        return []
    wanted, written = Counter(value for value, _ in found), _numbers(translation)
    return [span for value, span in found if written[value] < wanted[value]]


def correct_numbers(source: str, translation: str) -> str | None:
    """The translation with its own numbers replaced by those it lost, one for one, in order.

    None if there are more or fewer of them, or if they do not look alike.
    """
    lost = [source[start:end] for start, end in lost_numbers(source, translation)]
    known = _numbers(source)
    foreign = [
        match for match in _WRITTEN.finditer(translation) if not _numbers(match[0]).keys() & known
    ]
    if len(lost) != len(foreign):
        return None
    for number, match in reversed(list(zip(lost, foreign, strict=True))):
        if not _look_alike(number, match[0]):
            return None
        translation = translation[: match.start()] + number + translation[match.end() :]
    return None if lost_numbers(source, translation) else translation


def _look_alike(number: str, other: str) -> bool:
    from difflib import SequenceMatcher

    other = "".join(_DIGITS.findall(other))
    return SequenceMatcher(None, _value(number), _value(other)).ratio() >= LIKENESS


def _numbers(text: str) -> Counter[str]:
    """The numbers of a text, with thousands apart and as one."""
    whole = Counter(_value("".join(_DIGITS.findall(run))) for run in _WRITTEN.findall(text))
    return whole | Counter(map(_value, _DIGITS.findall(text)))


def _value(digits: str) -> str:
    """The same digits, whatever script they are of."""
    return "".join(str(unicodedata.decimal(digit)) for digit in digits)
