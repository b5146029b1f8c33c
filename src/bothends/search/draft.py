"""Greedy search that begins with a draft: keep what the model would write anyway, write the rest.

When a sentence is edited, most of its translation stays. The old one is a draft of the new one: the
decoder reads all of it in one pass and says for each slot what it would have written there. As far
as that is the draft itself, in generation order, nothing has to be written; an order that starts at
both ends keeps both of them and writes the middle.

`DraftReader` is an engine that answers from this pass as long as the search follows the draft, so
the search is the usual one, and its result that of a search from nothing. What the decoder read of
the draft after the first difference stays in its state, hidden by the mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from bothends.engines.protocol import Engine, FloatArray, RestrictedSteps, TopK
from bothends.errors import UsageError
from bothends.order import Block, GenerationOrder, IntArray
from bothends.search.beam import Hypothesis, beam_search, sentence_limits
from bothends.search.options import SearchOptions
from bothends.text.vocabulary import SpecialTokens

State = TypeVar("State")


@dataclass(frozen=True)
class DraftedHypothesis:
    """A result, and how many passes of the decoder it took: one for the draft, one per new step."""

    hypothesis: Hypothesis
    passes: int

    @property
    def steps_saved(self) -> int:
        """Passes fewer than without a draft; negative if the draft was of no use."""
        return self.hypothesis.steps - self.passes


def search_from_draft(
    engine: Engine[State],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    draft: Sequence[int],
    options: SearchOptions,
    max_lengths: IntArray | None = None,
    allowed: IntArray | None = None,
) -> DraftedHypothesis:
    """The greedy translation of one source sentence `(1, N)`, from a draft in text order.

    `max_lengths` `(1,)` is that of `beam_search`, `allowed` the target ids that may be used; the
    draft may have others.
    """
    if options.beam != 1:
        raise UsageError(f"a draft is for greedy search: use beam 1, not {options.beam}")
    if len(source) != 1:
        raise UsageError(f"a draft is for one sentence, not for {len(source)}")
    if len(draft) > sentence_limits(source, special, options, max_lengths)[0]:
        draft = ()  # no result is as long, and to read it would take time and memory
    reader = DraftReader(engine, order, special, draft, allowed)
    ((best,),) = beam_search(reader, order, special, source, options, max_lengths)
    return DraftedHypothesis(best, reader.passes)


@dataclass
class DraftState(Generic[State]):
    """A decoder that has read the draft, and how far the search has followed it."""

    inner: State
    read: TopK  # (1, T, k), what the model would write in each slot of the draft
    blocks: int = 0  # predicted so far
    #: blocks of the draft that were fed as the search feeds them; None: all of them up to now
    kept: int | None = None


class DraftReader(Generic[State]):
    """An engine for one sentence that has read a draft. Implements `Engine[DraftState]`."""

    def __init__(
        self,
        engine: Engine[State],
        order: GenerationOrder,
        special: SpecialTokens,
        draft: Sequence[int],
        allowed: IntArray | None = None,
    ) -> None:
        if allowed is not None and not isinstance(engine, RestrictedSteps):
            raise UsageError("this engine searches all words, and cannot be held to some")
        self.engine = engine
        self.order = order
        self._allowed = allowed
        slots = order.target_slots([draft], special.end, special.pad)
        self._fed = order.shift(slots, special.start)  # (1, T)
        #: passes of the decoder
        self.passes = 0

    def encode(self, source: IntArray) -> DraftState[State]:
        if self._allowed is not None and isinstance(self.engine, RestrictedSteps):
            inner = self.engine.encode_among(source, [self._allowed])
        else:
            inner = self.engine.encode(source)
        # Greedy search asks for one word, and for another where the end symbol is not allowed.
        read = self.engine.step(inner, self._fed, self.order.whole(self._fed.shape[1]), 2)
        self.passes = 1
        return DraftState(inner, read)

    def step(self, state: DraftState[State], tokens: IntArray, block: Block, k: int) -> TopK:
        here = self._follow(state, tokens)
        if here is not None:
            return TopK(state.read.logprobs[:, here, :k], state.read.ids[:, here, :k])
        self.passes += 1
        return self.engine.step(state.inner, tokens, self._hiding(state, block), k)

    def step_and_force(
        self,
        state: DraftState[State],
        tokens: IntArray,
        block: Block,
        k: int,
        targets: IntArray,
    ) -> tuple[TopK, FloatArray]:
        raise NotImplementedError("a draft is read for greedy search, which forces nothing")

    def select(self, state: DraftState[State], rows: IntArray) -> DraftState[State]:
        return replace(state, inner=self.engine.select(state.inner, rows))

    def force(
        self, state: DraftState[State], tokens: IntArray, block: Block, targets: IntArray
    ) -> FloatArray:
        raise NotImplementedError("a draft is read for greedy search, which forces nothing")

    def _follow(self, state: DraftState[State], tokens: IntArray) -> slice | None:
        """The slots of the draft that this block is, if the search has followed it so far."""
        size = self.order.block_size
        here = slice(state.blocks * size, (state.blocks + 1) * size)
        fed = self._fed[:, here]
        if state.kept is None and not np.array_equal(tokens, fed):
            state.kept = state.blocks
        state.blocks += 1
        return here if state.kept is None else None

    def _hiding(self, state: DraftState[State], block: Block) -> Block:
        """The block with a mask over the decoder's state, in which all of the draft was read."""
        assert state.kept is not None
        kept, read = state.kept * self.order.block_size, self._fed.shape[1]
        hidden = np.zeros((len(block.mask), read - kept), dtype=np.bool_)
        mask = np.hstack([block.mask[:, :kept], hidden, block.mask[:, kept:]])
        return Block(block.positions, block.directions, mask)
