"""Search with known tokens: write the middle of a target whose two ends are given.

Once the length of a target is fixed, every known token has one slot in generation order, whichever
strand it falls into, and so has the end symbol. A *frame* is a target of one length with some
tokens known. Known slots are forced, free slots take the engine's best words, and frames of many
lengths are searched side by side in one batch; their results compete by normalised score. A decoder
that writes from both ends has read the given end before it reaches the gap; `1x1` writes the gap
first and is held to the end afterwards, by the same code.

The search is exact in two ways: a result's logprob is its forced score, known tokens and end symbol
included, and a wide beam finds what trying every middle would find. The arrays are shaped by

    F  frames still searched        K  rows (hypotheses) of each      R  all rows, `R = F * K`
    Z  slots of one block           T  slots of the longest frame     n  candidates of a frame
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import numpy as np

from bothends.engines.protocol import Engine, FloatArray, TopK
from bothends.order import BoolArray, GenerationOrder, IntArray
from bothends.search.beam import DoubleArray, Hypothesis, joint_topk
from bothends.search.options import SearchOptions
from bothends.text.vocabulary import SpecialTokens

State = TypeVar("State")

#: Marks a place of a frame that the search is to write.
FREE = -1
#: Words that are asked of a slot in which only some are possible.
CHOICE_WORDS = 64
#: Rows that are stepped together: with more, their state leaves the processor's caches.
ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Choice:
    """The words that are possible at a place, of which the best `CHOICE_WORDS` are looked at."""

    possible: BoolArray  # (V,)


@dataclass(frozen=True)
class Frame:
    """A target of fixed length in text order, with `FREE` where the search is to write."""

    tokens: tuple[int, ...]
    #: its sentence in the batch of sources
    source: int = 0
    #: free places at which not every word is possible
    choices: tuple[tuple[int, Choice], ...] = ()

    @classmethod
    def around(cls, prefix: Sequence[int], gap: int, suffix: Sequence[int]) -> Frame:
        return cls((*prefix, *[FREE] * gap, *suffix))


@dataclass(frozen=True)
class FilledFrame(Hypothesis):
    """One result, and the frame that it fills."""

    frame: Frame


#: May a frame become this text? Tokens not yet written are `FREE`.
Allowed = Callable[[Frame, IntArray], bool]


def fill_frames(
    engine: Engine[State],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    frames: Iterable[Frame],
    options: SearchOptions,
    allowed: Allowed | None = None,
    n_best: int | None = None,
) -> list[list[FilledFrame]]:
    """The `n_best` ways to fill any frame of each source sentence `(S, N)`, best first.

    `options.beam` hypotheses are kept per frame. Frames can have more results together, so `n_best`
    may exceed the beam; by default it is `options.n_best`. `allowed` is asked about every
    candidate, and what it refuses is dropped. A sentence without frames, or with frames that
    nothing can fill, has no results.
    """
    results = _Results(len(source), order, options, n_best or options.n_best)
    # Short frames are done first, and their scores then spare longer ones their last steps.
    ordered = sorted(frames, key=lambda frame: len(frame.tokens))
    at_once = max(1, ROWS_AT_ONCE // options.beam)
    for first in range(0, len(ordered), at_once):
        together = ordered[first : first + at_once]
        _fill(engine, order, special, source, together, options, allowed, results)
    return results.best()


def _fill(
    engine: Engine[State],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    frames: list[Frame],
    options: SearchOptions,
    allowed: Allowed | None,
    results: _Results,
) -> None:
    """Search some frames together and add what they become to `results`."""
    size = order.block_size
    live = _LiveFrames(
        frames,
        given=order.target_slots([frame.tokens for frame in frames], special.end, special.pad),
        logprobs=np.zeros((len(frames), 1)),
        history=np.full((len(frames), 1, size), special.start),
    )
    # A source is read once, however many frames it has.
    of_frame = np.array([[frame.source] for frame in frames], dtype=np.int64)
    state = engine.select(engine.encode(source), of_frame)
    for number in count():
        rows = live.logprobs.shape[1]
        here = range(number * size, (number + 1) * size)
        known = live.given[:, here].repeat(rows, axis=0)  # (R, Z)
        free = known == FREE
        choices = _choices(live, order, here)
        top, forced = engine.step_and_force(
            state,
            live.history[:, :, -size:].reshape(-1, size),
            order.block(number),
            _words_to_ask(options.beam, bool(free.any()), bool(choices)),
            np.where(free, special.pad, known),
        )
        top = _with_known(top, forced, known, free, special.end)
        for line, slot, choice in choices:
            its = slice(line * rows, (line + 1) * rows)
            top.logprobs[its, slot][~choice.possible[top.ids[its, slot]]] = -np.inf
        blocks = joint_topk(top, options.beam, special.end, special.pad)
        # (F, K, 1) + (F, K, n) -> (F, K * n)
        shape = (len(live.frames), rows, -1)
        logprobs = live.logprobs[:, :, None] + blocks.logprobs.reshape(shape)
        logprobs = logprobs.reshape(len(live.frames), -1)
        tokens = blocks.tokens.reshape(*logprobs.shape, size)
        if allowed is not None and free.any():
            _refuse(live, order, logprobs, tokens, allowed)
        logprobs[logprobs < results.floors(live.frames)] = -np.inf

        live, parents = live.continued(logprobs, tokens, options.beam)
        done = np.array([order.steps(len(f.tokens)) == number + 1 for f in live.frames])
        results.add(live, done)
        going = ~done & (live.logprobs > -np.inf).any(axis=1)
        if not going.any():
            return
        live, parents = live.take(going), parents[going]
        if not np.array_equal(parents.ravel(), np.arange(len(known))):
            state = engine.select(state, parents)


def _choices(
    live: _LiveFrames, order: GenerationOrder, here: range
) -> list[tuple[int, int, Choice]]:
    """Frames and slots of the present block at which not every word is possible."""
    found = []
    for line, frame in enumerate(live.frames):
        for place, choice in frame.choices:
            slot = int(np.flatnonzero(order.permutation(len(frame.tokens)) == place)[0])
            if slot in here:
                found.append((line, slot - here.start, choice))
    return found


def _words_to_ask(beam: int, any_free: bool, any_choice: bool) -> int:
    if any_choice:
        return max(beam + 1, CHOICE_WORDS)
    # One word more, because the end symbol may be one of the best, and is not possible here.
    return beam + 1 if any_free else 1


def _with_known(top: TopK, forced: FloatArray, known: IntArray, free: BoolArray, end: int) -> TopK:
    """The best words of free slots without the end symbol, and the one word of known slots."""
    logprobs, ids = top.logprobs.astype(np.float64), top.ids.copy()
    logprobs[ids == end] = -np.inf
    logprobs[~free] = -np.inf
    logprobs[~free, 0] = forced[~free]
    ids[~free, 0] = known[~free]
    # joint_topk looks for end symbols, also in places of logprob -inf.
    ids[~free, 1:] = known[~free][:, None]
    return TopK(logprobs, ids)


@dataclass
class _LiveFrames:
    """The open hypotheses of the frames that are not done. A row of logprob -inf is dead."""

    frames: list[Frame]
    given: IntArray  # (F, T), known tokens in generation order, the end symbol, padding
    logprobs: DoubleArray  # (F, K)
    history: IntArray  # (F, K, Z + slots so far), after a block of start symbols

    def continued(
        self, logprobs: DoubleArray, tokens: IntArray, beam: int
    ) -> tuple[_LiveFrames, IntArray]:
        """The best candidates of each frame, and the row that each continues.

        No more rows than the frame with the most candidates needs: while only known tokens are
        read, that is one.
        """
        needed = int((logprobs > -np.inf).sum(axis=1).max())
        best = (-logprobs).argsort(axis=1, kind="stable")[:, : min(beam, max(needed, 1))]
        line = np.arange(len(best))[:, None]
        rows = self.logprobs.shape[1]
        parents = best // (logprobs.shape[1] // rows)
        history = np.concatenate([self.history[line, parents], tokens[line, best]], axis=2)
        live = _LiveFrames(self.frames, self.given, logprobs[line, best], history)
        return live, line * rows + parents

    def take(self, lines: BoolArray) -> _LiveFrames:
        frames = [frame for frame, kept in zip(self.frames, lines, strict=True) if kept]
        return _LiveFrames(frames, self.given[lines], self.logprobs[lines], self.history[lines])


class _Results:
    """The finished hypotheses of each sentence, over all its frames."""

    def __init__(
        self, sentences: int, order: GenerationOrder, options: SearchOptions, n_best: int
    ) -> None:
        self.order = order
        self.options = options
        self.n_best = n_best
        self.pools: list[list[FilledFrame]] = [[] for _ in range(sentences)]

    def floors(self, frames: list[Frame]) -> DoubleArray:
        """The logprob below which no hypothesis of a frame can be among the best, `(F, 1)`.

        Logprobs only fall, and so does the score of a target whose length is fixed: what is worse
        than enough finished hypotheses now will be worse in the end.
        """
        lowest = []
        for frame in frames:
            pool = self.pools[frame.source]
            if len(pool) < self.n_best:
                lowest.append(-np.inf)
            else:
                length = len(frame.tokens)
                worst = pool[self.n_best - 1].score
                lowest.append(worst / self.options.score(1.0, length))
        return np.array(lowest)[:, None]

    def add(self, live: _LiveFrames, done: BoolArray) -> None:
        """Take the hypotheses of the frames that have got their end symbol."""
        for i, row in np.argwhere(done[:, None] & (live.logprobs > -np.inf)):
            frame, logprob = live.frames[i], float(live.logprobs[i, row])
            length, start = len(frame.tokens), self.order.block_size
            tokens = self.order.inverse(live.history[i, row, start : start + length].tolist())
            score, steps = self.options.score(logprob, length), self.order.steps(length)
            pool = self.pools[frame.source]
            pool.append(FilledFrame(tokens, logprob, score, steps, finished=True, frame=frame))
            pool.sort(key=lambda one: -one.score)

    def best(self) -> list[list[FilledFrame]]:
        return [pool[: self.n_best] for pool in self.pools]


def _refuse(
    live: _LiveFrames,
    order: GenerationOrder,
    logprobs: DoubleArray,
    tokens: IntArray,
    allowed: Allowed,
) -> None:
    """Give candidates that must not be the logprob -inf."""
    per_row = logprobs.shape[1] // live.logprobs.shape[1]
    size = order.block_size
    for i, candidate in np.argwhere(logprobs > -np.inf):
        frame = live.frames[i]
        before = live.history[i, candidate // per_row, size:]
        slots = np.append(before, tokens[i, candidate])[: len(frame.tokens)]
        text = np.array(frame.tokens, dtype=np.int64)  # floats, if there are none
        text[order.permutation(len(text))[: len(slots)]] = slots
        if not allowed(frame, text):
            logprobs[i, candidate] = -np.inf
