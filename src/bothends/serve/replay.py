"""How a translation was written, step by step, from its tokens and the order.

An order says which tokens a step writes, so the history of a finished hypothesis is known exactly:
no step has to be recorded, and every engine can be shown, also one that searches in a single call.
With beam 1 that is all that happened. With a wider beam it is the history of the hypothesis that
won; others that led for a while are not shown. Times of single steps are not measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bothends.drawing.picture import Picture
from bothends.order import GenerationOrder
from bothends.translation import Translation


@dataclass(frozen=True)
class Step:
    """What one step wrote, and all that is there after it."""

    step: int
    #: index in the text, piece and direction of each token that is new
    new: tuple[dict[str, Any], ...]
    #: pieces in text order, None where nothing is written yet
    state: tuple[str | None, ...]
    #: whether the end symbol was written in this step
    finished: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "new": list(self.new),
            "state": list(self.state),
            "finished": self.finished,
        }


def writing_steps(order: GenerationOrder, pieces: tuple[str, ...]) -> list[int]:
    """The step, from 1, in which each token of a text was written."""
    return [token.step for token in Picture.of(order, pieces).text[:-1]]


def replay(order: GenerationOrder, translation: Translation) -> list[Step]:
    """All steps of a finished translation. A text that repeated words were removed from has none.

    Their tokens are not the ones that were written, so that their places are not known.
    """
    *tokens, end = Picture.of(order, translation.pieces).text
    last = end.step if translation.finished else max((each.step for each in tokens), default=0)
    if last != translation.steps:
        return []
    state: list[str | None] = [None] * len(tokens)
    steps = []
    for number in range(1, last + 1):
        new = []
        for index, token in enumerate(tokens):
            if token.step == number:
                state[index] = token.label
                direction = "right" if token.moves_right else "left"
                new.append({"index": index, "piece": token.label, "towards": direction})
        finished = translation.finished and number == last
        steps.append(Step(number, tuple(new), tuple(state), finished))
    return steps
