"""Sentences that a model is asked for in the writing that it knows best."""

from __future__ import annotations

from collections.abc import Sequence

from bothends.documents.options import Translate
from bothends.text.plain_writing import PlainWriting


def asking_plainly(translate: Translate, writing: PlainWriting) -> Translate:
    """`translate` for sentences in any writing."""

    def translated(texts: Sequence[str]) -> Sequence[str]:
        answers = translate([writing.of(text) for text in texts])
        if len(answers) != len(texts):
            return answers  # whoever asked complains
        return list(map(writing.restore, texts, answers))

    return translated
