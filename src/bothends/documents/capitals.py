"""Sentences in capitals, asked for in small letters."""

from __future__ import annotations

from collections.abc import Sequence

from bothends.documents.options import Translate
from bothends.text.capitals import in_capitals, in_small_letters, with_capitals


def keeping_capitals(
    translate: Translate, language: str | None, target_language: str | None
) -> Translate:
    """`translate` for sentences some of which are in capitals."""

    def translated(texts: Sequence[str]) -> Sequence[str]:
        capitals = [in_capitals(text) for text in texts]
        answers = translate(
            [
                in_small_letters(text, language) if large else text
                for text, large in zip(texts, capitals, strict=True)
            ]
        )
        if len(answers) != len(texts):
            return answers  # whoever asked complains
        return [
            with_capitals(answer, target_language) if large else answer
            for answer, large in zip(answers, capitals, strict=True)
        ]

    return translated
