"""Which pairs make which update, and the arrays that the network reads.

An epoch is read in windows. The corpus is cut into blocks of neighbouring pairs, which are visited
in a random order that is computed, not stored; a window is the pairs of some thousand blocks.
Inside a window pairs are sorted by length, cut into micro-batches of similar lengths, and the
micro-batches are shuffled. So memory is that of one window, however large the corpus; disk reads
are of whole blocks; and everything follows from `(seed, epoch, window)`: a run resumes at a
`Position` without any stored permutation. A corpus smaller than a window is shuffled as a whole.

Every process knows all micro-batches by the lengths of their pairs, and reads the tokens of its
own. Their pairs come from all over the corpus, so several machines would each read most of its
pages. With lanes, the corpus is cut into that many stretches and the pairs of a micro-batch are of
one of them: a machine then reads its lanes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise, zip_longest
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bothends.model.config import TextFrame
from bothends.order import Block, GenerationOrder, IntArray
from bothends.text.vocabulary import SpecialTokens
from bothends.training.recipe import Batch as BatchSettings
from bothends.training.shuffle import RandomOrder

#: Neighbouring pairs that are read together: a few pages of a shard, as the system reads them.
BLOCK = 128
#: Pairs in memory, as indices and lengths, at a time.
WINDOW = 1 << 17


class AlignedPairs(Protocol):
    """Aligned token sequences in text order, without special tokens, as a corpus has them."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> tuple[NDArray[np.integer], NDArray[np.integer]]: ...
    @property
    def source_lengths(self) -> NDArray[np.integer]: ...
    @property
    def target_lengths(self) -> NDArray[np.integer]: ...


@dataclass(frozen=True)
class Position:
    """A place in the stream of micro-batches: the next one to be read."""

    epoch: int = 0
    window: int = 0
    batch: int = 0


@dataclass(frozen=True)
class MicroBatch:
    """The pairs of one forward and backward pass."""

    pairs: IntArray  # indices into the mixture
    target_tokens: int  # real ones, end symbols included
    lane: int = 0  # the part of the corpus that all its pairs are of


@dataclass(frozen=True)
class Update:
    """The micro-batches whose gradients make one update, and the place after them."""

    micro_batches: tuple[MicroBatch, ...]
    epoch: int
    next: Position

    @property
    def target_tokens(self) -> int:
        return sum(batch.target_tokens for batch in self.micro_batches)


@dataclass(frozen=True)
class TooLong:
    """How many pairs of an epoch are left out, and why."""

    source: int
    target: int  # with a source that is short enough

    @property
    def pairs(self) -> int:
        return self.source + self.target


class Mixture:
    """Several corpora read as one; a corpus may count more than once.

    A corpus is given by what opens it. Pages of a memory-mapped file stay with a process until it
    closes the map: `reopen` gives them back, so that memory does not fill up as an epoch goes on.
    """

    def __init__(
        self, corpora: Sequence[Callable[[], AlignedPairs]], repeats: Sequence[int] | None = None
    ) -> None:
        self._corpora = corpora
        self._repeats = repeats or [1] * len(corpora)
        self.reopen()
        self._starts = np.cumsum([0, *(len(part) for part in self._parts)])

    def reopen(self) -> None:
        """Let go of everything that has been read."""
        self._parts = [
            pairs
            for open_pairs, repeat in zip(self._corpora, self._repeats, strict=True)
            for pairs in [open_pairs()] * repeat
        ]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: int, /) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        part = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self._parts[part][index - int(self._starts[part])]

    def lengths(self, indices: IntArray) -> tuple[IntArray, IntArray]:
        """Source and target lengths of some pairs."""
        source, target = np.empty_like(indices), np.empty_like(indices)
        part_of = np.searchsorted(self._starts, indices, side="right") - 1
        for number, part in enumerate(self._parts):
            here = part_of == number
            local = indices[here] - self._starts[number]
            source[here] = part.source_lengths[local]
            target[here] = part.target_lengths[local]
        return source, target


class BatchStream:
    """The endless sequence of updates that a corpus, a seed and the batch settings stand for."""

    def __init__(
        self,
        pairs: Mixture,
        settings: BatchSettings,
        seed: int,
        block: int = BLOCK,
        window: int = WINDOW,
    ) -> None:
        self.pairs = pairs
        self.settings = settings
        self.seed = seed
        self._block = block
        self._blocks = -(-len(pairs) // block)
        self._blocks_per_window = max(1, window // block)
        self.windows = max(1, -(-self._blocks // self._blocks_per_window))

    def too_long(self) -> TooLong:
        """Count the pairs that no epoch reads."""
        source_count = target_count = 0
        for start in range(0, len(self.pairs), WINDOW):
            indices = np.arange(start, min(start + WINDOW, len(self.pairs)))
            source, target = self.pairs.lengths(indices)
            over = source > self.settings.max_source_length
            source_count += int(over.sum())
            target_count += int((~over & (target > self.settings.max_target_length)).sum())
            self.pairs.reopen()
        return TooLong(source_count, target_count)

    def updates(self, start: Position) -> Iterator[Update]:
        """The updates from `start` on, epoch after epoch.

        An update takes micro-batches as long as they bring it closer to the number of tokens that
        the settings ask for, and never crosses the end of an epoch.
        """
        gathered: list[MicroBatch] = []
        tokens, wanted = 0, self.settings.tokens
        for (place, batch), (after, following) in pairwise(self._from(start)):
            gathered.append(batch)
            tokens += batch.target_tokens
            closer = abs(tokens + following.target_tokens - wanted) < abs(tokens - wanted)
            if not closer or after.epoch != place.epoch:
                yield Update(tuple(gathered), place.epoch, after)
                gathered, tokens = [], 0

    def _from(self, start: Position) -> Iterator[tuple[Position, MicroBatch]]:
        """All micro-batches from `start` on with their places, without end."""
        first, skip = start.window, start.batch
        for epoch in count(start.epoch):
            for window in range(first, self.windows):
                batches = self.micro_batches(epoch, window)
                for number in range(skip, len(batches)):
                    yield Position(epoch, window, number), batches[number]
                skip = 0
            first = 0

    def micro_batches(self, epoch: int, window: int) -> list[MicroBatch]:
        """The shuffled micro-batches of one window; those of several lanes take turns."""
        self.pairs.reopen()  # nothing of the window before will be read again
        indices = self._window(epoch, window)
        source, target = self.pairs.lengths(indices)
        short = source <= self.settings.max_source_length
        short &= target <= self.settings.max_target_length
        # Both sides end with an end symbol. Pairs of one length stay in their random order.
        indices, source, target = indices[short], source[short] + 1, target[short] + 1
        place = (self.seed, epoch, window)
        if self.settings.lanes == 1:
            return self._lane(indices, source, target, 0, place)
        lanes = []
        lane_of = indices // self._block * self.settings.lanes // self._blocks
        for lane in range(self.settings.lanes):
            here = lane_of == lane
            pairs = indices[here], source[here], target[here]
            lanes.append(self._lane(*pairs, lane, (*place, 2, lane)))
        return [batch for turn in zip_longest(*lanes) for batch in turn if batch is not None]

    def _lane(
        self, indices: IntArray, source: IntArray, target: IntArray, lane: int, key: tuple[int, ...]
    ) -> list[MicroBatch]:
        """Micro-batches of some pairs, shuffled by a key."""
        # Sources go up and down as targets grow, so that neighbours are alike on both sides.
        by_length = np.lexsort((np.where(target % 2, source, -source), target))
        indices, source, target = indices[by_length], source[by_length], target[by_length]
        batches = []
        for start, end in cut(np.maximum(source, target), self.settings.micro_tokens):
            batches.append(MicroBatch(indices[start:end], int(target[start:end].sum()), lane))
        return [batches[i] for i in np.random.default_rng(key).permutation(len(batches))]

    def _window(self, epoch: int, window: int) -> IntArray:
        """The pairs of a window, in random blocks."""
        first = window * self._blocks_per_window
        places = np.arange(first, min(first + self._blocks_per_window, self._blocks))
        blocks = RandomOrder(self._blocks, (self.seed, epoch))(places)
        indices = (blocks[:, None] * self._block + np.arange(self._block)).ravel()
        indices = indices[indices < len(self.pairs)]
        mixed: IntArray = np.random.default_rng((self.seed, epoch, window, 1)).permutation(indices)
        return mixed


def cut(widths: IntArray, budget: int) -> Iterator[tuple[int, int]]:
    """Cut consecutive rows into the longest stretches whose rectangle is within the budget."""
    start, width = 0, 0
    for row, own in enumerate(widths.tolist()):
        width = max(width, own)
        if row > start and (row + 1 - start) * width > budget:
            yield start, row
            start, width = row, own
    if start < len(widths):
        yield start, len(widths)


@dataclass(frozen=True)
class Arrays:
    """A micro-batch as the network reads it: S sentences, N source tokens, T target slots."""

    source: IntArray  # (S, N)
    tokens: IntArray  # (S, T), the decoder's input
    targets: IntArray  # (S, T)
    block: Block  # the T slots


def collate(
    pairs: Sequence[tuple[NDArray[np.integer], NDArray[np.integer]]],
    order: GenerationOrder,
    special: SpecialTokens,
    frame: TextFrame | None = None,
) -> Arrays:
    """Pad and permute some pairs. Here, and only here, a training target leaves text order."""
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = (special.end,)
    if frame is not None:
        before, after = frame.source_prefix, frame.suffix(special)
    sources = [[*before, *source.tolist(), *after] for source, _ in pairs]
    source_ids = np.full((len(pairs), max(map(len, sources))), special.pad, dtype=np.int64)
    for row, source in zip(source_ids, sources, strict=True):
        row[: len(source)] = source
    targets = order.target_slots([target for _, target in pairs], special.end, special.pad)
    return Arrays(
        source=source_ids,
        tokens=order.shift(targets, special.start),
        targets=targets,
        block=order.whole(targets.shape[1]),
    )
