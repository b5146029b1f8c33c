"""Immediate repetitions, of anything and of the words that tokens spell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothends.text.repeats import remove_repeated_words, remove_repeats


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
    words = pieces.split()
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokens = remove_repeated_words([ids[word] for word in words], words)
    assert [list(ids)[token] for token in tokens] == kept.split()
