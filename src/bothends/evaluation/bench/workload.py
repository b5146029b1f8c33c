"""What is translated in a benchmark: random ids of given lengths, or lines of text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bothends.errors import BothendsError, UsageError
from bothends.evaluation.bench.systems import Request, TimedOutcome
from bothends.metrics.sums import DEFAULT_TOKENIZER
from bothends.model.config import ModelConfig
from bothends.order import IntArray
from bothends.text.pairs import read_lines
from bothends.text.vocabulary import Vocabularies
from bothends.translating.translation import TranslationOptions

#: A line is cut where every translation cuts it.
OPTIONS = TranslationOptions()


@dataclass(frozen=True)
class RandomIds:
    """Sentences without text, whose translations all have the same length."""

    name: str
    sources: Sequence[IntArray]
    #: sentences that a turn has at least: all cost the same, so a few of them will do
    sentences: int
    #: slots that a translation fills, its end symbol included
    slots: int
    #: the model never writes the end symbol, so nothing has to keep it from doing so
    never_ends: bool

    def batches(self, size: int) -> list[slice]:
        """Full batches, as few as hold the sentences of a turn."""
        _check_batch(size, self.name, len(self.sources))
        return [slice(start, start + size) for start in range(0, self.sentences, size)]

    def read(self, batch: slice) -> Sequence[IntArray]:
        return self.sources[batch]

    def request(self, sources: Sequence[IntArray], beam: int) -> Request:
        limit = self.slots - 1  # the last slot is where the end symbol could be
        return Request(beam, 0 if self.never_ends else limit, limit)

    def write(self, outcome: TimedOutcome) -> list[str]:
        return []


@dataclass(frozen=True)
class TextWorkload:
    """Lines of text, translated until the model ends them."""

    name: str
    lines: Sequence[str]
    vocabularies: Vocabularies
    #: which says what stands around a source
    config: ModelConfig
    references: Sequence[str] | None = None
    #: sacreBLEU's, for the language of the translations
    tokenizer: str = DEFAULT_TOKENIZER

    @property
    def overlong(self) -> int:
        """Lines whose end is cut off."""
        encoded = self.vocabularies.source.encode(self.lines)
        return sum(len(pieces) > OPTIONS.max_source_length for pieces in encoded)

    def batches(self, size: int) -> list[slice]:
        """All lines; the last batch takes what is left."""
        _check_batch(size, self.name, len(self.lines))
        return [slice(start, start + size) for start in range(0, len(self.lines), size)]

    def read(self, batch: slice) -> Sequence[IntArray]:
        longest = self.config.longest_source
        limit = OPTIONS.max_source_length if longest is None else longest
        encoded = self.vocabularies.source.encode(self.lines[batch])
        cut = min(limit, OPTIONS.max_source_length)
        return [np.array(self.config.framed(pieces[:cut])) for pieces in encoded]

    def request(self, sources: Sequence[IntArray], beam: int) -> Request:
        longest = max(map(len, sources)) - len(self.config.framed([]))
        return Request(beam, 0, OPTIONS.limit(longest), limits_by_source=True)

    def write(self, outcome: TimedOutcome) -> list[str]:
        return self.vocabularies.target.decode(outcome.tokens)


@dataclass(frozen=True)
class Lines:
    """Lines of text for a system that has no vocabulary: their ids are bytes of UTF-8."""

    name: str
    lines: Sequence[str]
    references: Sequence[str] | None = None
    #: sacreBLEU's, for the language of the translations
    tokenizer: str = DEFAULT_TOKENIZER

    def batches(self, size: int) -> list[slice]:
        """All lines; the last batch takes what is left."""
        _check_batch(size, self.name, len(self.lines))
        return [slice(start, start + size) for start in range(0, len(self.lines), size)]

    def read(self, batch: slice) -> Sequence[IntArray]:
        return [np.frombuffer(line.encode(), np.uint8).astype(int) for line in self.lines[batch]]

    def request(self, sources: Sequence[IntArray], beam: int) -> Request:
        return Request(beam, 0, sys.maxsize)

    def write(self, outcome: TimedOutcome) -> list[str]:
        return [bytes(tokens).decode("utf-8") for tokens in outcome.tokens]


Workload = RandomIds | TextWorkload | Lines


def _check_batch(size: int, name: str, sentences: int) -> None:
    if size > sentences:
        raise UsageError(f"a batch of {size} needs as many sentences, but {name} has {sentences}")


class Pairs(NamedTuple):
    """Lines, and their references if there are any."""

    lines: list[str]
    references: list[str] | None


def read_pairs(source: Path, reference: Path | None, limit: int) -> Pairs:
    """The first `limit` different lines and their references, the longest lines first.

    A line that comes again, as where a text has several references, is no other text to translate.
    Sorted, because everybody who translates in batches sorts: neighbours of one length need no
    padding. The metrics of a corpus do not depend on the order of its pairs.
    """
    lines = list(read_lines(source))
    references = lines if reference is None else list(read_lines(reference))
    if len(references) != len(lines):
        raise BothendsError(
            f"{reference}: {len(references)} lines, but {source} has {len(lines)}; "
            "they must be parallel"
        )
    different: dict[str, str] = {}
    for line, text in zip(lines, references, strict=True):
        if line.strip():
            different.setdefault(line, text)
    if not different:
        raise BothendsError(f"{source}: no line with text in it")
    pairs = sorted(list(different.items())[:limit], key=lambda pair: -len(pair[0]))
    return Pairs([line for line, _ in pairs], [text for _, text in pairs] if reference else None)
