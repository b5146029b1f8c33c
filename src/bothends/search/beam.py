"""Beam search that generates a block of words per step: Algorithm 1 of the paper, for every order.

The search sees an engine's best few words per slot, never the vocabulary or the network. It works
on small NumPy arrays, all sentences and rows at once. Line numbers in comments are Algorithm 1's;
`docs/search.md` says where and why this departs from it. The arrays are shaped by

    S  sentences still searched     K  rows (hypotheses) of each      R  all rows, `R = S * K`
    Z  slots of one block           T  slots so far                   n  candidates
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bothends.engines.protocol import Engine, TopK
from bothends.errors import BothendsError, UsageError
from bothends.order import BoolArray, GenerationOrder, IntArray
from bothends.search.options import SearchOptions
from bothends.text.vocabulary import SpecialTokens

State = TypeVar("State")
DoubleArray = NDArray[np.float64]

#: Sums that `joint_topk` ranks at once: 100 MB with their ranks. Each row has as many as the square
#: of the beam: beam 256 takes 64 rows at a time, and a beam of usual width all of them.
SUMS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Hypothesis:
    """One result. `logprob` is the forced score of exactly `tokens`, and of the end symbol if
    `finished`."""

    tokens: list[int]  # text order, without the end symbol
    logprob: float
    score: float
    steps: int  # decoder steps that made it
    finished: bool  # False: cut at the length limit


class Blocks(NamedTuple):
    """The best blocks that continue each row, best first."""

    logprobs: DoubleArray  # (R, n)
    tokens: IntArray  # (R, n, Z), pad after an end symbol
    may_end: bool  # False: none of them holds an end symbol


def joint_topk(top: TopK, k: int, end: int, pad: int) -> Blocks:
    """The best `k` blocks of each row, out of all combinations of its slots' words.

    A block's logprob is the sum over its slots up to its first end symbol, which closes it: what
    would follow adds nothing, and is one block, not many. Where there are fewer than `k`, there are
    fewer in the answer, or some of logprob -inf to fill it up. Ties are broken by rank in the
    engine's lists.
    """
    rows, slots, width = top.ids.shape
    may_end = bool((top.ids == end).any())  # in most steps of most sentences no slot offers the end
    if width == 1 and not may_end:  # greedy search: nothing to choose from
        total = top.logprobs.sum(axis=1, dtype=np.float64)
        return Blocks(total, top.ids.reshape(rows, 1, slots), may_end)
    at_once = max(1, SUMS_AT_ONCE // (k * width))
    if rows <= at_once:
        return _joint_topk(top, k, end, pad, may_end)
    chunks = (slice(first, first + at_once) for first in range(0, rows, at_once))
    parts = [
        _joint_topk(TopK(top.logprobs[chunk], top.ids[chunk]), k, end, pad, may_end)
        for chunk in chunks
    ]
    return Blocks(
        np.concatenate([part.logprobs for part in parts]),
        np.concatenate([part.tokens for part in parts]),
        may_end,
    )


def _joint_topk(top: TopK, k: int, end: int, pad: int, may_end: bool) -> Blocks:
    """`joint_topk` of some of the rows. `may_end` is of all: the number of blocks depends on it.

    Slots are added one by one. Of the open beginnings the best `k` suffice: whatever a worse one
    would become, those become with the same words, and no worse. Closed blocks are set apart, not
    pruned beside them: their logprob is final while that of an open beginning still falls, so a
    block that looks poor when it closes may be among the best in the end.
    """
    rows, slots, width = top.ids.shape
    row = np.arange(rows)[:, None]
    logprobs = np.zeros((rows, 1))  # in float64, whatever the engine's precision
    tokens = np.full((rows, 1, slots), pad)
    closed_logprobs, closed_tokens = [], []
    for slot in range(slots):
        slot_words = top.logprobs[:, slot]  # (R, width)
        if may_end:
            slot_ends = top.ids[:, slot] == end
            end_logprob = np.where(slot_ends, slot_words, -np.inf).max(axis=1, keepdims=True)
            closed_logprobs.append(logprobs + end_logprob)
            closed_tokens.append(tokens.copy())
            closed_tokens[-1][:, :, slot] = end
            slot_words = np.where(slot_ends, -np.inf, slot_words)
        # (R, n, 1) + (R, 1, width) -> (R, n * width)
        sums = (logprobs[:, :, None] + slot_words[:, None, :]).reshape(rows, -1)
        best = _rank(sums)[:, :k]
        logprobs = sums[row, best]
        tokens = tokens[row, best // width]
        tokens[:, :, slot] = top.ids[row, slot, best % width]
    if may_end:
        logprobs = np.concatenate([logprobs, *closed_logprobs], axis=1)
        tokens = np.concatenate([tokens, *closed_tokens], axis=1)
        best = _rank(logprobs)[:, :k]
        logprobs, tokens = logprobs[row, best], tokens[row, best]
    return Blocks(logprobs, tokens, may_end)


def beam_search(
    engine: Engine[State],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    options: SearchOptions,
    max_lengths: IntArray | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each source sentence `(S, N)`, best first.

    A target may have `options.limit` tokens, or its number in `max_lengths` `(S,)` if given, and
    its end symbol; a hypothesis that would go on is cut there, and unfinished.
    """
    if not len(source):
        return []
    beam, size = options.beam, order.block_size
    state = engine.encode(source)
    live = _Live(  # line 1
        sentences=np.arange(len(source)),
        limits=sentence_limits(source, special, options, max_lengths),
        logprobs=np.zeros((len(source), 1)),
        history=np.full((len(source), 1, size), special.start),
    )
    finished = _Finished(len(source), order, options)  # line 2
    for number in count():  # lines 3, 4 and 18
        first, after = number * size, (number + 1) * size
        below_minimum, reaches_limit = first < options.min_length, after > live.limits.min()
        # One word more where the end symbol is forbidden, because it may be one of the best.
        words = beam + below_minimum
        last_block = live.history[:, :, -size:].reshape(-1, size)
        top = engine.step(state, last_block, order.block(number), words)  # lines 5 and 6
        if below_minimum or reaches_limit:
            top = _within_lengths(top, first, live, options, special)
        blocks = joint_topk(top, beam, special.end, special.pad)  # lines 7 and 8

        if beam == 1 and not (blocks.may_end or reaches_limit):  # nothing to choose from
            live = live.continued(blocks)
            continue
        candidates = live.extended(blocks)
        if blocks.may_end:  # lines 9 to 11
            is_end = candidates.tokens == special.end
            finished.add_ended(live, candidates, is_end)
            candidates.logprobs[is_end.any(axis=2)] = -np.inf
        live, rows = live.pruned(candidates, beam)  # lines 12, 13 and 17
        if blocks.may_end or reaches_limit:  # the conditions of line 4
            done = live.limits < after
            if reaches_limit:
                finished.add_cut(live, done)
            done |= finished.has_enough(live.sentences)
            if done.all():
                return finished.best()  # line 20
            live, rows = live.take(~done), rows[~done]
        if not np.array_equal(rows.ravel(), np.arange(len(last_block))):
            state = engine.select(state, rows)
    raise AssertionError("every sentence reaches its limit")


class _Candidates(NamedTuple):
    """Blocks that may continue the rows of a sentence, all side by side."""

    logprobs: DoubleArray  # (S, K * n), of the whole hypothesis
    tokens: IntArray  # (S, K * n, Z)
    per_row: int  # n, so that candidate `c` continues row `c // n`


@dataclass
class _Live:
    """The open hypotheses, `H_t` of Algorithm 1, of the sentences that are not done.

    Rows stay rectangular, `(S, K)`: a row of logprob -inf is dead and fills its place.
    """

    sentences: IntArray  # (S,), their places in the batch that came in
    limits: IntArray  # (S,), the longest text
    logprobs: DoubleArray  # (S, K)
    history: IntArray  # (S, K, Z + T), a block of start symbols and all blocks since

    def continued(self, blocks: Blocks) -> _Live:
        """Each row with the one block that it has."""
        return _Live(
            self.sentences,
            self.limits,
            self.logprobs + blocks.logprobs,
            np.concatenate([self.history, blocks.tokens], axis=2),
        )

    def extended(self, blocks: Blocks) -> _Candidates:
        sentences, rows = self.logprobs.shape
        per_row = blocks.logprobs.shape[1]
        # (S * K, 1) + (S * K, n) -> (S, K * n)
        logprobs = self.logprobs.reshape(-1, 1) + blocks.logprobs
        return _Candidates(
            logprobs.reshape(sentences, rows * per_row),
            blocks.tokens.reshape(sentences, rows * per_row, -1),
            per_row,
        )

    def pruned(self, candidates: _Candidates, beam: int) -> tuple[_Live, IntArray]:
        """The best `beam` candidates of each sentence, and the present row that each continues."""
        best = _rank(candidates.logprobs)[:, :beam]
        line = np.arange(len(best))[:, None]
        parents = best // candidates.per_row
        history = np.concatenate(
            [self.history[line, parents], candidates.tokens[line, best]], axis=2
        )
        live = _Live(self.sentences, self.limits, candidates.logprobs[line, best], history)
        return live, line * self.logprobs.shape[1] + parents

    def take(self, lines: BoolArray) -> _Live:
        return _Live(
            self.sentences[lines], self.limits[lines], self.logprobs[lines], self.history[lines]
        )


class _Finished:
    """The complete hypotheses of each sentence, `H_finish` of Algorithm 1."""

    def __init__(self, sentences: int, order: GenerationOrder, options: SearchOptions) -> None:
        self.order = order
        self.options = options
        self.pools: list[list[Hypothesis]] = [[] for _ in range(sentences)]

    def add_ended(self, live: _Live, candidates: _Candidates, is_end: BoolArray) -> None:
        """Take the candidates with an end symbol that are among the best `beam` of this step.

        Algorithm 1 takes all: then a few poor endings fill the pool and stop the search too early.
        """
        best = _rank(candidates.logprobs)[:, : self.options.beam]
        line = np.arange(len(best))[:, None]
        ended = is_end.any(axis=2) & (candidates.logprobs > -np.inf)
        for i, rank in np.argwhere(ended[line, best]):
            chosen = best[i, rank]
            before = live.history[i, chosen // candidates.per_row]
            block = candidates.tokens[i, chosen, : is_end[i, chosen].argmax()]
            logprob = candidates.logprobs[i, chosen]
            self._add(live.sentences[i], np.append(before, block), logprob, finished=True)

    def add_cut(self, live: _Live, at_limit: BoolArray) -> None:
        """Take the open hypotheses of sentences that have reached their limit."""
        for i, row in np.argwhere(at_limit[:, None] & (live.logprobs > -np.inf)):
            kept = live.history[i, row, : self.order.block_size + live.limits[i]]
            self._add(live.sentences[i], kept, live.logprobs[i, row], finished=False)

    def _add(self, sentence: int, history: IntArray, logprob: float, *, finished: bool) -> None:
        generated = history[self.order.block_size :].tolist()
        self.pools[sentence].append(
            make_hypothesis(generated, float(logprob), finished, self.order, self.options)
        )

    def has_enough(self, sentences: IntArray) -> BoolArray:
        return np.array([len(self.pools[i]) >= self.options.beam for i in sentences])

    def best(self) -> list[list[Hypothesis]]:
        """The best of each sentence by score; of equals, the one found first."""
        return best_of_pools(self.pools, self.options)


def make_hypothesis(
    generated: list[int],
    logprob: float,
    finished: bool,
    order: GenerationOrder,
    options: SearchOptions,
) -> Hypothesis:
    """The hypothesis of tokens in generation order."""
    tokens = order.inverse(generated)
    score = options.score(logprob, len(tokens))
    return Hypothesis(tokens, logprob, score, order.steps(len(tokens)), finished)


def best_of_pools(
    pools: Sequence[Sequence[Hypothesis]], options: SearchOptions
) -> list[list[Hypothesis]]:
    """The best of each sentence by score; of equals, the one found first."""
    if not all(pools):
        raise BothendsError(
            "the model gives no word a probability: its weights are damaged, or training "
            "ended in NaN; use another checkpoint, or export the model again"
        )
    return [sorted(pool, key=lambda one: -one.score)[: options.n_best] for pool in pools]


def _rank(logprobs: DoubleArray) -> IntArray:
    """Indices of each line from the best down; the first of equals comes first."""
    return (-logprobs).argsort(axis=1, kind="stable")


def sentence_limits(
    source: IntArray, special: SpecialTokens, options: SearchOptions, max_lengths: IntArray | None
) -> IntArray:
    """The most tokens that a target of each sentence may have."""
    sentences = len(source)
    if max_lengths is None:
        lengths = (source != special.pad).sum(axis=1) - 1  # without their end symbols
        return np.array([options.limit(length) for length in lengths.tolist()])
    if max_lengths.shape != (sentences,) or max_lengths.min() < 0:
        raise UsageError(
            f"max_lengths must hold one length from 0 on for each of {sentences} sentences, "
            f"not {max_lengths.tolist()}"
        )
    return max_lengths


def _within_lengths(
    top: TopK, first: int, live: _Live, options: SearchOptions, special: SpecialTokens
) -> TopK:
    """The words that keep to the lengths allowed, for a block that starts at slot `first`.

    Before the minimum there is no end symbol. At the limit there is one way on: the end
    symbol if that is the model's first choice, and otherwise the cut, which adds nothing. Were both
    offered, the same text would come back twice, and the cut always ahead. Slots after the limit
    add nothing.
    """
    logprobs, ids = top.logprobs.copy(), top.ids.copy()
    slots = np.arange(first, first + ids.shape[1])
    early = slots < options.min_length
    logprobs[early[:, None] & (ids == special.end)] = -np.inf
    # The word that was asked for on top would only make the search depend on where a block starts.
    logprobs[:, ~early, options.beam :] = -np.inf

    limits = live.limits.repeat(live.logprobs.shape[1])[:, None]  # (R, 1)
    beyond = slots >= limits  # (R, Z)
    allowed = logprobs[:, :, 0] > -np.inf
    ending = (slots == limits) & (ids[:, :, 0] == special.end) & allowed
    logprobs[beyond, 1:] = -np.inf
    logprobs[beyond & ~ending, 0] = 0.0
    ids[beyond & ~ending, 0] = special.pad
    return TopK(logprobs, ids)
