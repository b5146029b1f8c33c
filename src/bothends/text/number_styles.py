"""How languages separate thousands and decimals: 1,234.5 is 1.234,5 elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bothends.text.languages import short_code


class NumberStyle(NamedTuple):
    """The marks before thousands and before decimals."""

    thousands: str
    decimals: str


_STYLES = {
    code: style
    for codes, style in (
        ("en he hi ja ko ms sw th tl ur yue zh", NumberStyle(",", ".")),
        ("ca da de el es gl hr id is it nl pt ro sl sr tr vi", NumberStyle(".", ",")),
        ("bg cs et fi fr hu lt lv nb nn no pl ru sk sv uk", NumberStyle("\u00a0", ",")),
    )
    for code in codes.split()
}


@dataclass(frozen=True)
class NumberStyles:
    """Those of a source and its translation; None where the language is not known here."""

    source: NumberStyle | None = None
    target: NumberStyle | None = None

    @classmethod
    def of(cls, source_language: str | None, target_language: str | None) -> NumberStyles:
        return cls(_style(source_language), _style(target_language))

    def respelled(self, number: str) -> str:
        """A number of the source as the target writes it."""
        if self.source is None or self.target is None:
            return number
        marks = dict(zip(self.source, self.target, strict=True))
        return "".join(marks.get(character, character) for character in number)


def _style(language: str | None) -> NumberStyle | None:
    return None if language is None else _STYLES.get(short_code(language))


#: Nothing is known of the languages.
NO_STYLES = NumberStyles()
