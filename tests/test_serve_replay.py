"""How a translation was written, from its tokens and the order: against the search itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bothends.order import GenerationOrder
from bothends.serve.replay import direction, replay, written_tokens
from bothends.translating.translation import EMPTY, Translation

PIECES = ("▁a", "▁b", "▁c", "▁d", "▁e")


def translation(pieces: tuple[str, ...], steps: int, finished: bool = True) -> Translation:
    return replace(EMPTY, pieces=pieces, steps=steps, finished=finished)


@pytest.mark.parametrize(
    ("order", "steps", "written", "towards"),
    [
        ("1x1", 6, [1, 2, 3, 4, 5], "rrrrr"),
        ("2x1", 3, [1, 2, 3, 2, 1], "rrrll"),
        ("1x2", 3, [1, 1, 2, 2, 3], "rrrrr"),
        ("2x2", 2, [1, 1, 2, 1, 1], "rrrll"),
        ("4x1", 2, [1, 2, 1, 1, 1], "rrlrl"),
    ],
)
def test_steps_and_strands(order: str, steps: int, written: list[int], towards: str) -> None:
    parsed = GenerationOrder.parse(order)
    tokens = written_tokens(parsed, translation(PIECES, steps))
    assert [token.step for token in tokens] == written
    assert "".join(direction(token)[0] for token in tokens) == towards
    found = replay(parsed, translation(PIECES, steps))
    assert len(found) == steps
    assert found[-1].state == PIECES
    assert [step.finished for step in found] == [False] * (steps - 1) + [True]
    for step in found:
        assert [piece is not None for piece in step.state] == [at <= step.step for at in written]


def test_a_translation_that_was_cut_has_no_end_symbol() -> None:
    found = replay(GenerationOrder.parse("2x1"), translation(PIECES[:4], 2, finished=False))
    assert [step.finished for step in found] == [False, False]
    assert found[-1].state == PIECES[:4]


def test_words_that_were_dropped_are_not_shown() -> None:
    """`▁a ▁b ▁c | ▁c ▁d ▁e` without its second `▁c`, which the third step wrote."""
    order = GenerationOrder.parse("2x1")
    dropped = replace(translation(PIECES, 4), dropped=(3,))
    assert [token.step for token in written_tokens(order, dropped)] == [1, 2, 3, 2, 1]
    states = [step.state for step in replay(order, dropped)]
    assert states[1] == ("▁a", "▁b", None, "▁d", "▁e")
    assert states[2:] == [PIECES, PIECES]


def test_what_no_search_wrote_is_not_replayed() -> None:
    order = GenerationOrder.parse("2x1")
    shortened = translation(PIECES, 7)
    assert written_tokens(order, shortened) == ()
    assert replay(order, shortened) == []


def test_an_empty_translation() -> None:
    assert replay(GenerationOrder.parse("2x1"), EMPTY) == []
