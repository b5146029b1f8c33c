"""Damaged lines, for a model that learns to mend them before it learns its task.

    The committee will meet again on Monday morning .
    The ▢ meet again Monday morning .

A model that is trained to write the first line when it reads the second learns to copy, to choose
and to write the language, from text without any translation or summary. Spans of words are replaced
by a mark, whatever their length; single words are left out; some lines stay as they are. Spans of
other lines may be put in, which the model has to leave out again: of all damage, it is nearest to a
summary (Févry and Phang 2018).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bothends.errors import UsageError

#: Stands for the words that are missing. One character, so that a vocabulary has it as one piece.
MARK = "\u25a2"

#: How many lines before a line its added words are from.
NEIGHBOURS = 1000


@dataclass(frozen=True)
class Damage:
    """How much of a text is damaged."""

    #: share of the words under marks
    masked: float = 0.3
    #: words under a mark, on average
    span: float = 3.0
    #: share of the other words that are left out
    deleted: float = 0.1
    #: share of the lines that stay as they are
    copied: float = 0.2
    #: words of other lines that are put in, for each word of a line
    added: float = 0.0

    def __post_init__(self) -> None:
        for name in ("masked", "deleted", "copied"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise UsageError(f"{name} must be between 0 and 1, but is {share}")
        if not 0 <= self.added <= 10:
            raise UsageError(f"added must be between 0 and 10, but is {self.added}")
        if not 1 <= self.span <= 100:
            raise UsageError(f"span must be between 1 and 100, but is {self.span}")


def damage_lines(lines: Iterable[str], damage: Damage, seed: int = 1) -> Iterator[str]:
    """Each line as a model is going to read it. Lines of a single word stay as they are."""
    chance = random.Random(seed)
    others: deque[list[str]] = deque(maxlen=NEIGHBOURS)
    for line in lines:
        words = line.split()
        if len(words) < 2 or chance.random() < damage.copied:
            yield line
        else:
            left = _damage(words, damage, chance)
            yield " ".join(_add(left, len(words) * damage.added, others, damage.span, chance))
        if words and damage.added:
            others.append(words)


def _add(
    words: list[str],
    count: float,
    others: Sequence[list[str]],
    span: float,
    chance: random.Random,
) -> list[str]:
    """`words` with `count` words of `others` between them, in spans; none for the first line."""
    missing = int(count + chance.random()) if others and count else 0
    spans: dict[int, list[str]] = {}
    while missing:
        other = chance.choice(others)
        start = chance.randrange(len(other))
        found = other[start : start + min(missing, 1 + _poisson(span - 1, chance))]
        spans.setdefault(chance.randint(0, len(words)), []).extend(found)
        missing -= len(found)
    mixed: list[str] = []
    for place, word in enumerate(words):
        mixed += [*spans.get(place, ()), word]
    return mixed + spans.get(len(words), [])


def _damage(words: list[str], damage: Damage, chance: random.Random) -> list[str]:
    hidden = _spans(len(words), damage, chance)
    left: list[str] = []
    for place, word in enumerate(words):
        if hidden[place]:
            if not (place and hidden[place - 1]):
                left.append(MARK)
        elif chance.random() >= damage.deleted:
            left.append(word)
    return left or [MARK]


def _spans(count: int, damage: Damage, chance: random.Random) -> list[bool]:
    """Which of so many words are under marks. Spans are as likely to be short as in BART."""
    hidden = [False] * count
    # The share of a short line is seldom a whole number of words.
    missing = int(damage.masked * count + chance.random())
    for start in chance.sample(range(count), count):
        if not missing:
            break
        end = start + min(missing, 1 + _poisson(damage.span - 1, chance))
        for place in range(start, min(end, count)):
            if hidden[place]:
                break
            hidden[place] = True
            missing -= 1
    return hidden


def _poisson(mean: float, chance: random.Random) -> int:
    """Arrivals within a time of `mean`, at one a unit."""
    arrivals, time = 0, chance.expovariate(1)
    while time < mean:
        arrivals += 1
        time += chance.expovariate(1)
    return arrivals
