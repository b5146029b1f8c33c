"""Which word becomes which: IBM model 1 (Brown et al. 1993) by expectation maximisation.

Every target word of a pair was written by one of its source words, or by none of them, and all are
as likely to have been the one. From that alone, p(target word | source word) is learned:

    E   each target word is shared out among the source words of its pair, in proportion to p
    M   p(t | s) is what s got of t, over all that s got

The table is sparse: it has the pairs of words that stand in some pair of sentences together. Links
(a target word and a source word of its pair) are gone through in chunks, so memory stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bothends.errors import BothendsError
from bothends.order import IntArray

#: Links of a chunk: some tens of megabytes of arrays.
_CHUNK = 1 << 21


@dataclass(frozen=True)
class WordTable:
    """Pairs of words that were seen together, source words in rising order, and p(target | source).

    The source word of number `source_words` is none: it writes what nobody wrote.
    """

    sources: IntArray
    targets: IntArray
    probabilities: NDArray[np.float64]


@dataclass(frozen=True)
class _Chunk:
    """Links of some pairs: their `places` in `keys`, those of a target word side by side."""

    #: source word * target_words + target word, rising; or where these are in the table
    keys: IntArray
    places: NDArray[np.int32]
    #: where the links of each target word begin, and how many it has
    first: IntArray
    count: IntArray


def learn_table(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    source_words: int,
    target_words: int,
    iterations: int = 5,
    tell: Callable[[str], None] = lambda message: None,
) -> WordTable:
    """The table of pairs of sentences, after so many iterations from a uniform one."""
    chunks = [
        _links(source, target, source_words, target_words)
        for source, target in _parts(sources, targets)
    ]
    keys = _union([chunk.keys for chunk in chunks])
    if not len(keys):
        raise BothendsError("no pair of lines has text on both sides: nothing to learn from")
    chunks = [replace(chunk, keys=np.searchsorted(keys, chunk.keys)) for chunk in chunks]
    table_sources, table_targets = np.divmod(keys, target_words)
    probabilities = np.ones(len(keys))
    for iteration in range(iterations):
        tell(f"iteration {iteration + 1} of {iterations}")
        counts = np.zeros(len(keys))
        for chunk in chunks:
            share = probabilities[chunk.keys][chunk.places]
            share /= np.add.reduceat(share, chunk.first).repeat(chunk.count)
            counts[chunk.keys] += np.bincount(chunk.places, share, len(chunk.keys))
        totals = np.bincount(table_sources, counts, source_words + 1)
        probabilities = counts / totals[table_sources]
    return WordTable(table_sources, table_targets, probabilities)


def _union(parts: Sequence[IntArray]) -> IntArray:
    """All keys, each once, rising. Two by two: one after another would go through all of them for
    each part."""
    if not parts:
        return np.zeros(0, np.int64)
    while len(parts) > 1:
        parts = [np.unique(np.concatenate(parts[i : i + 2])) for i in range(0, len(parts), 2)]
    return parts[0]


def _parts(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]]:
    """The pairs in parts of about `_CHUNK` links."""
    cuts, links = [0], 0
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        links += (len(source) + 1) * len(target)
        if links >= _CHUNK:
            cuts.append(number + 1)
            links = 0
    cuts.append(len(sources))
    return [
        (sources[begin:end], targets[begin:end]) for begin, end in pairwise(cuts) if end > begin
    ]


def _links(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    source_words: int,
    target_words: int,
) -> _Chunk:
    """The pairs of words of some pairs of sentences, and their links into these."""
    # A source word that stands twice writes no more than one that stands once.
    unique = [[source_words, *dict.fromkeys(source)] for source in sources]
    lengths = np.array([len(source) for source in unique])
    begins = lengths.cumsum() - lengths
    source = np.array([token for each in unique for token in each], np.int64)
    pair = np.arange(len(targets)).repeat([len(target) for target in targets])
    target = np.array([token for each in targets for token in each], np.int64)
    count = lengths[pair]  # links of each target word
    first = count.cumsum() - count
    # The links of a target word go through the source words of its pair.
    place = np.arange(count.sum()) + (begins[pair] - first).repeat(count)
    keys = source[place] * target_words + target.repeat(count)
    found, places = np.unique(keys, return_inverse=True)
    return _Chunk(found, places.astype(np.int32), first, count)
