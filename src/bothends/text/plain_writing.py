"""A sentence in the writing that models know best, and its translation in the writing it had."""

from __future__ import annotations

from dataclasses import dataclass

from bothends.text.capitals import (
    in_capitals,
    in_small_letters,
    with_capitals,
    with_first_capital,
)
from bothends.text.languages import short_code
from bothends.text.title_case import in_title_case, with_names, without_title_case
from bothends.text.typography import plain_marks, typographic_marks


@dataclass(frozen=True)
class PlainWriting:
    """Small letters for capitals and headlines, plain quotes and dashes for typographic ones."""

    language: str | None
    target_language: str | None

    def of(self, text: str) -> str:
        """What a model is to be asked for this text."""
        plain = plain_marks(text, self.language)
        if in_capitals(plain):
            return in_small_letters(plain, self.language)
        return without_title_case(plain) if self._is_headline(plain) else plain

    def restore(self, text: str, answer: str) -> str:
        """The model's answer for `of(text)` as a translation of the text itself."""
        if in_capitals(text):
            answer = with_capitals(answer, self.target_language)
        else:
            if self._is_headline(text):
                answer = with_names(answer, text)
            answer = with_first_capital(answer, text, self.target_language)
        return typographic_marks(answer, text, self.target_language)

    def _is_headline(self, text: str) -> bool:
        english = self.language is not None and short_code(self.language) == "en"
        return english and in_title_case(text)
