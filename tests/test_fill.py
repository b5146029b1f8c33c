"""Filling a gap between known ends: against every middle there is, and against forced scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.engines.torch import TorchEngine
from bothends.order import GenerationOrder
from bothends.search.fill import FREE, Allowed, Choice, FilledFrame, Frame, fill_frames
from bothends.search.options import SearchOptions
from bothends.search.scoring import force_scores
from bothends.text.vocabulary import SpecialTokens
from conftest import ALL_ORDERS, MakeModel, random_source
from toy_engine import ToyEngine

SPECIAL = SpecialTokens()
END = SPECIAL.end
#: A vocabulary so small that every middle can be tried.
TINY = SpecialTokens(pad=0, unknown=0, start=0, end=1)
WORDS = 4
WIDE = 256

ends = st.lists(st.sampled_from([0, 2, 3]), max_size=4)


def every_middle(
    engine: ToyEngine,
    order: GenerationOrder,
    source: np.ndarray,
    prefix: list[int],
    suffix: list[int],
    bound: int,
    options: SearchOptions,
) -> list[tuple[float, list[int]]]:
    """Score and tokens of all targets with at most `bound` tokens in the gap, best first."""
    targets = [
        [*prefix, *middle, *suffix]
        for gap in range(bound + 1)
        for middle in itertools.product([0, 2, 3], repeat=gap)
    ]
    scores = force_scores(engine, order, TINY, source.repeat(len(targets), axis=0), targets)
    scored = [
        (options.score(forced.logprob, forced.length), target)
        for forced, target in zip(scores, targets, strict=True)
    ]
    return sorted(scored, key=lambda pair: -pair[0])


@given(
    order=st.sampled_from(ALL_ORDERS),
    seed=st.integers(0, 2**32 - 1),
    prefix=ends,
    suffix=ends,
    n_best=st.sampled_from([1, 5]),
)
@settings(max_examples=60, deadline=None)
def test_a_wide_beam_finds_the_best_of_all_middles(
    order: GenerationOrder, seed: int, prefix: list[int], suffix: list[int], n_best: int
) -> None:
    engine = ToyEngine(WORDS, seed, special=TINY)
    source = np.array([[2, 3, 1]])
    options = SearchOptions(beam=WIDE, n_best=n_best)
    frames = [Frame.around(prefix, gap, suffix) for gap in range(4)]
    (found,) = fill_frames(engine, order, TINY, source, frames, options)
    expected = every_middle(engine, order, source, prefix, suffix, 3, options)
    assert [one.score for one in found] == pytest.approx([score for score, _ in expected[:n_best]])
    assert found[0].tokens == expected[0][1]
    assert [one.steps for one in found] == [order.steps(len(one.tokens)) for one in found]


@pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
@pytest.mark.parametrize("beam", [1, 3])
def test_a_score_is_the_forced_score_and_the_ends_are_kept(
    order: GenerationOrder, beam: int, make_model: MakeModel, random: np.random.Generator
) -> None:
    """Of a real network, for sentences of several lengths at once."""
    engine = TorchEngine(make_model(order))
    source = random_source(random, 3, 6, 23, padded=True)
    known = [([5, 6, 7], [8]), ([], [9, 10, 11, 12]), ([13, 14], [])]
    frames = [
        Frame((*prefix, *[FREE] * gap, *suffix), number)
        for number, (prefix, suffix) in enumerate(known)
        for gap in (1, 3, 6)
    ]
    options = SearchOptions(beam=beam, n_best=beam)
    results = fill_frames(engine, order, SPECIAL, source, frames, options)
    for sentence, (prefix, suffix), found in zip(source, known, results, strict=True):
        assert len(found) == beam
        targets = [one.tokens for one in found]
        forced = force_scores(engine, order, SPECIAL, sentence[None].repeat(beam, axis=0), targets)
        for one, score in zip(found, forced, strict=True):
            assert one.logprob == pytest.approx(score.logprob, abs=1e-9)
            assert one.tokens[: len(prefix)] == prefix
            assert one.tokens[len(one.tokens) - len(suffix) :] == suffix
            assert END not in one.tokens


@pytest.mark.parametrize("order", ["1x1", "2x1", "2x2", "4x1"])
def test_frames_do_not_notice_each_other(
    order: str, make_model: MakeModel, random: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone, in one batch, or in several batches, frames become the same."""
    engine, parsed = TorchEngine(make_model(order)), GenerationOrder.parse(order)
    source = random_source(random, 1, 6, 23, padded=False)
    frames = [Frame.around([5, 6], gap, [7, 8, 9]) for gap in range(8)]
    options = SearchOptions(beam=3, n_best=3)

    def results(*some: Frame) -> list[FilledFrame]:
        return fill_frames(engine, parsed, SPECIAL, source, some, options)[0]

    alone = sorted((one for frame in frames for one in results(frame)), key=lambda one: -one.score)
    together = results(*frames)
    monkeypatch.setattr("bothends.search.fill.ROWS_AT_ONCE", 6)
    for found in (together, results(*frames)):
        assert [one.tokens for one in found] == [one.tokens for one in alone[:3]]
        assert [one.score for one in found] == pytest.approx([one.score for one in alone[:3]])


def test_known_tokens_take_one_row_and_no_choice() -> None:
    engine, order = ToyEngine(9), GenerationOrder.parse("2x1")
    options = SearchOptions(beam=4, n_best=4)
    frame = Frame.around([4, 5, 6], 2, [7, 8, 4])
    fill_frames(engine, order, SPECIAL, np.array([[4, END]]), [frame], options)
    # three blocks of known tokens, the gap, and the end symbol
    assert engine.words_asked == [1, 1, 1, 5, 1]
    assert engine.rows_stepped == [1, 1, 1, 1, 4]


@given(order=st.sampled_from(ALL_ORDERS), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_what_is_not_allowed_is_not_written(order: GenerationOrder, seed: int) -> None:
    engine, source = ToyEngine(WORDS, seed, special=TINY), np.array([[2, 3, 1]])
    options = SearchOptions(beam=WIDE)
    frames = [Frame.around([2], gap, [3]) for gap in range(4)]

    def no_neighbours(frame: Frame, text: np.ndarray) -> bool:
        return not ((text[1:] == text[:-1]) & (text[1:] != FREE)).any()

    allowed: Allowed = no_neighbours
    (found,) = fill_frames(engine, order, TINY, source, frames, options, allowed)
    expected = [
        (score, tokens)
        for score, tokens in every_middle(engine, order, source, [2], [3], 3, options)
        if no_neighbours(frames[0], np.array(tokens))
    ]
    assert found[0].tokens == expected[0][1]
    (nothing,) = fill_frames(engine, order, TINY, source, frames, options, lambda *text: False)
    assert [one.tokens for one in nothing] == [[2, 3]]  # the frame in which nothing is to be chosen


@given(order=st.sampled_from(ALL_ORDERS), seed=st.integers(0, 2**32 - 1), place=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_a_place_can_be_left_some_words_only(order: GenerationOrder, seed: int, place: int) -> None:
    """Also words that the model would not have looked at, with a beam of one."""
    engine, source = ToyEngine(WORDS, seed, special=TINY), np.array([[2, 3, 1]])
    choice = Choice(np.arange(WORDS) == 3)
    frame = Frame((2, FREE, FREE, FREE, 0), choices=((place, choice),))
    for beam in (1, WIDE):
        options = SearchOptions(beam=beam)
        ((found,),) = fill_frames(engine, order, TINY, source, [frame], options)
        assert found.tokens[place] == 3
    expected = [
        tokens
        for _, tokens in every_middle(engine, order, source, [2], [0], 3, options)
        if len(tokens) == 5 and tokens[place] == 3
    ]
    assert found.tokens == expected[0]


def test_a_sentence_without_frames_has_no_results() -> None:
    order, source = GenerationOrder.parse("2x1"), np.array([[4, END], [5, END]])
    frames = [Frame((4, FREE), source=1)]
    found = fill_frames(ToyEngine(9), order, SPECIAL, source, frames, SearchOptions(beam=2))
    assert [len(results) for results in found] == [0, 1]
