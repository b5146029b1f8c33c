"""Search against its slow, obvious versions: brute force, exhaustive search, naive greedy."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.engines.protocol import FloatArray, TopK
from bothends.engines.torch import TorchEngine
from bothends.errors import BothendsError, UsageError
from bothends.model.torch.transformer import BlockTensors, Transformer
from bothends.order import Block, GenerationOrder, IntArray
from bothends.search.beam import (
    Hypothesis,
    beam_search,
    joint_topk,
)
from bothends.search.options import SearchOptions
from bothends.search.scoring import ForcedScore, force_scores
from bothends.text.vocabulary import SpecialTokens
from conftest import ALL_ORDERS, MakeModel, random_source
from toy_engine import ToyEngine, ToyState

SPECIAL = SpecialTokens()
PAD, END = SPECIAL.pad, SPECIAL.end
#: Three words in all, one of them the end: small enough to try every sequence. That the start and
#: unknown symbols are also padding must not matter, because only the end symbol ends a target.
TINY = SpecialTokens(pad=0, unknown=0, start=0, end=1)

orders = st.sampled_from(ALL_ORDERS)
seeds = st.integers(0, 2**32 - 1)
several_orders = pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
few_orders = pytest.mark.parametrize(
    "order", [GenerationOrder.parse(text) for text in ("1x1", "2x1", "1x2", "2x2", "4x1")], ids=str
)

#: Logprobs (T, V) of every slot of a target, from the decoder's inputs (T,).
Distribution = Callable[[IntArray], FloatArray]


def toy_distribution(engine: ToyEngine, order: GenerationOrder, source: IntArray) -> Distribution:
    def distribution(inputs: IntArray) -> FloatArray:
        logprobs: FloatArray = engine.distribution(
            engine.encode(source[None]), inputs[None], order.whole(len(inputs))
        )[0]
        return logprobs

    return distribution


def model_distribution(model: Transformer, source: IntArray) -> Distribution:
    def distribution(inputs: IntArray) -> FloatArray:
        block = BlockTensors.of(model.order.whole(len(inputs)))
        with torch.no_grad():
            logits = model(*map(torch.from_numpy, (source[None], inputs[None])), block)
        logprobs: FloatArray = logits.log_softmax(-1)[0].numpy()
        return logprobs

    return distribution


def naive_greedy(
    distribution: Distribution, order: GenerationOrder, limit: int, minimum: int = 0
) -> tuple[list[int], bool]:
    """Text and whether it ended: block by block, the whole prefix anew, one argmax per slot."""
    slots: list[int] = []
    while True:
        inputs = [SPECIAL.start] * order.block_size + slots
        logprobs = distribution(np.array(inputs))
        for slot in range(len(slots), len(inputs)):
            if slot < minimum:
                logprobs[slot, END] = -np.inf
            word = int(logprobs[slot].argmax())
            if word == END or slot == limit:
                return order.inverse(slots), word == END
            slots.append(word)


def every_target(
    distribution: Distribution, order: GenerationOrder, limit: int, options: SearchOptions
) -> list[Hypothesis]:
    """All targets over the words 0 and 2 with at most `limit` tokens, best score first."""
    targets = []
    for length in range(limit + 1):
        for slots in itertools.product((0, 2), repeat=length):
            padded = np.full(order.padded_length(length + 1), TINY.pad)
            padded[: length + 1] = (*slots, TINY.end)
            logprobs = distribution(order.shift(padded, TINY.start))
            logprob = float(sum(logprobs[slot, word] for slot, word in enumerate(slots)))
            ended = length < limit or logprobs[length].argmax() == TINY.end
            if ended:
                logprob += float(logprobs[length, TINY.end])
            score = options.score(logprob, length)
            steps = order.steps(length)
            targets.append(
                Hypothesis(order.inverse(list(slots)), logprob, score, steps, bool(ended))
            )
    return sorted(targets, key=lambda target: -target.score)


def assert_same(found: list[Hypothesis], wanted: list[Hypothesis]) -> None:
    # 1e-9: sums of at most some dozens of float64 logprobs, taken in another order
    assert [(one.tokens, one.finished) for one in found] == [
        (one.tokens, one.finished) for one in wanted
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-9)
        assert one.score == pytest.approx(other.score, abs=1e-9)
        assert one.steps == other.steps


def assert_forced(hypothesis: Hypothesis, forced: ForcedScore) -> None:
    wanted = forced.logprob if hypothesis.finished else sum(forced.token_logprobs)
    assert hypothesis.logprob == pytest.approx(wanted, abs=1e-9)


# joint_topk


@st.composite
def slot_lists(draw: st.DrawFn) -> TopK:
    """Lists of up to four words for up to four slots. Quarters add up exactly, and tie often."""
    rows, slots, width = (draw(st.integers(1, n)) for n in (3, 4, 4))
    quarters = st.one_of(st.integers(-12, 0).map(lambda n: n / 4), st.just(-np.inf))
    words = st.permutations(range(6)).map(lambda ids: ids[:width])
    count = rows * slots
    logprobs = draw(st.lists(quarters, min_size=count * width, max_size=count * width))
    ids = draw(st.lists(words, min_size=count, max_size=count))
    return TopK(
        np.array(logprobs).reshape(rows, slots, width), np.array(ids).reshape(rows, slots, width)
    )


def all_blocks(logprobs: FloatArray, ids: IntArray) -> dict[tuple[int, ...], float]:
    """Every block of one row (Z, k), cut at its first end symbol, with its logprob."""
    slots, width = ids.shape
    blocks = {}
    for choice in itertools.product(range(width), repeat=slots):
        block, logprob = [PAD] * slots, 0.0
        for slot, word in enumerate(choice):
            block[slot] = int(ids[slot, word])
            logprob += float(logprobs[slot, word])
            if block[slot] == END:
                break
        if logprob > -np.inf:
            blocks[tuple(block)] = logprob
    return blocks


@given(top=slot_lists(), k=st.integers(1, 8))
@settings(max_examples=200, deadline=None)
def test_joint_topk_is_brute_force_over_the_product_space(top: TopK, k: int) -> None:
    found = joint_topk(top, k, END, PAD)
    for row in range(len(top.ids)):
        wanted = all_blocks(top.logprobs[row], top.ids[row])
        alive = found.logprobs[row] > -np.inf
        blocks = [tuple(block) for block in found.tokens[row][alive].tolist()]
        # Among equals any may be returned; the logprobs, and that each is its block's, are fixed.
        assert found.logprobs[row][alive].tolist() == sorted(wanted.values(), reverse=True)[:k]
        assert [wanted[block] for block in blocks] == found.logprobs[row][alive].tolist()
        assert len(set(blocks)) == len(blocks)


@given(top=slot_lists(), k=st.integers(1, 8), sums=st.integers(1, 64))
@settings(max_examples=200, deadline=None)
def test_joint_topk_of_some_rows_at_a_time_is_that_of_all(top: TopK, k: int, sums: int) -> None:
    whole = joint_topk(top, k, END, PAD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bothends.search.beam.SUMS_AT_ONCE", sums)
        parts = joint_topk(top, k, END, PAD)
    for one, other in zip(parts[:2], whole[:2], strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    assert parts.may_end == whole.may_end


def test_joint_topk_does_not_hold_the_sums_of_all_rows(
    monkeypatch: pytest.MonkeyPatch, random: np.random.Generator
) -> None:
    rows, beam = 1024, 32
    monkeypatch.setattr("bothends.search.beam.SUMS_AT_ONCE", 16 * beam**2)
    ids = np.tile(np.arange(4, 4 + beam), (rows, 2, 1))
    tracemalloc.start()
    joint_topk(TopK(-random.random(ids.shape), ids), beam, END, PAD)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < rows * beam**2 * np.float64().itemsize


def test_joint_topk_keeps_a_closed_block_that_is_poor_when_it_closes() -> None:
    # After two slots the best beginnings are (5 5) and (6 5); the third slot costs them 5 each.
    top = TopK(
        np.array([[[-0.5, -0.6], [-0.1, -3.0], [-5.0, -6.0]]]),
        np.array([[[5, 6], [5, END], [5, 6]]]),
    )
    found = joint_topk(top, 2, END, PAD)
    assert found.tokens.tolist() == [[[5, END, PAD], [6, END, PAD]]]
    assert found.logprobs[0] == pytest.approx([-3.5, -3.6])


def test_joint_topk_breaks_ties_by_the_engines_order() -> None:
    # So many that a sort which keeps the order of equals only in short lists would not do.
    ids = np.array([[[18, 17, 16, 15, 14, 13, 12, 11], [28, 27, 26, 25, 24, 23, 22, 21]]])
    logprobs = np.where(ids % 10 > 4, -1.0, -2.0)
    found = joint_topk(TopK(logprobs, ids), 50, END, PAD)
    pairs = itertools.product(range(8), repeat=2)
    wanted = sorted(pairs, key=lambda pair: (pair[0] > 3) + (pair[1] > 3))[:50]
    assert found.tokens[0].tolist() == [[ids[0, 0, i], ids[0, 1, j]] for i, j in wanted]


def test_joint_topk_adds_in_double_precision() -> None:
    logprobs = np.full((1, 4, 1), -0.1, dtype=np.float32)
    found = joint_topk(TopK(logprobs, np.full((1, 4, 1), 5)), 1, END, PAD)
    assert found.logprobs[0, 0] == 4 * float(np.float32(-0.1))


# beam_search against slower searches


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("normalisation", ["google", "mean"])
@pytest.mark.parametrize(
    "text",
    ["1x1", "2x1", "1x2", "2x2", "4x1", "1x4", "2x3", "2x1+autoregressive", "4x1+vanilla-mask"],
)
def test_a_beam_wide_enough_is_exhaustive_search(
    text: str, normalisation: Any, limit: int, seed: int
) -> None:
    order, wide = GenerationOrder.parse(text), 2 ** (limit + 2)
    engine = ToyEngine(3, seed, sharpness=1.0, special=TINY)
    options = SearchOptions(
        beam=wide, n_best=wide, max_length=max(limit, 1), normalisation=normalisation
    )
    source = np.array([[2, 0, 2, 1]])
    found = beam_search(engine, order, TINY, source, options, np.array([limit]))[0]
    wanted = every_target(toy_distribution(engine, order, source[0]), order, limit, options)
    assert_same(found, wanted)


@given(order=orders, seed=seeds, limit=st.integers(0, 13), minimum=st.integers(0, 6))
@settings(max_examples=100, deadline=None)
def test_beam_one_is_naive_greedy_search(
    order: GenerationOrder, seed: int, limit: int, minimum: int
) -> None:
    engine = ToyEngine(6, seed)
    source = random_source(np.random.default_rng(seed), 3, 5, 6, padded=True)
    options = SearchOptions(beam=1, min_length=minimum)
    limits = np.full(3, limit)
    for sentence, found in zip(
        source, beam_search(engine, order, SPECIAL, source, options, limits), strict=True
    ):
        distribution = toy_distribution(engine, order, sentence)
        tokens, ended = naive_greedy(distribution, order, limit, minimum)
        assert [(one.tokens, one.finished) for one in found] == [(tokens, ended)]


@given(
    order=orders,
    seed=seeds,
    vocabulary=st.integers(4, 9),
    beam=st.integers(1, 6),
    limits=st.lists(st.integers(0, 11), min_size=1, max_size=4),
    minimum=st.integers(0, 4),
)
@settings(max_examples=150, deadline=None)
def test_every_hypothesis_is_what_it_claims(
    order: GenerationOrder, seed: int, vocabulary: int, beam: int, limits: list[int], minimum: int
) -> None:
    engine = ToyEngine(vocabulary, seed)
    source = np.random.default_rng(seed).integers(1, vocabulary, (len(limits), 4))
    options = SearchOptions(beam=beam, n_best=beam, min_length=minimum)
    found = beam_search(engine, order, SPECIAL, source, options, np.array(limits))
    for sentence, limit, pool in zip(source, limits, found, strict=True):
        assert 1 <= len(pool) <= beam
        assert len({tuple(one.tokens) for one in pool}) == len(pool)
        assert [one.score for one in pool] == sorted((one.score for one in pool), reverse=True)
        batch = sentence[None].repeat(len(pool), axis=0)
        forced = force_scores(engine, order, SPECIAL, batch, [one.tokens for one in pool])
        for one, forced_score in zip(pool, forced, strict=True):
            assert END not in one.tokens
            assert minimum <= len(one.tokens) <= limit if one.finished else len(one.tokens) == limit
            assert one.steps == order.steps(len(one.tokens))
            assert one.score == options.score(one.logprob, len(one.tokens))
            assert_forced(one, forced_score)


@given(order=orders, seed=seeds, beam=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_a_sentence_is_decoded_in_a_batch_as_it_is_alone(
    order: GenerationOrder, seed: int, beam: int
) -> None:
    random = np.random.default_rng(seed)
    engine = ToyEngine(7, seed)
    source = random_source(random, 6, 7, 7, padded=True)
    limits = random.integers(0, 12, 6)
    options = SearchOptions(beam=beam, n_best=beam)
    together = beam_search(engine, order, SPECIAL, source, options, limits)
    for sentence, limit, pool in zip(source, limits, together, strict=True):
        unpadded = sentence[None, sentence != PAD]
        alone = beam_search(engine, order, SPECIAL, unpadded, options, np.array([limit]))
        assert_same(pool, alone[0])


# The same on real networks


@several_orders
def test_logprobs_of_a_real_model_are_its_forced_scores(
    order: GenerationOrder, make_model: MakeModel, random: np.random.Generator
) -> None:
    engine = TorchEngine(make_model(order, output_bias=True))
    with torch.no_grad():
        engine.model.output_bias[END] += 1.0  # some hypotheses end, some are cut
    source = random_source(random, 3, 6, 23, padded=True)
    options = SearchOptions(beam=4, n_best=4, max_length=9)
    found = beam_search(engine, order, SPECIAL, source, options)
    for sentence, pool in zip(source, found, strict=True):
        batch = sentence[None].repeat(len(pool), axis=0)
        forced = force_scores(engine, order, SPECIAL, batch, [one.tokens for one in pool])
        for one, forced_score in zip(pool, forced, strict=True):
            assert_forced(one, forced_score)


@few_orders
def test_beam_one_on_a_real_model_is_naive_greedy_search(
    order: GenerationOrder, make_model: MakeModel, random: np.random.Generator
) -> None:
    model = make_model(order)
    source = random_source(random, 4, 6, 23, padded=True)
    options = SearchOptions(beam=1, max_length=17)
    for sentence, found in zip(
        source, beam_search(TorchEngine(model), order, SPECIAL, source, options), strict=True
    ):
        tokens, ended = naive_greedy(model_distribution(model, sentence), order, 17)
        assert [(one.tokens, one.finished) for one in found] == [(tokens, ended)]


# Edges


class TableEngine(ToyEngine):
    """Logprobs from a table, slot by slot; whatever it does not name has -9."""

    def __init__(self, table: list[dict[int, float]]) -> None:
        super().__init__(vocabulary=9)
        self.table = table

    def distribution(self, state: ToyState, tokens: IntArray, block: Block) -> FloatArray:
        first = state.inputs.shape[1]
        logprobs = super().distribution(state, tokens, block)
        logprobs[:] = -9.0
        for slot, words in enumerate(self.table[first : first + logprobs.shape[1]]):
            for word, logprob in words.items():
                logprobs[:, slot, word] = logprob
        return logprobs


def scripted(words: list[int]) -> TableEngine:
    """An engine that is sure of its words, slot by slot."""
    return TableEngine([{word: -0.01} for word in words])


@few_orders
@pytest.mark.parametrize("length", range(6))
@pytest.mark.parametrize("beam", [1, 3])
def test_targets_shorter_than_a_block(order: GenerationOrder, length: int, beam: int) -> None:
    text = list(range(4, 4 + length))
    # What the model would like to say after the end must not matter: 8 is never returned.
    engine = scripted([*order.permute(text), END, 8, 8, 8])
    options = SearchOptions(beam=beam, max_length=20)
    (best,) = beam_search(engine, order, SPECIAL, np.array([[4, END]]), options)[0]
    assert (best.tokens, best.finished) == (text, True)
    assert best.logprob == pytest.approx(-0.01 * (length + 1))
    assert best.steps == order.steps(length)


@few_orders
@pytest.mark.parametrize("limit", range(1, 8))
def test_a_target_of_exactly_the_limit_may_end(order: GenerationOrder, limit: int) -> None:
    text = [4, 5, 6, 7, 8, 4, 5][:limit]
    source = np.array([[4, END]])
    options = SearchOptions(beam=1, max_length=limit)
    ending = scripted([*order.permute(text), END])
    (best,) = beam_search(ending, order, SPECIAL, source, options)[0]
    assert (best.tokens, best.finished) == (text, True)
    assert best.logprob == pytest.approx(-0.01 * (limit + 1))
    going_on = scripted([*order.permute(text), 8, 8, 8, 8])
    (best,) = beam_search(going_on, order, SPECIAL, source, options)[0]
    assert (best.tokens, best.finished) == (text, False)
    assert best.logprob == pytest.approx(-0.01 * limit)


@few_orders
def test_sources_without_text_and_of_one_token(order: GenerationOrder) -> None:
    source = np.array([[END, PAD], [5, END]])
    found = beam_search(ToyEngine(), order, SPECIAL, source, SearchOptions(max_length=9))
    assert [len(pool) for pool in found] == [1, 1]


def test_no_sentences_at_all() -> None:
    order = GenerationOrder.parse("2x1")
    source = np.empty((0, 4), dtype=np.int64)
    assert beam_search(ToyEngine(), order, SPECIAL, source, SearchOptions()) == []


@few_orders
def test_ties_are_broken_the_same_way_every_time(order: GenerationOrder) -> None:
    options = SearchOptions(beam=5, n_best=5, max_length=6)
    source = np.array([[4, 5, END], [END, PAD, PAD]])
    indifferent = ToyEngine(sharpness=0.0)
    first = beam_search(indifferent, order, SPECIAL, source, options)
    assert first == beam_search(indifferent, order, SPECIAL, source, options)
    assert first[0] == first[1]


# What the search asks of the engine


def test_greedy_search_never_moves_rows() -> None:
    engine = scripted([4, 5, 6, 7, 8, END])
    order = GenerationOrder.parse("2x1")
    beam_search(engine, order, SPECIAL, np.array([[4, END]]), SearchOptions(beam=1))
    assert engine.selected == []
    assert engine.rows_stepped == [1, 1, 1]
    assert engine.words_asked == [1, 1, 1]


def test_finished_sentences_leave_the_batch() -> None:
    order = GenerationOrder.parse("2x1")
    engine = scripted([4] * 40)
    limits = np.array([3, 9, 1, 5])
    source = np.full((4, 2), END)
    beam_search(engine, order, SPECIAL, source, SearchOptions(beam=1), limits)
    # Limits of 1, 3, 5 and 9 tokens and the end symbol take 1, 2, 3 and 5 blocks of two.
    assert engine.rows_stepped == [4, 3, 2, 1, 1]
    assert [rows.tolist() for rows in engine.selected] == [[[0], [1], [3]], [[1], [2]], [[0]]]


def test_a_beam_starts_from_one_row_per_sentence() -> None:
    engine = scripted([4] * 40)
    source = np.full((2, 2), END)
    options = SearchOptions(beam=3, max_length=2)
    beam_search(engine, GenerationOrder.parse("1x1"), SPECIAL, source, options)
    assert engine.rows_stepped == [2, 6, 6]


def test_rows_stay_rectangular_where_the_vocabulary_is_smaller_than_the_beam() -> None:
    engine = ToyEngine(4, sharpness=0.5)
    source = np.array([[1, END], [2, END]])
    options = SearchOptions(beam=9, n_best=9, max_length=3)
    found = beam_search(engine, GenerationOrder.parse("1x1"), SPECIAL, source, options)
    assert (engine.rows_stepped[0], max(engine.rows_stepped)) == (2, 18)
    assert [len(pool) for pool in found] == [9, 9]


def test_one_word_more_is_asked_only_below_the_minimum_length() -> None:
    engine = scripted([END] * 20)
    order = GenerationOrder.parse("2x1")
    options = SearchOptions(beam=2, min_length=3)
    (best,) = beam_search(engine, order, SPECIAL, np.array([[4, END]]), options)[0]
    assert engine.words_asked == [3, 3]
    assert (len(best.tokens), best.finished) == (3, True)


def test_the_word_more_does_not_change_the_slots_above_the_minimum() -> None:
    # Greedy search takes each slot's first choice, so it does not end in slot 1, although a block
    # closed there is more probable than any other.
    engine = TableEngine([{4: -0.1}, {4: -0.1, END: -0.2}, {4: -8.0}, {4: -8.0}, {END: -0.1}])
    source, order = np.array([[4, END]]), GenerationOrder.parse("1x4")
    for minimum in (0, 1):
        options = SearchOptions(beam=1, min_length=minimum)
        (best,) = beam_search(engine, order, SPECIAL, source, options)[0]
        assert best.tokens == [4, 4, 4, 4]


def test_poor_endings_do_not_fill_the_pool() -> None:
    # From the second step on the end is each row's second choice, and behind both rows' first.
    # If every ending counted, beam 2 would stop there with the two of them.
    sure = {4: -0.1, END: -3.0}
    engine = TableEngine([{4: -0.1, 5: -0.2}, sure, sure, sure, {END: -0.1}])
    order, options = GenerationOrder.parse("1x1"), SearchOptions(beam=2, n_best=2)
    found = beam_search(engine, order, SPECIAL, np.array([[4, END]]), options)[0]
    assert [one.tokens for one in found] == [[4, 4, 4, 4], [5, 4, 4, 4]]


# Options and results


@pytest.mark.parametrize(
    ("options", "logprob", "length", "score"),
    [
        (SearchOptions(), -6.0, 1, -6.0),
        (SearchOptions(), -6.0, 7, -6.0 / 2**0.6),
        (SearchOptions(length_penalty=1.0), -6.0, 13, -2.0),
        (SearchOptions(length_penalty=0.0), -6.0, 13, -6.0),
        (SearchOptions(length_penalty=1.0), -5.0, 0, -6.0),
        (SearchOptions(normalisation="mean"), -6.0, 3, -2.0),
        (SearchOptions(normalisation="mean"), -6.0, 0, -6.0),
    ],
)
def test_score(options: SearchOptions, logprob: float, length: int, score: float) -> None:
    assert options.score(logprob, length) == pytest.approx(score)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam": 0}, "beam must be a whole number from 1 on, not 0"),
        ({"beam": 2.5}, "beam must be a whole number from 1 on, not 2.5"),
        ({"beam": "4"}, "beam must be a whole number from 1 on, not '4'"),
        ({"beam": True}, "beam must be a whole number from 1 on, not True"),
        ({"beam": 257}, "beam 257: at most 256"),
        ({"n_best": 0}, "n_best must be a whole number from 1 on, not 0"),
        ({"n_best": 5}, "n_best must not exceed the beam: 5 hypotheses were asked of a beam of 4"),
        ({"min_length": -1}, "min_length must be a whole number from 0 on, not -1"),
        ({"max_length": 2_000_000_000}, "max_length 2000000000: at most 1000000000"),
        ({"min_length": 2049}, "min_length 2049: at most 2048; every target would have to be"),
        ({"max_length": 0}, "max_length must be a whole number from 1 on, not 0"),
        ({"min_length": 9, "max_length": 8}, "min_length 9 is greater than max_length 8"),
        ({"length_penalty": -0.1}, "length_penalty must be 0 or more, not -0.1"),
        ({"length_penalty": float("nan")}, "length_penalty must be 0 or more, not nan"),
        ({"length_penalty": 1e308}, "length_penalty 1e+308: at most 50"),
        ({"length_penalty": "0.6"}, "length_penalty must be 0 or more, not '0.6'"),
        ({"normalisation": "gogle"}, "unknown normalisation 'gogle'; did you mean google?"),
    ],
)
def test_bad_options_are_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        SearchOptions(**changes)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("max_lengths", [[5], [5, 5, 5], [5, -1]])
def test_bad_max_lengths_are_refused(max_lengths: list[int]) -> None:
    source = np.array([[4, END], [5, END]])
    order = GenerationOrder.parse("2x1")
    with pytest.raises(
        UsageError, match="max_lengths must hold one length from 0 on for each of 2"
    ):
        beam_search(ToyEngine(), order, SPECIAL, source, SearchOptions(), np.array(max_lengths))


@pytest.mark.parametrize("beam", [1, 4])
def test_a_model_of_nan_is_one_clear_error(beam: int) -> None:
    engine = ToyEngine(sharpness=float("nan"))
    order, options = GenerationOrder.parse("2x1"), SearchOptions(beam=beam, max_length=5)
    with pytest.raises(BothendsError, match="no word a probability"):
        beam_search(engine, order, SPECIAL, np.array([[4, END]]), options)
