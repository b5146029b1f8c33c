"""The text that a vocabulary is trained on: a random sample of a corpus that fits into memory."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

#: Characters of a sample, at about eight bytes each while SentencePiece works on them.
SAMPLE_CHARACTERS = 100_000_000

#: Characters in the distinct words of a sample, at about 120 bytes each in SentencePiece.
DISTINCT_CHARACTERS = 8_000_000

#: Random seed; fixed, since no sample is better than another.
_SEED = 2020


class PairSample:
    """At most `size` random pairs of a corpus, each pair as likely as any other.

    A reservoir: pair number `n` takes the place of one of those kept with probability `size / n`.
    Pairs of long documents fill the memory before they fill the reservoir: then half of them go, at
    random, and the reservoir is half as large from there on, which leaves the chances equal.
    """

    def __init__(self, size: int, characters: int = SAMPLE_CHARACTERS) -> None:
        #: pairs that the sample was taken from
        self.seen = 0
        self._size = size
        self._limit = characters
        self._characters = 0
        self._pairs: list[tuple[str, str]] = []
        self._chance = random.Random(_SEED)

    def add(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Add a batch to the sample, at random."""
        for source, target in zip(sources, targets, strict=True):
            self.seen += 1
            if len(self._pairs) < self._size:
                self._pairs.append((source, target))
            else:
                place = int(self._chance.random() * self.seen)
                if place >= self._size:
                    continue
                self._characters -= sum(map(len, self._pairs[place]))
                self._pairs[place] = source, target
            self._characters += len(source) + len(target)
            while self._characters > self._limit and self._size > 1:
                self._halve()

    def _halve(self) -> None:
        self._chance.shuffle(self._pairs)
        self._size = max(1, len(self._pairs) // 2)
        del self._pairs[self._size :]
        self._characters = sum(len(source) + len(target) for source, target in self._pairs)

    def sides(self) -> tuple[list[str], list[str]]:
        """Source lines and target lines, in a random order."""
        self._chance.shuffle(self._pairs)
        return [source for source, _ in self._pairs], [target for _, target in self._pairs]


def within_memory(lines: Sequence[str]) -> list[str]:
    """As many of the first lines as SentencePiece can train on within about a gigabyte.

    A few hundred thousand distinct words are nothing to it, but where words are not separated by
    spaces every line is a word of its own.
    """
    words: set[str] = set()
    characters = 0
    for count, line in enumerate(lines):
        new = set(line.split()) - words
        words |= new
        characters += sum(map(len, new))
        if characters > DISTINCT_CHARACTERS:
            return list(lines[:count])
    return list(lines)
