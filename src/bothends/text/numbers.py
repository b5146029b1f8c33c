"""Numbers of a text that its translation does not have, or has with a digit too many or too few.

Plain ones are compared by their digits; those with thousands or decimals (`1,234.5`) by their
value, in whichever style the translation writes it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from bothends.text.number_styles import NO_STYLES, NumberStyle, NumberStyles

#: Share of digits in common from which a number is taken for another one with an error.
LIKENESS = 0.7

#: Three digits or more: shorter ones may be spelled out.
_PLAIN = r"\d{3,}"
#: Not inside times, dates, ranges and names, which languages write in their own ways: 9.30 p.m.
_BEFORE = "(?<![\\w.,:/'\u2019-])"
_AFTER = "(?!\\w|[.,:/'\u2019-]\\d|\\s?[AaPp]\\.?[Mm]\\b)"
#: Whatever a translation writes as one number, well or badly.
_WRITTEN = re.compile("\\d+(?:[.,'\u2019\u00a0\u202f]+\\d+)*")
_DIGITS = re.compile(r"\d+")
#: A number right before another one
_BEFORE_NUMBER = re.compile(rf"(?<![\w.,:/'\u2019-])(\d+),?\s(?=({_WRITTEN.pattern}))")
#: Two of a list: 5, 23
_LISTED = re.compile(r"(\d+), (?=(\d+))")
#: What makes a decimal the part of a name: Python 3.10, Section 2.5
_NAME = re.compile(r"[A-Z]\w*\s$")


class LostNumber(NamedTuple):
    """Half-open offsets into the source, and how the translation should write the number."""

    start: int
    end: int
    spelled: str


class _Value(NamedTuple):
    """Digits before and after the decimal mark, without zeros at the end of the latter."""

    whole: str
    decimals: str = ""


def lost_numbers(
    source: str, translation: str, styles: NumberStyles = NO_STYLES
) -> list[LostNumber]:
    """The numbers of the source that the translation has less often.

    Those with thousands and decimals count only if the source's style is known.
    """
    found = list(_pattern(styles.source).finditer(source))
    if not found:
        return []
    wanted = Counter(match[0] for match in found)
    written = _Written(translation)
    return [
        LostNumber(*match.span(), _spelled(match, styles))
        for match in found
        if not written.has(match[0], wanted[match[0]], styles.source)
    ]


def correct_numbers(source: str, translation: str, styles: NumberStyles = NO_STYLES) -> str | None:
    """The translation with its own numbers replaced by those it lost, one for one, in order.

    None if there are more or fewer of them, or if they do not look alike.
    """
    lost = lost_numbers(source, translation, styles)
    rest = source
    for number in lost:
        rest = rest[: number.start] + " " * (number.end - number.start) + rest[number.end :]
    known = _wholes(rest)
    foreign = [match for match in _WRITTEN.finditer(translation) if not _wholes(match[0]) & known]
    if len(lost) != len(foreign):
        return None
    for number, match in reversed(list(zip(lost, foreign, strict=True))):
        if not _look_alike(number.spelled, match[0]):
            return None
        translation = translation[: match.start()] + number.spelled + translation[match.end() :]
    return None if lost_numbers(source, translation, styles) else translation


def without_false_starts(source: str, translation: str) -> str:
    """The translation without digits that begin the number after them: 2 265 for 265.

    Only if the source has that number, and not those digits.
    """
    if _BEFORE_NUMBER.search(translation) is None:
        return translation
    known = {value for token in _WRITTEN.findall(source) for value in _values(token)}

    def kept(match: re.Match[str]) -> str:
        start, number = _ascii(match[1]), match[2]
        begins = _ascii("".join(_DIGITS.findall(number))).startswith(start)
        stray = begins and _Value(start) not in known and not known.isdisjoint(_values(number))
        return "" if stray else match[0]

    return _BEFORE_NUMBER.sub(kept, translation)


@cache
def _pattern(style: NumberStyle | None) -> re.Pattern[str]:
    """The numbers of a source that are looked for."""
    numbers = _PLAIN
    if style is not None:
        thousands, decimals = map(re.escape, style)
        decimals = rf"{decimals}\d+"
        numbers = rf"(?:\d{{1,3}}(?:{thousands}\d{{3}})+(?:{decimals})?|\d+{decimals}|{_PLAIN})"
    return re.compile(_BEFORE + numbers + _AFTER)


def _spelled(match: re.Match[str], styles: NumberStyles) -> str:
    number = match[0]
    has_thousands = styles.source is not None and styles.source.thousands in number
    if not has_thousands and _NAME.search(match.string, 0, match.start()):
        return number
    return styles.respelled(number)


class _Written:
    """The numbers of a translation."""

    def __init__(self, text: str) -> None:
        tokens = _WRITTEN.findall(text)
        self._values = Counter(value for token in tokens for value in set(_values(token)))
        self._runs = Counter(map(_ascii, _DIGITS.findall(text)))
        self._alone = {_ascii(token) for token in tokens if token.isdecimal()}
        self._listed = {
            (_ascii(first), _ascii(second)) for first, second in re.findall(_LISTED, text)
        }

    def has(self, number: str, times: int, style: NumberStyle | None) -> bool:
        """Whether a number of the source is here so often, in any style."""
        if number.isdecimal():
            digits = _ascii(number)
            return max(self._runs[digits], self._values[_Value(digits)]) >= times
        # One after the other: 10.30 is 10h30, and 101,102 may be two numbers; 5.23 is not 5, 23.
        runs = list(map(_ascii, _DIGITS.findall(number)))
        torn = style is not None and style.decimals in number and (*runs,) in self._listed
        if not torn and self._alone.issuperset(runs):
            return True
        whole, _, decimals = number.partition(style.decimals if style else ".")
        value = _as_value("".join(_DIGITS.findall(whole)), decimals)
        return sum(self._values[each] for each in (value, *_scaled(value))) >= times


def _values(token: str) -> Iterator[_Value]:
    """What a number may mean: 1.250 has two meanings, 1.00.50 has none."""
    first, *others = _DIGITS.findall(token)
    marks = re.findall(r"\D+", token)
    if not marks:
        yield _as_value(first)
    elif len({*marks[:-1]}) > 1 or any(len(mark) > 1 for mark in marks):
        return
    else:
        if len({*marks}) == 1 and _are_thousands(first, others):
            yield _as_value(first + "".join(others))
        if len(marks) == 1 or (marks[-1] != marks[0] and _are_thousands(first, others[:-1])):
            yield _as_value(first + "".join(others[:-1]), others[-1])


def _are_thousands(first: str, others: list[str]) -> bool:
    return len(first) <= 3 and all(len(digits) == 3 for digits in others)


def _as_value(whole: str, decimals: str = "") -> _Value:
    return _Value(_ascii(whole), _ascii(decimals).rstrip("0"))


def _scaled(value: _Value) -> Iterator[_Value]:
    """The value in thousands, millions and so on: 50,000 is 50 mil, 1,500,000 is 1,5 milhão."""
    if not value.decimals and value.whole.endswith("000"):
        for size in range(3, len(value.whole), 3):
            yield _as_value(value.whole[:-size], value.whole[-size:])


def _look_alike(number: str, other: str) -> bool:
    from difflib import SequenceMatcher

    first, second = (_ascii("".join(_DIGITS.findall(text))) for text in (number, other))
    return SequenceMatcher(None, first, second).ratio() >= LIKENESS


def _wholes(text: str) -> set[str]:
    """The digits of a text's numbers, with thousands apart and as one."""
    values = {value for token in _WRITTEN.findall(text) for value in _values(token)}
    wholes = {value.whole for value in values if not value.decimals}
    return wholes | set(map(_ascii, _DIGITS.findall(text)))


def _ascii(digits: str) -> str:
    """The same digits, whatever script they are of."""
    return "".join(str(unicodedata.decimal(digit)) for digit in digits)
