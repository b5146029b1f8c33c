"""The sample that a vocabulary is trained on: fair, of bounded size, aligned."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothends.data.sampling import PairSample, within_memory


def sample_of(sources: list[str], size: int, characters: int = 10**9) -> PairSample:
    sample = PairSample(size, characters)
    for start in range(0, len(sources), 7):
        batch = sources[start : start + 7]
        sample.add(batch, [line.upper() for line in batch])
    return sample


@given(count=st.integers(0, 60), size=st.integers(1, 30), characters=st.integers(1, 500))
def test_a_sample_is_pairs_of_the_corpus_within_its_limits(
    count: int, size: int, characters: int
) -> None:
    lines = [f"line{number}" for number in range(count)]
    sample = sample_of(lines, size, characters)
    sources, targets = sample.sides()
    assert sample.seen == count
    assert targets == [line.upper() for line in sources]
    assert len(set(sources) & set(lines)) == len(sources) <= size
    assert len(sources) == 1 or sum(map(len, sources + targets)) <= characters
    assert sources or not lines


def test_a_small_corpus_is_taken_whole() -> None:
    lines = [str(number) for number in range(100)]
    sources, _ = sample_of(lines, 100).sides()
    assert sorted(sources) == sorted(lines)
    assert sources != lines, "in a random order, so that a part of it is a fair sample too"


@pytest.mark.parametrize("characters", [10**9, 120])
def test_every_pair_is_as_likely_as_any_other(
    characters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the reservoir is halved on the way: 120 characters are 15 pairs of the 30."""
    counts: Counter[str] = Counter()
    lines = [f"{number:04}" for number in range(100)]
    for seed in range(1000):
        monkeypatch.setattr("bothends.data.sampling._SEED", seed)
        counts.update(sample_of(lines, 30, characters).sides()[0])
    mean = sum(counts.values()) / len(lines)
    # A count is binomial, its standard deviation below sqrt(mean): six of them are no chance.
    assert all(abs(counts[line] - mean) < 6 * mean**0.5 for line in lines)


def test_text_without_spaces_is_trained_on_in_part() -> None:
    spaced = ["some words"] * 100_000  # many lines, two words
    assert len(within_memory(spaced)) == len(spaced)
    unspaced = [f"{number:0100}" for number in range(100_000)]  # ten million characters of words
    assert within_memory(unspaced) == unspaced[:80_000]
