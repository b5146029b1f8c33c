"""An engine in NumPy over a random toy network: what search and scoring are tested against.

A slot's distribution depends on the source, on its own position and direction, on the token it is
fed, and on every token, position and direction that its mask shows it: a search that mixes up rows,
blocks or masks gets other numbers. It also checks that the caller keeps to the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bothends.engines.protocol import FloatArray, TopK
from bothends.order import Block, IntArray
from bothends.text.vocabulary import SpecialTokens

WIDTH = 8


@dataclass
class ToyState:
    source: FloatArray  # (S, D)
    inputs: FloatArray  # (R, T, D), everything fed so far
    spent: bool = False  # after a select, this state must not be used again


class ToyEngine:
    """Implements `Engine[ToyState]`, and counts what is asked of it."""

    def __init__(
        self,
        vocabulary: int = 7,
        seed: int = 0,
        sharpness: float = 3.0,
        special: SpecialTokens | None = None,
    ) -> None:
        random = np.random.default_rng(seed)
        self.special = special or SpecialTokens()
        self.sharpness = sharpness
        self.embedding = random.normal(size=(vocabulary, WIDTH))
        self.directions = random.normal(size=(64, WIDTH))
        self.frequencies = random.uniform(0.2, 2.0, WIDTH)
        self.of_input, self.of_history, self.of_source = random.normal(size=(3, WIDTH, WIDTH))
        self.output = random.normal(size=(WIDTH, vocabulary))
        self.rows_stepped: list[int] = []
        self.words_asked: list[int] = []
        self.selected: list[IntArray] = []

    def encode(self, source: IntArray) -> ToyState:
        real = source != self.special.pad
        assert real.any(axis=1).all(), "a source has at least its end symbol"
        place = np.cos(np.arange(source.shape[1])[:, None] * self.frequencies)
        summed = ((self.embedding[source] + place) * real[:, :, None]).sum(axis=1)
        return ToyState(summed, np.empty((len(source), 0, WIDTH)))

    def step(self, state: ToyState, tokens: IntArray, block: Block, k: int) -> TopK:
        assert not state.spent
        self.rows_stepped.append(len(tokens))
        self.words_asked.append(k)
        return _best(self.distribution(state, tokens, block), k)

    def step_and_force(
        self, state: ToyState, tokens: IntArray, block: Block, k: int, targets: IntArray
    ) -> tuple[TopK, FloatArray]:
        assert not state.spent
        self.rows_stepped.append(len(tokens))
        self.words_asked.append(k)
        logprobs = self.distribution(state, tokens, block)
        forced = np.take_along_axis(logprobs, targets[:, :, None], axis=-1)[:, :, 0]
        return _best(logprobs, k), forced

    def select(self, state: ToyState, rows: IntArray) -> ToyState:
        assert not state.spent
        state.spent = True
        self.selected.append(rows)
        sentences = rows // (len(state.inputs) // len(state.source))  # (S', K')
        assert (sentences == sentences[:, :1]).all(), "a line's rows are of one sentence"
        return ToyState(state.source[sentences[:, 0]], state.inputs[rows.ravel()])

    def force(
        self, state: ToyState, tokens: IntArray, block: Block, targets: IntArray
    ) -> FloatArray:
        logprobs = self.distribution(state, tokens, block)
        return np.take_along_axis(logprobs, targets[:, :, None], axis=-1)[:, :, 0]

    def distribution(self, state: ToyState, tokens: IntArray, block: Block) -> FloatArray:
        """Logprobs of the whole vocabulary, (R, Z, V). Advances `state` by the slots fed."""
        fed = (
            self.embedding[tokens]
            + np.sin(block.positions[:, None] * self.frequencies)
            + self.directions[block.directions]
        )  # (R, Z, D)
        state.inputs = np.concatenate([state.inputs, np.tanh(fed)], axis=1)
        assert block.mask.shape == (tokens.shape[1], state.inputs.shape[1])
        seen = np.einsum("zt,rtd->rzd", block.mask.astype(np.float64), state.inputs)
        source = state.source.repeat(len(tokens) // len(state.source), axis=0)[:, None]
        hidden = np.tanh(fed @ self.of_input + seen @ self.of_history + source @ self.of_source)
        logits = self.sharpness * hidden @ self.output
        logits -= logits.max(axis=-1, keepdims=True)
        normed: FloatArray = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        return normed


def _best(logprobs: FloatArray, k: int) -> TopK:
    ids = (-logprobs).argsort(axis=-1, kind="stable")[:, :, :k]
    return TopK(np.take_along_axis(logprobs, ids, axis=-1), ids)
