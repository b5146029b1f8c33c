"""Forced scores against the chain rule spelled out slot by slot."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.engines.torch import TorchEngine
from bothends.errors import UsageError
from bothends.order import GenerationOrder
from bothends.search.scoring import ForcedScore, corpus_perplexity, force_scores
from bothends.text.vocabulary import SpecialTokens
from conftest import ALL_ORDERS, MakeModel, order_tensors, random_source
from toy_engine import ToyEngine

SPECIAL = SpecialTokens()
ORDER = GenerationOrder.parse("2x1")
texts = st.lists(st.sampled_from([0, 1, 2, 4, 5, 6]), max_size=11)


@given(
    order=st.sampled_from(ALL_ORDERS),
    seed=st.integers(0, 2**32 - 1),
    targets=st.lists(texts, min_size=1, max_size=4),
)
@settings(max_examples=100, deadline=None)
def test_scores_are_those_of_stepping_through_the_target(
    order: GenerationOrder, seed: int, targets: list[list[int]]
) -> None:
    engine = ToyEngine(7, seed)
    source = random_source(np.random.default_rng(seed), len(targets), 5, 7, padded=True)
    scores = force_scores(engine, order, SPECIAL, source, targets)
    size = order.block_size
    for sentence, target, score in zip(source, targets, scores, strict=True):
        (slots,) = order.target_slots([target], SPECIAL.end, SPECIAL.pad)
        state, fed, logprobs = engine.encode(sentence[None]), np.full(size, SPECIAL.start), []
        for first in range(0, len(slots), size):
            step = engine.distribution(state, fed[None], order.block(first // size))[0]
            fed = slots[first : first + size]
            logprobs += [float(step[i, word]) for i, word in enumerate(fed)]
        # 1e-9: the same float64 sums in another order
        for slot, place in enumerate(order.permutation(len(target))):
            assert score.token_logprobs[place] == pytest.approx(logprobs[slot], abs=1e-9)
        assert score.end_logprob == pytest.approx(logprobs[len(target)], abs=1e-9)
        assert score.length == len(target)


@pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
def test_scores_of_a_real_model(
    order: GenerationOrder, make_model: MakeModel, random: np.random.Generator
) -> None:
    model = make_model(order)
    source = random_source(random, 3, 6, 23, padded=True)
    targets: list[list[int]] = [[], [7], random.integers(4, 23, 9).tolist()]
    scores = force_scores(TorchEngine(model), order, SPECIAL, source, targets)
    for sentence, target, score in zip(source, targets, scores, strict=True):
        (slots,) = order.target_slots([target], SPECIAL.end, SPECIAL.pad)
        n = len(slots)
        arrays = (sentence[None], order.shift(slots, SPECIAL.start)[None])
        with torch.no_grad():
            logits = model(*map(torch.from_numpy, arrays), order_tensors(order, n))
        logprobs = logits.log_softmax(-1)[0, torch.arange(n), torch.from_numpy(slots)].numpy()
        assert score.logprob == pytest.approx(logprobs[: len(target) + 1].sum(), abs=1e-9)
        by_slot = np.array(score.token_logprobs)[order.permutation(len(target))]
        np.testing.assert_allclose(by_slot, logprobs[: len(target)], atol=1e-9)


def test_the_logprobs_of_all_targets_sum_to_one() -> None:
    # Every target of up to two tokens over two words, and the mass of what is longer.
    special = SpecialTokens(pad=0, unknown=0, start=0, end=1)
    engine = ToyEngine(3, special=special)
    targets = [[], [0], [2], [0, 0], [0, 2], [2, 0], [2, 2]]
    source = np.full((len(targets), 2), 1)
    for text in ("1x1", "2x1", "2x2", "4x1"):
        order = GenerationOrder.parse(text)
        scores = force_scores(engine, order, special, source, targets)
        ended = sum(math.exp(score.logprob) for score in scores)
        longer = sum(
            math.exp(sum(score.token_logprobs)) * (1 - math.exp(score.end_logprob))
            for score in scores
            if score.length == 2
        )
        assert ended + longer == pytest.approx(1.0, abs=1e-12)


def test_perplexity_counts_the_end_symbol() -> None:
    one = ForcedScore([math.log(1 / 4), math.log(1 / 4)], math.log(1 / 4))
    empty = ForcedScore([], math.log(1 / 2))
    assert one.perplexity == pytest.approx(4.0)
    assert empty.perplexity == pytest.approx(2.0)
    assert corpus_perplexity([one, empty]) == pytest.approx(math.exp(7 * math.log(2) / 4))


def test_the_perplexity_of_a_hopeless_model_is_infinite() -> None:
    assert ForcedScore([-1e6], -1e6).perplexity == math.inf


def test_no_targets() -> None:
    source = np.empty((0, 3), dtype=np.int64)
    assert force_scores(ToyEngine(), ORDER, SPECIAL, source, []) == []
    with pytest.raises(UsageError, match="no targets to compute a perplexity"):
        corpus_perplexity([])


def test_sources_and_targets_must_pair_up() -> None:
    with pytest.raises(UsageError, match="1 source sentences came with 2 targets"):
        force_scores(ToyEngine(), ORDER, SPECIAL, np.array([[4, 3]]), [[4], [5]])
