"""The job of scoring pairs of a source and a target.

`Workers` run it: it turns a window of pairs into tasks, and hands batches to a `TextModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bothends.errors import BothendsError, UsageError
from bothends.search.scoring import ForcedScore
from bothends.translating.streaming import WindowTasks
from bothends.translating.text_model import EncodedPair, TextModel


class NumberedPair(NamedTuple):
    """A source and its target, text or ids, with its number for messages, counted from 1."""

    number: int
    source: str
    target: str | Sequence[int]


@dataclass(frozen=True)
class Scoring:
    """The job of scoring pairs."""

    model: TextModel
    #: a source or target of more tokens is an error
    max_length: int
    threads: int = 1

    def prepare(self, window: Sequence[NumberedPair]) -> WindowTasks[EncodedPair]:
        vocabularies, size = self.model.vocabularies, self.model.vocabularies.target.size
        sources = vocabularies.source.encode([pair.source for pair in window], self.threads)
        texts = [pair.target if isinstance(pair.target, str) else "" for pair in window]
        encoded = vocabularies.target.encode(texts, self.threads)
        learned = self.model.generator.longest_source(self.max_length)
        tasks = []
        for pair, source, of_text in zip(window, sources, encoded, strict=True):
            target = of_text if isinstance(pair.target, str) else pair.target
            longest = max(len(source), len(target))
            if longest > self.max_length:
                raise BothendsError(
                    f"pair {pair.number}: {longest} tokens, but at most {self.max_length} are "
                    "scored; leave it out, or allow a larger maximum length"
                )
            if len(source) > learned:
                raise BothendsError(
                    f"pair {pair.number}: a source of {len(source)} tokens, but the model has "
                    f"learned positions for {learned}; leave it out"
                )
            if not all(token in range(size) for token in target):
                raise UsageError(f"pair {pair.number}: a token is outside the vocabulary's {size}")
            tasks.append(EncodedPair(source, target))
        sizes = [max(len(task.source), len(task.target)) + 1 for task in tasks]
        return WindowTasks(tasks, sizes, [[number] for number in range(len(tasks))])

    def run(self, tasks: Sequence[EncodedPair]) -> list[ForcedScore]:
        return self.model.score(tasks)

    def join(self, results: Sequence[ForcedScore]) -> ForcedScore:
        (score,) = results
        return score
