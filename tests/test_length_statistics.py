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
    assert found.spread == pytest.approx(0, abs=1e-6)
    assert found.longest_source == 40
    assert LengthStatistics.of(np.array([5]), np.array([5])) is None
    assert LengthStatistics.of(np.array([], int), np.array([], int)) is None


def test_parts_count_as_often_as_they_are_said_to(random: np.random.Generator) -> None:
    sources = random.integers(0, 80, 3000)
    targets = random.poisson(1.2 * sources)
    parts = [(sources[:1000], targets[:1000], 3), (sources[1000:], targets[1000:], 1)]
    again = np.concatenate([sources[:1000], sources[:1000]])
    whole = LengthStatistics.of(
        np.concatenate([sources, again]),
        np.concatenate([targets, targets[:1000], targets[:1000]]),
    )
    found = LengthStatistics.over(parts)
    assert found is not None
    assert whole is not None
    assert found.dump() == pytest.approx(whole.dump())
    ratios = np.log(targets[targets > 0] / sources[targets > 0])
    plain = LengthStatistics.of(sources, targets)
    assert plain is not None
    assert plain.mean == pytest.approx(ratios.mean())
    deviations = (ratios - ratios.mean()) ** 2 * sources[targets > 0]
    assert plain.spread == pytest.approx(np.sqrt(deviations.mean()))


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
