"""Translating from a draft: an earlier translation of a similar text.

It changes the time and, but for rounding, nothing else (`bothends.search.draft`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bothends.errors import UsageError
from bothends.text.sentences import split_sentences
from bothends.translating.line_job import Translating
from bothends.translating.streaming import WindowTasks
from bothends.translating.text_model import EncodedPair
from bothends.translating.translation import Translation, TranslationOptions


class Drafted(NamedTuple):
    """A line, and a draft of its translation, as text or tokens."""

    line: str
    draft: str | Sequence[int]


@dataclass(frozen=True)
class Drafting:
    """The job of translating a line from a draft: its sentences, each from its part of it."""

    translating: Translating

    def prepare(self, window: Sequence[Drafted]) -> WindowTasks[EncodedPair]:
        vocabularies = self.translating.model.vocabularies
        tasks: list[EncodedPair] = []
        tasks_of_line = []
        for line, draft in window:
            first, sentences = len(tasks), self.translating.sentences(line)
            for number, source in enumerate(vocabularies.source.encode(sentences)):
                if sentences[number].strip() and source:
                    part = self._part(draft, number, len(sentences))
                    tasks.append(EncodedPair(tuple(source), part))
            tasks_of_line.append(range(first, len(tasks)))
        return WindowTasks(tasks, [len(task.source) + 1 for task in tasks], tasks_of_line)

    def run(self, tasks: Sequence[EncodedPair]) -> list[Translation]:
        model, options = self.translating.model, self.translating.options
        return [
            model.translate_from_draft(tuple(task.source), task.target, options) for task in tasks
        ]

    def join(self, results: Sequence[Translation]) -> Translation:
        return self.translating.join(results)

    def _part(self, draft: str | Sequence[int], number: int, sentences: int) -> Sequence[int]:
        """The tokens of a draft that belong to one sentence.

        Those of its own sentence of the same number. A wrong one would change nothing but the time.
        """
        target = self.translating.model.vocabularies.target
        if sentences == 1 and not isinstance(draft, str):
            return draft
        text = draft if isinstance(draft, str) else target.decode([draft])[0]
        if sentences > 1:
            spans = split_sentences(text, self.translating.target_language)
            text = text[spans[number].start : spans[number].end] if number < len(spans) else ""
        return target.encode([text])[0]


def check_draft(draft: str | Sequence[int], options: TranslationOptions, words: int) -> None:
    """Complain about a draft that these options, or a vocabulary of so many words, cannot use."""
    if options.beam != 1:
        raise UsageError(f"a draft is for greedy search: use beam 1, not {options.beam}")
    if not isinstance(draft, str) and not all(token in range(words) for token in draft):
        raise UsageError("draft: a token is outside the vocabulary")
