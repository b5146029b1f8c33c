"""What is drawn: the words of a target and its end symbol, and what an order says of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bothends.order import GenerationOrder


@dataclass(frozen=True)
class DrawnToken:
    """A word, or the end symbol, and the slot it is generated in."""

    label: str
    slot: int
    #: from 1, as a reader counts
    step: int
    #: its strand, counted from the left of the text; the end symbol stands outside the text
    strand: int | None
    #: whether its strand grows towards the end of the text
    moves_right: bool
    #: whether it was there from the start, and the decoder only reads it
    given: bool = False


@dataclass(frozen=True)
class Picture:
    """An order at work on some words."""

    order: GenerationOrder
    text: tuple[DrawnToken, ...]
    """The words in text order, then the end symbol."""

    @classmethod
    def of(
        cls, order: GenerationOrder, words: Sequence[str], gap: tuple[int, int] | None = None
    ) -> Picture:
        """Of words to be written, all or those in a gap `(first, after)` between given ones."""
        first, after = gap or (0, len(words))
        length = len(words)
        slots = np.argsort(order.permutation(length)).tolist()
        directions = order.direction_ids(length).tolist()
        strands = order.strands
        tokens = [
            DrawnToken(
                label=word,
                slot=slot,
                step=slot // order.block_size + 1,
                strand=strands.index(directions[slot]),
                moves_right=order.moves_right(directions[slot]),
                given=not first <= index < after,
            )
            for index, (word, slot) in enumerate(zip(words, slots, strict=True))
        ]
        end = DrawnToken("end", length, order.steps(length), strand=None, moves_right=True)
        return cls(order, (*tokens, end))

    @property
    def steps(self) -> int:
        return self.text[-1].step

    @property
    def generated(self) -> list[DrawnToken]:
        """In generation order."""
        return sorted(self.text, key=lambda token: token.slot)

    def facts(self) -> dict[str, list[str]]:
        """What the decoder knows of each slot, in generation order."""
        count = len(self.text)
        labels = [*(token.label for token in self.generated), "start"]
        block = self.order.whole(count)
        return {
            "slot": [str(slot) for slot in range(count)],
            "input": [labels[slot] for slot in self.order.shift(np.arange(count), start=-1)],
            "position": [str(position) for position in block.positions],
            "direction": [str(direction) for direction in block.directions],
        }

    def summary(self) -> str:
        """How many tokens in how many steps."""
        count = len(self.text)
        line = f"{_count(count - 1, 'token')} and the end symbol in {_count(self.steps, 'step')}"
        return line if self.steps == count else f"{line} instead of {count}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
