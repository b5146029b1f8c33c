"""What is translated in a benchmark: random ids of given lengths, or lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bothends.errors import BothendsError, UsageError
from bothends.evaluation.bench_systems import Outcome, Request
from bothends.order import IntArray
from bothends.vocabulary import Vocabularies


@dataclass(frozen=True)
class RandomIds:
    """Sentences without text, whose translations all have the same length."""

    name: str
    sources: Sequence[IntArray]
    #: slots that a translation fills, its end symbol included
    slots: int
    #: the model never writes the end symbol, so nothing has to keep it from doing so
    never_ends: bool

    def __len__(self) -> int:
        return len(self.sources)

    def read(self, batch: slice) -> Sequence[IntArray]:
        return self.sources[batch]

    def request(self, sources: Sequence[IntArray], beam: int) -> Request:
        limit = self.slots - 1  # the last slot is where the end symbol could be
        return Request(beam, 0 if self.never_ends else limit, limit)

    def write(self, outcome: Outcome) -> list[str]:
        return []


@dataclass(frozen=True)
class Text:
    """Lines of text, translated until the model ends them."""

    name: str
    lines: Sequence[str]
    vocabularies: Vocabularies
    references: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def read(self, batch: slice) -> Sequence[IntArray]:
        vocabulary = self.vocabularies.source
        end = vocabulary.special.end
        return [np.array([*pieces, end]) for pieces in vocabulary.encode(self.lines[batch])]

    def request(self, sources: Sequence[IntArray], beam: int) -> Request:
        return Request(beam, 0, 2 * max(map(len, sources)) + 20)

    def write(self, outcome: Outcome) -> list[str]:
        return self.vocabularies.target.decode(outcome.tokens)


Workload = RandomIds | Text


def batches(workload: Workload, size: int) -> list[slice]:
    """The sentences in batches of `size`; the last one takes what is left."""
    count = len(workload)
    if size > count:
        raise UsageError(
            f"a batch of {size} needs as many sentences, but {workload.name} has {count}"
        )
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def read_pairs(
    source: Path, reference: Path | None, limit: int
) -> tuple[list[str], list[str] | None]:
    """Up to `limit` lines and their references, the longest lines first.

    Sorted, because everybody who translates in batches sorts: neighbours of one length need no
    padding. The metrics of a corpus do not depend on the order of its pairs.
    """
    lines = _read(source)
    references = lines if reference is None else _read(reference)
    if len(references) != len(lines):
        raise BothendsError(
            f"{reference}: {len(references)} lines, but {source} has {len(lines)}; "
            "they must be parallel"
        )
    pairs = [pair for pair in zip(lines, references, strict=True) if pair[0].strip()][:limit]
    if not pairs:
        raise BothendsError(f"{source}: no line with text in it")
    pairs.sort(key=lambda pair: -len(pair[0]))
    return [line for line, _ in pairs], [text for _, text in pairs] if reference else None


def _read(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BothendsError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BothendsError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from None
