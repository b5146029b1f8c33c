"""What the search asks of an engine.

The search never sees the network or the vocabulary: an engine answers with the best few words of
each slot, as small NumPy arrays. The arrays below are shaped by

    S  sentences in the batch          Z  slots of one block
    R  rows: hypotheses, grouped by    T  slots so far, this block included
       sentence, `R = S * rows each`   k  words asked for
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bothends.order import Block, GenerationOrder, IntArray
from bothends.text.vocabulary import SpecialTokens

FloatArray = NDArray[np.floating]


class TopK(NamedTuple):
    """The best words of every slot, best first."""

    logprobs: FloatArray  # (R, Z, k)
    ids: IntArray  # (R, Z, k)


def pad_sources(sources: Sequence[Sequence[int] | IntArray], padding: int) -> IntArray:
    """Sentences of several lengths as an engine takes them, `(S, N)`."""
    batch = np.full((len(sources), max(map(len, sources))), padding, dtype=np.int64)
    for row, source in zip(batch, sources, strict=True):
        row[: len(source)] = source
    return batch


State = TypeVar("State")


class Engine(Protocol[State]):
    """A network that can be stepped. Its state is its own: the search only hands it back."""

    def encode(self, source: IntArray) -> State:
        """Read a batch of padded source sentences `(S, N)`; one row each, nothing generated yet."""
        ...

    def step(self, state: State, tokens: IntArray, block: Block, k: int) -> TopK:
        """Predict one block: the best `min(k, vocabulary)` words of each of its slots.

        `tokens` `(R, Z)` are those of the block before (start symbols at first); `block` describes
        the slots being predicted. Advances `state` by the block.
        """
        ...

    def step_and_force(
        self, state: State, tokens: IntArray, block: Block, k: int, targets: IntArray
    ) -> tuple[TopK, FloatArray]:
        """A `step` that also answers with the logprobs `(R, Z)` of given `targets` `(R, Z)`."""
        ...

    def select(self, state: State, rows: IntArray) -> State:
        """The state whose rows are `rows` `(S', K')`, indices into the present rows.

        Each line is one sentence and takes its rows from one present sentence; a sentence that no
        line names has left the batch. The old state must not be used again.
        """
        ...

    def force(self, state: State, tokens: IntArray, block: Block, targets: IntArray) -> FloatArray:
        """Logprobs `(S, T)` of given `targets` `(S, T)`, all slots at once, from a fresh state.

        `tokens` `(S, T)` are the decoder's inputs, i.e. the targets shifted by a block; `block` is
        the whole target.
        """
        ...


class Finding(NamedTuple):
    """A hypothesis as an engine's own search found it."""

    tokens: list[int]  # generation order, without the end symbol
    logprob: float
    finished: bool  # False: cut at the length limit


class Searched(NamedTuple):
    """What a whole search found, and where its seconds went."""

    pools: list[list[Finding]]  # of each sentence, in the order in which they were found
    encoder: float
    decoder: float
    search: float
    steps: int


class SearchRequest(NamedTuple):
    """What a whole search is asked for."""

    source: IntArray  # (S, N)
    order: GenerationOrder
    special: SpecialTokens
    beam: int
    min_length: int
    limits: IntArray  # (S,), the most tokens of each target
    #: Target ids that each sentence may use, in rising order; a sentence with none may use all.
    #: They are per sentence, so that none depends on its neighbours.
    allowed: Sequence[IntArray] | None = None


@runtime_checkable
class WholeSearch(Protocol):
    """An engine that searches by itself, without Python between its steps."""

    def search(self, request: SearchRequest) -> Searched:
        """All that `beam_search` finds."""
        ...


@runtime_checkable
class RestrictedSteps(Protocol):
    """An engine whose steps can be held to the words that each sentence may use."""

    def share_words(self, words: IntArray) -> None:
        """Prepare for lists of allowed words that have all of these; results are the same."""
        ...

    def encode_among(self, source: IntArray, allowed: Sequence[IntArray]) -> Any:
        """`Engine.encode` for steps among `allowed`, which is that of `SearchRequest`."""
        ...
