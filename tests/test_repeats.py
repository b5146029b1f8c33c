"""Immediate repetitions, of anything and of the words that tokens spell."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothends.text.repeats import remove_repeats, without_repeated_words


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ([], []),
        ([5, 6, 7], [5, 6, 7]),
        ([5, 5], [5]),
        ([5, 5, 5, 5, 5], [5]),
        ([5, 6, 5, 6], [5, 6]),
        ([5, 6, 5, 6, 5, 6, 7], [5, 6, 7]),
        ([5, 6, 5, 6, 5], [5, 6, 5]),
        ([4, 5, 6, 7, 4, 5, 6, 7, 8], [4, 5, 6, 7, 8]),
        ([5, 5, 6, 5, 6], [5, 6]),
        # five items that repeat are more likely meant
        ([4, 5, 6, 7, 8, 4, 5, 6, 7, 8], [4, 5, 6, 7, 8, 4, 5, 6, 7, 8]),
    ],
)
def test_remove_repeats(items: list[int], kept: list[int]) -> None:
    assert remove_repeats(items) == kept


@given(items=st.lists(st.integers(0, 2), max_size=30))
def test_remove_repeats_leaves_none(items: list[int]) -> None:
    kept = remove_repeats(items)
    for n in range(1, 5):
        for i in range(len(kept) - 2 * n + 1):
            assert kept[i : i + n] != kept[i + n : i + 2 * n]
    assert remove_repeats(kept) == kept
    assert set(kept) == set(items)


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        ("▁dass ▁dass ▁er", "▁dass ▁er"),
        ("▁ein ▁Mann ▁ein ▁Mann ▁geht", "▁ein ▁Mann ▁geht"),
        ("▁Bahn hof ▁Bahn hof .", "▁Bahn hof ."),
        ("▁gut ▁gut .", "▁gut ."),
        ("▁z . B . ▁z . B . ▁so", "▁z . B . ▁so"),
        # parts of words that repeat are right as they are
        ("▁ 5 5 ▁Jahre", "▁ 5 5 ▁Jahre"),
        ("▁ <0x35> <0x35> ▁Jahre", "▁ <0x35> <0x35> ▁Jahre"),
        ("▁Miss iss ippi", "▁Miss iss ippi"),
        ("▁nun . . .", "▁nun . . ."),
        ("▁Bahn ▁Bahn hof", "▁Bahn ▁Bahn hof"),
        ("<0xF0> <0x9F> <0x98> <0x98>", "<0xF0> <0x9F> <0x98> <0x98>"),
    ],
)
def test_remove_repeated_words(pieces: str, kept: str) -> None:
    assert without_repeats(pieces.split()) == kept.split()


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        ("▁perda | ▁perda ▁de", "▁perda ▁de"),
        ("▁Per da | ▁Per da ▁de", "▁Per da ▁de"),
        ("▁Per | da ▁Per da ▁de", "▁Per da ▁de"),
        ("▁da ▁Liga ▁da | ▁Liga ▁dos", "▁da ▁Liga ▁dos"),
        ("▁a ▁a | ▁a ▁a ▁b", "▁a ▁a ▁b"),
        # elsewhere, repetitions may be meant: « nous nous »
        ("▁nous ▁nous ▁voy ons | ▁ici", "▁nous ▁nous ▁voy ons ▁ici"),
        ("▁a ▁b | ▁nous ▁nous", "▁a ▁b ▁nous ▁nous"),
        ("| ▁a ▁a", "▁a ▁a"),
        # two seams
        ("▁a | ▁a ▁b ▁c | ▁c", "▁a ▁b ▁c"),
    ],
)
def test_remove_repeated_words_where_strands_meet(pieces: str, kept: str) -> None:
    parts = [part.split() for part in pieces.split("|")]
    seams = list(accumulate(map(len, parts[:-1])))
    assert without_repeats([piece for part in parts for piece in part], seams) == kept.split()


def without_repeats(pieces: list[str], seams: list[int] | None = None) -> list[str]:
    ids = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    kept = without_repeated_words([ids[piece] for piece in pieces], pieces, seams)
    return [pieces[index] for index in kept]
