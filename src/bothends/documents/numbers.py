"""Numbers that a model gets wrong: corrected if it wrote similar ones, else asked for again.

The second question has names for them, which models copy better, and which read a little stiffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from bothends.documents.options import Translate
from bothends.documents.pieces import Text
from bothends.documents.placeholders import PlaceholderStyle
from bothends.documents.plain import write_text
from bothends.documents.sentence_units import Item, SentenceRequest, Thing
from bothends.text.number_styles import NO_STYLES, NumberStyles
from bothends.text.numbers import (
    LostNumber,
    correct_numbers,
    lost_numbers,
    without_false_starts,
)


def keeping_numbers(
    translate: Translate, style: PlaceholderStyle, styles: NumberStyles = NO_STYLES
) -> Translate:
    """`translate`, and once more for what lost a number."""

    def checked(texts: Sequence[str]) -> Sequence[str]:
        answers = list(translate(texts))
        if len(answers) != len(texts):
            return answers  # whoever asked complains
        return mend_numbers(texts, answers, translate, style, styles)

    return checked


def mend_numbers(
    texts: Sequence[str],
    answers: Sequence[str],
    translate: Translate,
    style: PlaceholderStyle,
    styles: NumberStyles = NO_STYLES,
) -> list[str]:
    """The answers; in place of those that lost numbers, ones that have them, if asking helps."""
    mended = [without_false_starts(*pair) for pair in zip(texts, answers, strict=True)]
    mended = [
        correct_numbers(text, answer, styles) or answer
        for text, answer in zip(texts, mended, strict=True)
    ]
    again: dict[int, SentenceRequest] = {}
    for index, (text, answer) in enumerate(zip(texts, mended, strict=True)):
        if lost := lost_numbers(text, answer, styles):
            request = SentenceRequest(_items(text, lost), style)
            if request.possible:
                again[index] = request
    if not again:
        return mended
    second = translate([request.text for request in again.values()])
    for (index, request), answer in zip(again.items(), second, strict=False):
        found = request.answer(answer, {})
        whole = "" if found is None else write_text(found[0])
        if not lost_numbers(texts[index], whole, styles):
            mended[index] = without_false_starts(texts[index], whole)
    return mended


def _items(text: str, lost: Sequence[LostNumber]) -> list[Item]:
    """A text with its lost numbers as things."""
    items: list[Item] = []
    cursor = 0
    for start, end, spelled in lost:
        items += [_text(text[cursor:start]), Thing((_text(spelled),))]
        cursor = end
    return [*items, _text(text[cursor:])]


def _text(text: str) -> Text:
    return Text(text, text)
