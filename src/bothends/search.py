"""Beam search that generates a block of words per step: Algorithm 1 of the paper, for every order.

The search sees an engine's best few words per slot, never the vocabulary or the network. It works
on small NumPy arrays, all sentences and rows at once. Line numbers in comments are Algorithm 1's;
`docs/search.md` says where and why this departs from it. The arrays are shaped by

    S  sentences still searched     K  rows (hypotheses) of each      R  all rows, `R = S * K`
    Z  slots of one block           T  slots so far                   n  candidates
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bothends.engines.protocol import Engine, TopK
from bothends.errors import BothendsError, UsageError, nearest
from bothends.model.config import SpecialTokens
from bothends.order import BoolArray, GenerationOrder, IntArray

State = TypeVar("State")
DoubleArray = NDArray[np.float64]

NORMALISATIONS = ("google", "mean")
#: The longest n-gram whose immediate repetition `remove_repeats` removes.
LONGEST_REPEAT = 4


@dataclass(frozen=True)
class SearchOptions:
    """What to search for. Lengths are in tokens of text: the end symbol is not counted."""

    #: hypotheses kept per sentence; 1 is greedy search
    beam: int = 4
    length_penalty: float = 0.6
    #: how a logprob becomes a score, see `score`
    normalisation: Literal["google", "mean"] = "google"
    #: hypotheses returned per sentence
    n_best: int = 1
    min_length: int = 0
    max_length: int = 256
    #: remove n-grams that immediately repeat from what is returned
    deduplicate: bool = False

    def __post_init__(self) -> None:
        lowest = {"beam": 1, "n_best": 1, "min_length": 0, "max_length": 1}
        for name, least in lowest.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise UsageError(f"{name} must be a whole number from {least} on, not {value}")
        if self.n_best > self.beam:
            raise UsageError(
                f"n_best must not exceed the beam: {self.n_best} hypotheses were asked of a beam "
                f"of {self.beam}; widen the beam or ask for fewer"
            )
        if self.min_length > self.max_length:
            raise UsageError(
                f"min_length {self.min_length} is greater than max_length {self.max_length}"
            )
        if not 0 <= self.length_penalty < math.inf:
            raise UsageError(f"length_penalty must be 0 or more, not {self.length_penalty}")
        if self.normalisation not in NORMALISATIONS:
            raise UsageError(
                f"unknown normalisation {self.normalisation!r}; "
                + nearest(self.normalisation, NORMALISATIONS)
            )

    def score(self, logprob: float, length: int) -> float:
        """A logprob normalised by the number of text tokens, as CTranslate2 counts them.

        `google` divides by `((5 + length) / 6) ** length_penalty` (Wu et al. 2016), `mean` by the
        length, where the empty text counts as one token.
        """
        if self.normalisation == "mean":
            return logprob / max(length, 1)
        norm: float = ((5 + length) / 6) ** self.length_penalty
        return logprob / norm


@dataclass(frozen=True)
class Hypothesis:
    """One result. `logprob` is the forced score of exactly `tokens`, and of the end symbol if
    `finished`; after deduplication it still is that of the tokens before."""

    tokens: list[int]  # text order, without the end symbol
    logprob: float
    score: float
    steps: int  # decoder steps that made it
    finished: bool  # False: cut at the length limit


class Blocks(NamedTuple):
    """The best blocks that continue each row, best first."""

    logprobs: DoubleArray  # (R, n)
    tokens: IntArray  # (R, n, Z), pad after an end symbol


class BlockInputs(NamedTuple):
    """What a block feeds to an engine besides its tokens; the same for every sentence."""

    positions: IntArray  # (Z,)
    directions: IntArray  # (Z,)
    mask_rows: BoolArray  # (Z, T)


@lru_cache(maxsize=4096)
def block_inputs(order: GenerationOrder, block: int) -> BlockInputs:
    """Positions, directions and mask rows of block number `block`. Shared: not to be written to."""
    first, slots = block * order.block_size, (block + 1) * order.block_size
    return BlockInputs(
        order.positions(slots)[first:],
        order.direction_ids(slots)[first:],
        order.mask_rows(block),
    )


def joint_topk(top: TopK, k: int, end: int, pad: int) -> Blocks:
    """The best `k` blocks of each row, out of all combinations of its slots' words.

    A block's logprob is the sum over its slots up to its first end symbol, which closes it: what
    would follow adds nothing, and is one block, not many. Where there are fewer than `k`, there are
    fewer in the answer, or some of logprob -inf to fill it up.

    Slots are added one by one. Of the open beginnings the best `k` suffice: whatever a worse one
    would become, those become with the same words, and no worse. Closed blocks are set apart, not
    pruned beside them: their logprob is final while that of an open beginning still falls, so a
    block that looks poor when it closes may be among the best in the end. Ties are broken by rank
    in the engine's lists.
    """
    rows, slots, width = top.ids.shape
    row = np.arange(rows)[:, None]
    words = top.logprobs.astype(np.float64)
    is_end = top.ids == end
    may_close = is_end.any()  # in most steps of most sentences no slot offers the end
    logprobs = np.zeros((rows, 1))
    tokens = np.full((rows, 1, slots), pad)
    closed: list[Blocks] = []
    for slot in range(slots):
        slot_words = words[:, slot]  # (R, width)
        if may_close:
            slot_ends = is_end[:, slot]
            end_logprob = np.where(slot_ends, slot_words, -np.inf).max(axis=1, keepdims=True)
            closed_tokens = tokens.copy()
            closed_tokens[:, :, slot] = end
            closed.append(Blocks(logprobs + end_logprob, closed_tokens))
            slot_words = np.where(slot_ends, -np.inf, slot_words)
        if width == 1:  # greedy search: nothing to choose from
            logprobs = logprobs + slot_words
            tokens[:, :, slot] = top.ids[:, slot]
            continue
        # (R, n, 1) + (R, 1, width) -> (R, n * width)
        sums = (logprobs[:, :, None] + slot_words[:, None, :]).reshape(rows, -1)
        best = _rank(sums)[:, :k]
        logprobs = sums[row, best]
        tokens = tokens[row, best // width]
        tokens[:, :, slot] = top.ids[row, slot, best % width]
    if not may_close:
        return Blocks(logprobs, tokens)
    logprobs = np.concatenate([logprobs, *(block.logprobs for block in closed)], axis=1)
    tokens = np.concatenate([tokens, *(block.tokens for block in closed)], axis=1)
    best = _rank(logprobs)[:, :k]
    return Blocks(logprobs[row, best], tokens[row, best])


def beam_search(
    engine: Engine[State],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    options: SearchOptions,
    max_lengths: IntArray | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each source sentence `(S, N)`, best first.

    `max_lengths` `(S,)` overrides `options.max_length` sentence by sentence. A target may have that
    many tokens and its end symbol; a hypothesis that would go on is cut there, and unfinished.
    """
    if not len(source):
        return []
    beam, size = options.beam, order.block_size
    state = engine.encode(source)
    # Line 1. Rows stay rectangular, (S, K): a row of logprob -inf is dead and fills its place.
    logprobs = np.zeros((len(source), 1))
    tokens = np.full((len(source), 1, size), special.start)  # the last block, (S, K, Z)
    history = np.empty((len(source), 1, 0), dtype=np.int64)  # all blocks, (S, K, T)
    finished = _Finished(len(source), order, options)  # line 2
    # Sentences leave when they are done, so a line of these arrays may be about any sentence.
    sentences = np.arange(len(source))
    limits = _limits(len(source), options, max_lengths)
    closest_limit = limits.min()

    for block in count():  # lines 3, 4 and 18
        first, after = block * size, (block + 1) * size
        below_minimum, reaches_limit = first < options.min_length, after > closest_limit
        # One word more where the end symbol is forbidden, because it may be one of the best.
        words = beam + below_minimum
        inputs = block_inputs(order, block)
        top = engine.step(state, tokens.reshape(-1, size), *inputs, words)  # lines 5 and 6
        rows_each = logprobs.shape[1]
        if below_minimum or reaches_limit:
            top = _within_lengths(top, first, limits.repeat(rows_each), options, special)
        blocks = joint_topk(top, beam, special.end, special.pad)  # lines 7 and 8

        # The candidates of all rows of a sentence side by side: (S * K, n) -> (S, K * n)
        shape, per_row = (len(sentences), -1), blocks.logprobs.shape[1]
        line = np.arange(len(sentences))[:, None]
        candidates = (logprobs.reshape(-1, 1) + blocks.logprobs).reshape(shape)
        blocks_tokens = blocks.tokens.reshape(*shape, size)
        ranking = _rank(candidates)
        is_end = blocks_tokens == special.end
        any_end = is_end.any()
        if any_end:  # lines 9 to 11
            closed = is_end.any(axis=2)
            # A candidate ends its sentence if it is among the step's best `beam`. Algorithm 1 takes
            # every one: then a few poor endings fill the pool and stop the search too early.
            best = ranking[:, :beam]
            for i, rank in np.argwhere(closed[line, best] & (candidates[line, best] > -np.inf)):
                chosen = best[i, rank]
                slots = np.append(history[i, chosen // per_row], blocks_tokens[i, chosen])
                slots = slots[: first + is_end[i, chosen].argmax()]
                finished.add(sentences[i], slots, candidates[i, chosen], block + 1, ended=True)
            candidates[closed] = -np.inf
            ranking = _rank(candidates)
        ranking = ranking[:, :beam]  # lines 12, 13 and 17
        logprobs = candidates[line, ranking]
        tokens = blocks_tokens[line, ranking]
        parents = ranking // per_row
        moved = parents.shape[1] != rows_each or bool((parents != np.arange(rows_each)).any())
        if moved:
            history = history[line, parents]
        history = np.concatenate([history, tokens], axis=2)

        if any_end or reaches_limit:  # the conditions of line 4
            done = limits < after
            for i, rank in np.argwhere(done[:, None] & (logprobs > -np.inf)):
                slots = history[i, rank, : limits[i]]
                finished.add(sentences[i], slots, logprobs[i, rank], block + 1, ended=False)
            done |= finished.has_enough(sentences)
            done |= logprobs.max(axis=1) == -np.inf  # the vocabulary was too small for the beam
            if done.all():
                return finished.best()  # line 20
            if done.any():
                going = ~done
                line, parents, moved = line[going], parents[going], True
                logprobs, tokens, history = logprobs[going], tokens[going], history[going]
                sentences, limits = sentences[going], limits[going]
                closest_limit = limits.min()
        if moved:
            state = engine.select(state, line * rows_each + parents)
    raise AssertionError("every sentence reaches its limit")


def remove_repeats(tokens: Sequence[int], longest: int = LONGEST_REPEAT) -> list[int]:
    """`tokens` without the n-grams, of up to `longest` tokens, that repeat what is right before."""
    kept: list[int] = []
    for token in tokens:
        kept.append(token)
        for n in range(1, longest + 1):
            if len(kept) >= 2 * n and kept[-n:] == kept[-2 * n : -n]:
                del kept[-n:]
                break  # what is left was free of repeats one token ago
    return kept


class _Finished:
    """The hypotheses that are complete, sentence by sentence."""

    def __init__(self, sentences: int, order: GenerationOrder, options: SearchOptions) -> None:
        self.order = order
        self.options = options
        self.pools: list[list[Hypothesis]] = [[] for _ in range(sentences)]

    def add(
        self, sentence: int, slots: IntArray, logprob: float, steps: int, *, ended: bool
    ) -> None:
        tokens = self.order.inverse(slots.tolist())
        score = self.options.score(float(logprob), len(tokens))
        self.pools[sentence].append(Hypothesis(tokens, float(logprob), score, steps, ended))

    def has_enough(self, sentences: IntArray) -> BoolArray:
        return np.array([len(self.pools[i]) >= self.options.beam for i in sentences])

    def best(self) -> list[list[Hypothesis]]:
        """The best of each sentence by score; of equals, the one found first."""
        if not all(self.pools):
            raise BothendsError(
                "the model gives no word a probability: its weights are damaged, or training "
                "ended in NaN; use another checkpoint, or export the model again"
            )
        best = [
            sorted(pool, key=lambda one: -one.score)[: self.options.n_best] for pool in self.pools
        ]
        if not self.options.deduplicate:
            return best
        return [[replace(one, tokens=remove_repeats(one.tokens)) for one in pool] for pool in best]


def _rank(logprobs: DoubleArray) -> IntArray:
    """Indices of each line from the best down; the first of equals comes first."""
    return (-logprobs).argsort(axis=1, kind="stable")


def _limits(sentences: int, options: SearchOptions, max_lengths: IntArray | None) -> IntArray:
    if max_lengths is None:
        return np.full(sentences, options.max_length)
    if max_lengths.shape != (sentences,) or max_lengths.min() < 0:
        raise UsageError(
            f"max_lengths must hold one length from 0 on for each of {sentences} sentences, "
            f"not {max_lengths.tolist()}"
        )
    return max_lengths


def _within_lengths(
    top: TopK, first: int, limits: IntArray, options: SearchOptions, special: SpecialTokens
) -> TopK:
    """The words that keep to the lengths allowed, for a block that starts at slot `first`.

    Before the minimum there is no end symbol. At the limit `(R,)` there is one way on: the end
    symbol if that is the model's first choice, and otherwise the cut, which adds nothing. Were both
    offered, the same text would come back twice, and the cut always ahead. Slots after the limit
    add nothing.
    """
    logprobs, ids = top.logprobs.astype(np.float64), top.ids.copy()
    slots = np.arange(first, first + ids.shape[1])
    early = slots < options.min_length
    logprobs[early[:, None] & (ids == special.end)] = -np.inf
    # The word that was asked for on top would only make the search depend on where a block starts.
    logprobs[:, ~early, options.beam :] = -np.inf

    beyond = slots >= limits[:, None]  # (R, Z)
    allowed = logprobs[:, :, 0] > -np.inf
    ending = (slots == limits[:, None]) & (ids[:, :, 0] == special.end) & allowed
    logprobs[beyond, 1:] = -np.inf
    logprobs[beyond & ~ending, 0] = 0.0
    ids[beyond & ~ending, 0] = special.pad
    return TopK(logprobs, ids)
