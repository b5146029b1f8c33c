"""How a translation was written, step by step, from its tokens and the order.

An order says which tokens a step writes, so the history of a finished hypothesis is known exactly:
no step has to be recorded, and every engine can be shown, also one that searches in a single call.
With beam 1 that is all that happened. With a wider beam it is the history of the hypothesis that
won; others that led for a while are not shown. Times of single steps are not measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bothends.drawing.picture import DrawnToken, Picture
from bothends.order import GenerationOrder
from bothends.translating.translation import Translation


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


def written_tokens(order: GenerationOrder, translation: Translation) -> tuple[DrawnToken, ...]:
    """The tokens of a translation in text order, each with its step and strand.

    Repeated words that were removed from it are not among them. None if it is not what a search
    wrote, as the sentences of a line together are not.
    """
    kept = iter(translation.pieces)
    length = len(translation.pieces) + len(translation.dropped)
    removed = set(translation.dropped)
    pieces = ["" if index in removed else next(kept) for index in range(length)]
    *written, end = Picture.of(order, pieces).text
    tokens = [token for index, token in enumerate(written) if index not in removed]
    last = end.step if translation.finished else max((each.step for each in written), default=0)
    # A draft saves steps, but what each would have written is known all the same.
    return tuple(tokens) if last == translation.steps + translation.steps_saved else ()


def direction(token: DrawnToken) -> Literal["right", "left"]:
    """Where the strand of a token grows."""
    return "right" if token.moves_right else "left"


def replay(order: GenerationOrder, translation: Translation) -> list[Step]:
    """All steps of a translation; none if they are not known."""
    tokens = written_tokens(order, translation)
    state: list[str | None] = [None] * len(tokens)
    steps = []
    count = translation.steps + translation.steps_saved
    for number in range(1, count + 1 if tokens else 1):
        new = []
        for index, token in enumerate(tokens):
            if token.step == number:
                state[index] = token.label
                new.append({"index": index, "piece": token.label, "towards": direction(token)})
        finished = translation.finished and number == count
        steps.append(Step(number, tuple(new), tuple(state), finished))
    return steps
