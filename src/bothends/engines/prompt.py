"""A decoder that has already written something before the text begins: a prompt.

Multilingual models are told the target language by a token that the decoder seems to have written
first. The search knows nothing of it: this engine feeds the prompt before the first block and moves
every block behind it. So lengths, scores and limits are those of the text alone.

Only left-to-right orders that write one token at a time (`1x1`) have prompts: they are how others
trained their models. A student of another order learns without one.
"""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from bothends.engines.protocol import Engine, FloatArray, State, TopK
from bothends.errors import BothendsError
from bothends.model.config import ModelConfig
from bothends.order import Block, GenerationOrder, IntArray


def with_prompt(
    engine: Engine[State], config: ModelConfig, order: GenerationOrder
) -> Engine[State]:
    """The engine, with the prompt of its model if it has one."""
    prompt = config.frame.prompt
    if not prompt:
        return engine
    if order != GenerationOrder():
        raise BothendsError(f"order {order}: a decoder prompt needs the order 1x1")
    return PromptedEngine(engine, config.special.start, prompt)


class PromptedEngine(Generic[State]):
    """Implements `Engine[State]` for the text behind the prompt."""

    def __init__(self, engine: Engine[State], start: int, prompt: tuple[int, ...]) -> None:
        self.engine = engine
        self.order = GenerationOrder()
        #: what the decoder is fed before and with the first token of text
        self._fed = (start, *prompt)
        self._prompt = prompt

    def encode(self, source: IntArray) -> State:
        return self.engine.encode(source)

    @property
    def precision(self) -> Any:
        """As the engine inside has it."""
        return self.engine.precision  # type: ignore[attr-defined]

    def step(self, state: State, tokens: IntArray, block: Block, k: int) -> TopK:
        return self.engine.step(state, self._fed_with(state, tokens, block), self._behind(block), k)

    def step_and_force(
        self, state: State, tokens: IntArray, block: Block, k: int, targets: IntArray
    ) -> tuple[TopK, FloatArray]:
        tokens = self._fed_with(state, tokens, block)
        return self.engine.step_and_force(state, tokens, self._behind(block), k, targets)

    def _fed_with(self, state: State, tokens: IntArray, block: Block) -> IntArray:
        """What the decoder is fed for a block; before the first one it reads the prompt."""
        if block.positions[0] != 0:
            return tokens
        for place, token in enumerate(self._fed[:-1]):
            single = np.full_like(tokens[:, :1], token)
            self.engine.step(state, single, self.order.block(place), 1)
        tokens = tokens.copy()
        tokens[:, 0] = self._fed[-1]  # in place of the start symbol
        return tokens

    def _behind(self, block: Block) -> Block:
        """The block behind the prompt, all of which it sees."""
        ahead = len(self._prompt)
        seen = np.ones((len(block.mask), ahead), bool)
        mask = np.concatenate([seen, block.mask], axis=1)
        return Block(block.positions + ahead, block.directions, mask)

    def select(self, state: State, rows: IntArray) -> State:
        return self.engine.select(state, rows)

    def force(self, state: State, tokens: IntArray, block: Block, targets: IntArray) -> FloatArray:
        sentences, length = targets.shape
        ahead = len(self._prompt)
        fed = np.tile(self._fed, (sentences, 1))
        written = np.tile(self._prompt, (sentences, 1))
        logprobs = self.engine.force(
            state,
            np.concatenate([fed, tokens[:, 1:]], axis=1),
            self.order.whole(ahead + length),
            np.concatenate([written, targets], axis=1),
        )
        return logprobs[:, ahead:]
