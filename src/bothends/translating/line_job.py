"""The job of translating lines, sentence by sentence.

`Workers` run it: it cuts a window of lines into tasks, hands batches to a `TextModel`, and joins
the translations of a line's sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bothends.text.clauses import cut_at_clauses
from bothends.text.languages import short_code
from bothends.text.sentences import Span, split_sentences
from bothends.text.vocabulary import most_tokens
from bothends.translating.streaming import WindowTasks
from bothends.translating.text_model import TextModel, Tokens
from bothends.translating.translation import EMPTY, Translation, TranslationOptions

#: Languages whose sentences follow each other without a space.
WITHOUT_SPACES = frozenset({"ja", "zh", "yue", "th", "lo", "km", "my"})


@dataclass(frozen=True)
class Translating:
    """The job of translating lines. Lines that are the same to the model are one task."""

    model: TextModel
    options: TranslationOptions
    #: that encode a large window
    threads: int = 1
    source_language: str | None = None
    target_language: str | None = None

    def prepare(self, window: Sequence[str]) -> WindowTasks[Tokens]:
        parts = [self.sentences(line) for line in window]
        texts = [text for sentences in parts for text in sentences]
        encoded = iter(self.model.vocabularies.source.encode(texts, self.threads))
        numbers: dict[Tokens, int] = {}  # lists and logs are full of equal lines
        tasks_of_line = [
            [
                numbers.setdefault(tuple(ids), len(numbers))
                # A vocabulary may have nothing for a text, even if the text has characters.
                for text, ids in zip(sentences, encoded, strict=False)
                if text.strip() and ids
            ]
            for sentences in parts
        ]
        limit = self.model.longest_source(self.options)
        # A target that has to be long takes as much memory as one of a long source.
        least = self.options.min_length
        sizes = [max(min(len(source), limit), least) + 1 for source in numbers]
        return WindowTasks(list(numbers), sizes, tasks_of_line)

    def run(self, tasks: Sequence[Tokens]) -> list[Translation]:
        return self.model.translate(tasks, self.options)

    def join(self, results: Sequence[Translation]) -> Translation:
        if not results:
            return EMPTY
        return results[0] if len(results) == 1 else self._join(results)

    def _join(self, results: Sequence[Translation]) -> Translation:
        """The translation of a line from those of its sentences."""
        # Of a rank that a sentence does not have, its best.
        ranks = max(len(each.hypotheses) for each in results)
        ranked = [
            [each.hypotheses[rank if rank < len(each.hypotheses) else 0] for each in results]
            for rank in range(ranks)
        ]
        best, *others = (
            join_sentences(sentences, self.options, self.target_language) for sentences in ranked
        )
        return replace(best, next_best=tuple(others))

    def sentences(self, line: str) -> list[str]:
        """The sentences of a line; one that is too long for the model is cut at its clauses."""
        if not self.options.split_sentences:
            return [line]
        limit = self.model.longest_sentence(self.options)
        spans = [
            part
            for span in split_sentences(line, self.source_language)
            for part in self._clauses(line, span, limit)
        ]
        return [line[start:end] for start, end in spans] if len(spans) > 1 else [line]

    def _clauses(self, line: str, span: Span, limit: int) -> list[Span]:
        def count(text: str) -> int:
            return len(self.model.vocabularies.source.encode([text])[0])

        text = line[span.start : span.end]
        if most_tokens(text) <= limit or count(text) <= limit:
            return [span]
        return cut_at_clauses(line, span, count, limit)


def join_sentences(
    sentences: Sequence[Translation], options: TranslationOptions, language: str | None
) -> Translation:
    """One translation of several, in order: figures are sums, and the score is of all tokens."""
    spaced = language is None or short_code(language) not in WITHOUT_SPACES
    logprob = sum(each.logprob for each in sentences)
    length = sum(len(each.tokens) for each in sentences)
    return Translation(
        text=(" " if spaced else "").join(each.text for each in sentences),
        score=options.score(logprob, length),
        logprob=logprob,
        tokens=tuple(token for each in sentences for token in each.tokens),
        pieces=tuple(piece for each in sentences for piece in each.pieces),
        steps=sum(each.steps for each in sentences),
        steps_saved=sum(each.steps_saved for each in sentences),
        finished=all(each.finished for each in sentences),
        truncated=any(each.truncated for each in sentences),
        time=sum(each.time for each in sentences),
        source_tokens=tuple(token for each in sentences for token in each.source_tokens),
        source_pieces=tuple(piece for each in sentences for piece in each.source_pieces),
        sentences=sum(each.sentences for each in sentences),
        short=any(each.short for each in sentences),
    )
