"""Numbers that a model gets wrong: corrected if it wrote similar ones, else asked for again.

The second question has names for them, which models copy better, and which read a little stiffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from bothends.documents.options import Translate
from bothends.documents.placeholders import PlaceholderStyle
from bothends.text.numbers import correct_numbers, lost_numbers


def keeping_numbers(translate: Translate, style: PlaceholderStyle) -> Translate:
    """`translate`, and once more for what lost a number."""

    def checked(texts: Sequence[str]) -> Sequence[str]:
        answers = list(translate(texts))
        if len(answers) != len(texts):
            return answers  # whoever asked complains
        return mend_numbers(texts, answers, translate, style)

    return checked


def mend_numbers(
    texts: Sequence[str], answers: Sequence[str], translate: Translate, style: PlaceholderStyle
) -> list[str]:
    """The answers; in place of those that lost numbers, ones that have them, if asking helps."""
    mended = [
        correct_numbers(text, answer) or answer for text, answer in zip(texts, answers, strict=True)
    ]
    again = {
        index: named
        for index, (text, answer) in enumerate(zip(texts, mended, strict=True))
        if (named := _NamedNumbers.of(text, answer, style)) is not None
    }
    if not again:
        return mended
    second = translate([named.text for named in again.values()])
    for (index, named), answer in zip(again.items(), second, strict=False):
        whole = named.answer(answer)
        if whole is not None and not lost_numbers(texts[index], whole):
            mended[index] = whole
    return mended


class _NamedNumbers:
    """A text with names in the place of some of its numbers."""

    def __init__(
        self, text: str, spans: Sequence[tuple[int, int]], style: PlaceholderStyle
    ) -> None:
        self._style = style
        self._values = [text[start:end] for start, end in spans]
        self._names = style.numbers(text, len(spans)) or []
        for (start, end), name in reversed(list(zip(spans, self._names, strict=False))):
            text = text[:start] + style.make(name) + text[end:]
        self.text = text

    @classmethod
    def of(cls, text: str, answer: str, style: PlaceholderStyle) -> _NamedNumbers | None:
        """None if no number was lost, or no names are left."""
        spans = lost_numbers(text, answer)
        named = cls(text, spans, style) if spans else None
        return named if named is not None and named._names else None

    def answer(self, translation: str) -> str | None:
        """The translation with the numbers; None unless each name is there once."""
        found = self._style.find(translation, self._names)
        if found is None:
            return None
        for start, end, index in reversed(found):
            translation = translation[:start] + self._values[index] + translation[end:]
        return translation
