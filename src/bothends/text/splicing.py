"""New sentences for a teacher to translate: the beginning of an old one, the end of another.

Where two sentences have the same two words side by side, one can go on as the other does:

    We have to leave | at once.
    She told me to leave | the door open.      We have to leave the door open.

A student learns how its teacher translates. Given the same sources again and again, it learns their
translations by heart; given new ones, it has to learn the way. For that they need not be true, nor
quite right, only like what is going to be translated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from bothends.errors import BothendsError

#: Attempts between two looks at how many of them were new.
_ROUND = 1 << 14
#: The share of new sentences among attempts below which there is no point in going on.
_WORTHWHILE = 0.001


def splice(
    sentences: Sequence[str], count: int, seed: int = 1, exclude: Collection[str] = ()
) -> Iterator[str]:
    """Up to `count` different sentences, none of them given or excluded.

    A new sentence is no longer than the longer one of the two it comes from.
    """
    # As they would come out: with single spaces.
    known = {" ".join(sentence.split()) for sentence in (*sentences, *exclude)}
    text = _Text([sentence.split() for sentence in dict.fromkeys(sentences)])
    random = np.random.default_rng(seed)
    while count > 0:
        made = 0
        for words in text.attempts(random, _ROUND):
            sentence = " ".join(words)
            if sentence not in known:
                known.add(sentence)
                made += 1
                yield sentence
                if made == count:
                    return
        if made < _WORTHWHILE * _ROUND:
            return
        count -= made


class _Text:
    """All words in a row, and where each pair of neighbours stands."""

    def __init__(self, sentences: Sequence[list[str]]) -> None:
        numbers: dict[str, int] = {}
        self._sentences = sentences
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        row = np.array(
            [numbers.setdefault(word, len(numbers)) for words in sentences for word in words],
            dtype=np.int64,
        )
        sentence = np.repeat(np.arange(len(sentences)), lengths)
        place = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        # Two neighbours with a word after them: what follows may follow the same two elsewhere.
        first = np.nonzero(place < lengths[sentence] - 2)[0]
        if not len(first):
            raise BothendsError(
                "no sentence has three words separated by spaces: nothing to splice"
            )
        pair = row[first] * len(numbers) + row[first + 1]
        by_pair = np.argsort(pair, kind="stable")
        self._pair = pair[by_pair]
        self._sentence, self._place = sentence[first][by_pair], place[first][by_pair]

    def attempts(self, random: np.random.Generator, count: int) -> Iterator[list[str]]:
        """Sentences joined at random, not always new ones."""
        begin = random.integers(len(self._pair), size=count)
        lowest = np.searchsorted(self._pair, self._pair[begin], side="left")
        highest = np.searchsorted(self._pair, self._pair[begin], side="right")
        end = random.integers(lowest, highest)
        for one, other in zip(begin.tolist(), end.tolist(), strict=True):
            head, tail = self._words(one), self._words(other)
            words = head[: self._place[one] + 2] + tail[self._place[other] + 2 :]
            if len(words) <= max(len(head), len(tail)):
                yield words

    def _words(self, place: int) -> list[str]:
        return self._sentences[int(self._sentence[place])]
