"""Which translations are too short for their sources, by the text that a model learned from."""

from __future__ import annotations

import numpy as np
import pytest

from bothends.model.lengths import SHORTEST_SOURCE, LengthStatistics


def test_statistics_are_those_of_the_pairs() -> None:
    sources = np.array([10, 20, 40, 0, 5])
    targets = np.array([20, 40, 80, 7, 10])
    found = LengthStatistics.of(sources, targets)
    assert found is not None
    assert found.mean == pytest.approx(np.log(2))
    assert found.spread == pytest.approx(0, abs=1e-12)
    assert found.longest_source == 40
    assert LengthStatistics.of(np.array([5]), np.array([5])) is None
    assert LengthStatistics.of(np.array([], int), np.array([], int)) is None


def test_pairs_of_the_corpus_itself_are_not_short(random: np.random.Generator) -> None:
    sources = random.integers(1, 80, 20_000)
    targets = np.maximum(1, random.poisson(1.2 * sources))
    found = LengthStatistics.of(sources, targets)
    assert found is not None
    pairs = list(zip(sources.tolist(), targets.tolist(), strict=True))
    assert sum(found.is_short(*pair) for pair in pairs) <= 40  # one in some thousand
    halves = [(source, target // 3) for source, target in pairs if source > 40]
    assert np.mean([found.is_short(*pair) for pair in halves]) > 0.9


def test_a_short_source_has_no_short_translation() -> None:
    strict = LengthStatistics(mean=0.0, spread=0.0, longest_source=9)
    assert not strict.is_short(SHORTEST_SOURCE - 1, 0)
    assert strict.is_short(SHORTEST_SOURCE, 0)
