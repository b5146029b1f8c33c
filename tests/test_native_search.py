"""The compiled search against the readable one, over the same steps: 1,000 random cases.

`beam_search` over the native engine's own `step` is the oracle: the numbers are the same, so the
hypotheses must be too, in the same order, with the same logprobs.
"""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bothends.engines.export import write_graphs
from bothends.engines.native import extension
from bothends.engines.native.engine import NativeEngine, order_tables
from bothends.engines.onnx.engine import OnnxEngine
from bothends.engines.protocol import SearchRequest, TopK, WholeSearch
from bothends.errors import BothendsError, UsageError
from bothends.model.directory import Description, write_description
from bothends.order import GenerationOrder, IntArray
from bothends.search.batch import search_batch
from bothends.search.beam import Hypothesis, beam_search
from bothends.search.options import SearchOptions
from bothends.translator import Translator
from conftest import ALL_ORDERS, MakeModel, random_source
from every_order import EVERY_ORDER
from tiny_model import sentences, tiny_model

native: Any = extension()
if native is None:
    pytest.skip("the native engine is not built", allow_module_level=True)

WORDS = 23
CASES_PER_ORDER = -(-1000 // len(ALL_ORDERS))
LAYOUTS: list[dict[str, Any]] = [
    {},
    dict(norm="pre", activation="gelu"),
    dict(activation="silu", sinusoid="halves", tie_output=False, output_bias=True),
    dict(share_embeddings=False, target_vocabulary_size=29, embedding_scale=False),
    dict(sinusoid="tensor2tensor", position_offset=2, output_bias=True),
]


def export(
    make_model: MakeModel, order: GenerationOrder | str, directory: Path, **changes: Any
) -> Path:
    model = make_model(order, **changes)
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    # Otherwise almost every word is as likely as any other, and the end hardly matters.
    weights = {name: 3 * array if "embedding" in name else array for name, array in weights.items()}
    write_graphs(directory, weights, model.config, model.order, "int8")
    write_description(directory, Description(model=model.config, order=model.order))
    return directory


def assert_same(
    found: list[list[Hypothesis]], expected: list[list[Hypothesis]], tolerance: float
) -> None:
    assert [len(pool) for pool in found] == [len(pool) for pool in expected]
    for pool, expected_pool in zip(found, expected, strict=True):
        for one, other in zip(pool, expected_pool, strict=True):
            assert (one.tokens, one.finished, one.steps) == (
                other.tokens,
                other.finished,
                other.steps,
            )
            assert one.logprob == pytest.approx(other.logprob, abs=tolerance)
            assert one.score == pytest.approx(other.score, abs=tolerance)


def random_case(random: np.random.Generator) -> tuple[IntArray, SearchOptions, IntArray | None]:
    beam = int(random.integers(1, 9))
    longest = int(random.integers(1, 15))
    options = SearchOptions(
        beam=beam,
        n_best=int(random.integers(1, beam + 1)),
        min_length=int(random.integers(0, min(5, longest) + 1)),
        max_length=longest,
        normalisation="google" if random.integers(2) else "mean",
        length_penalty=float(random.choice([0.0, 0.6, 1.0])),
    )
    sentences = int(random.integers(1, 6))
    source = random_source(random, sentences, 6, WORDS, padded=bool(random.integers(2)))
    limits = random.integers(0, longest + 1, sentences) if random.integers(2) else None
    return source, options, limits


@pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
def test_the_compiled_search_equals_the_readable_one(
    order: GenerationOrder, make_model: MakeModel, random: np.random.Generator, tmp_path: Path
) -> None:
    layout = LAYOUTS[ALL_ORDERS.index(order) % len(LAYOUTS)]
    directory = export(make_model, order, tmp_path, **layout)
    engines = [NativeEngine.load(directory, name) for name in native.instruction_sets()]
    for case in range(CASES_PER_ORDER):
        engine = engines[case % len(engines)]
        source, options, limits = random_case(random)
        arguments = (order, engine.config.special, source, options, limits)
        expected = beam_search(engine, *arguments)
        assert_same(search_batch(engine, *arguments), expected, 1e-4)


@pytest.mark.parametrize("order", ["1x1", "2x1", "2x2", "4x1"])
def test_it_finds_what_onnx_runtime_finds(
    order: str, make_model: MakeModel, random: np.random.Generator, tmp_path: Path
) -> None:
    """The same integers, and floats that round alike but for the last digits.

    A number that lies between two integers may be rounded either way, which moves a logprob by
    some hundredths: so the best hypothesis must be as good, and most must be the same.
    """
    directory = export(make_model, order, tmp_path)
    onnx, same = OnnxEngine.load(directory), 0
    options = SearchOptions(beam=4, max_length=12)
    source = random_source(random, 40, 6, WORDS, padded=True)
    for name in native.instruction_sets():
        engine = NativeEngine.load(directory, name)
        arguments = (engine.order, engine.config.special, source, options)
        found, expected = search_batch(engine, *arguments), beam_search(onnx, *arguments)
        for (one,), (other,) in zip(found, expected, strict=True):
            same += one.tokens == other.tokens
            assert one.score == pytest.approx(other.score, abs=0.15)
    assert same >= 0.9 * len(source) * len(native.instruction_sets())


def test_a_sentence_does_not_notice_its_batch(
    make_model: MakeModel, random: np.random.Generator, tmp_path: Path
) -> None:
    """To the last bit: a row is computed in the same way whatever stands beside it."""
    directory = export(make_model, "2x2", tmp_path)
    source = random_source(random, 30, 9, WORDS, padded=True)
    options = SearchOptions(beam=3, n_best=3, max_length=14)
    for name in native.instruction_sets():
        engine = NativeEngine.load(directory, name)
        order, special = engine.order, engine.config.special
        together = search_batch(engine, order, special, source, options)
        for row, expected in zip(source, together, strict=True):
            (alone,) = search_batch(engine, order, special, row[row != 0][None], options)
            assert_same([alone], [expected], 0.0)


@pytest.mark.parametrize("order", EVERY_ORDER, ids=str)
def test_an_order_repeats(order: GenerationOrder) -> None:
    """What the compiled search builds from a few small tables is the order, however long."""
    tables = order_tables(order)
    period = len(tables.same)
    slots = np.arange(3 * period)
    same = slots[:, None] // period == slots // period
    later = slots[:, None] // period > slots // period
    within = np.ix_(slots % period, slots % period)
    built = (tables.same[within] & same) | (tables.earlier[within] & later)
    np.testing.assert_array_equal(built, order.mask(3 * period))
    first, second = tables.positions.reshape(2, period)
    slots = np.arange(9 * period)
    positions = first[slots % period] + slots // period * (second - first)[slots % period]
    np.testing.assert_array_equal(positions, order.positions(len(slots)))
    directions = tables.directions[slots % period]
    np.testing.assert_array_equal(directions, order.direction_ids(len(slots)))


def test_a_huge_limit_costs_nothing() -> None:
    translator = Translator.load(tiny_model(precision="int8"), engine="native", threads=1)
    lines = sentences(3)
    expected = [each.tokens for each in translator.translate(lines, max_length=100)]
    tracemalloc.start()
    found = translator.translate(lines, max_length=5_000_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [each.tokens for each in found] == expected
    assert most < 1e6


def test_only_an_engine_with_a_search_is_asked_for_it(
    make_model: MakeModel, tmp_path: Path
) -> None:
    directory = export(make_model, "1x1", tmp_path)
    assert isinstance(NativeEngine.load(directory), WholeSearch)
    assert not isinstance(OnnxEngine.load(directory), WholeSearch)


def test_no_sentences_have_no_hypotheses(make_model: MakeModel, tmp_path: Path) -> None:
    engine = NativeEngine.load(export(make_model, "1x1", tmp_path))
    empty = np.zeros((0, 3), np.int64)
    assert search_batch(engine, engine.order, engine.config.special, empty, SearchOptions()) == []


def test_limits_must_fit_the_sentences(make_model: MakeModel, tmp_path: Path) -> None:
    engine = NativeEngine.load(export(make_model, "1x1", tmp_path))
    with pytest.raises(UsageError, match="one length from 0 on"):
        search_batch(
            engine,
            engine.order,
            engine.config.special,
            np.array([[5, 3]]),
            SearchOptions(),
            np.array([3, 4]),
        )


def test_a_model_of_nan_is_an_error(make_model: MakeModel, tmp_path: Path) -> None:
    model = make_model("2x1")
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    last = "decoder.layers.1.feed_forward_norm.bias"
    weights[last] = np.full_like(weights[last], np.nan)
    write_graphs(tmp_path, weights, model.config, model.order, "int8")
    write_description(tmp_path, Description(model=model.config, order=model.order))
    for name in native.instruction_sets():
        engine = NativeEngine.load(tmp_path, name)
        with pytest.raises(BothendsError, match="gives no word a probability"):
            search_batch(
                engine, engine.order, engine.config.special, np.array([[5, 3]]), SearchOptions()
            )


def test_a_length_limit_of_many_thousands_costs_nothing_up_front(
    make_model: MakeModel, tmp_path: Path
) -> None:
    """Tables are a few numbers for each slot, and memory grows with what is written."""
    engine = NativeEngine.load(export(make_model, "2x1", tmp_path))
    options = SearchOptions(beam=2, max_length=200_000)
    source = np.array([[5, 6, 7, 3]])
    limited = SearchOptions(beam=2, max_length=2_000)
    arguments = (engine.order, engine.config.special, source)
    expected = search_batch(engine, *arguments, limited)
    if all(one.finished for one in expected[0]):
        assert_same(search_batch(engine, *arguments, options), expected, 0.0)


def test_a_sentence_uses_only_the_words_it_is_allowed(
    make_model: MakeModel, random: np.random.Generator, tmp_path: Path
) -> None:
    """Its own words, whatever its neighbours have; no list allows everything."""
    directory = export(make_model, "2x1", tmp_path, tie_output=False, output_bias=True)
    source = random_source(random, 6, 6, WORDS, padded=True)
    limits = np.full(6, 10)
    lists = [np.sort(random.permutation(WORDS)[:size]) for size in (3, 8, 0, 22, 5)]
    lists.append(np.arange(WORDS))
    for name in native.instruction_sets():
        engine = NativeEngine.load(directory, name)
        fixed = (engine.order, engine.config.special, 3, 0)
        together = engine.search(SearchRequest(source, *fixed, limits, lists)).pools
        free = engine.search(SearchRequest(source, *fixed, limits)).pools
        assert together[2] == free[2]
        assert [found.tokens for found in together[5]] == [found.tokens for found in free[5]]
        for row, words, pool in zip(source, lists, together, strict=True):
            request = SearchRequest(row[row != 0][None], *fixed, limits[:1], [words])
            alone = engine.search(request).pools
            assert alone == [pool]
            used = {token for found in pool for token in found.tokens}
            assert not len(words) or used <= {*words.tolist(), engine.config.special.pad}


class MaskedEngine:
    """An engine whose steps know only the words that each sentence is allowed: the oracle.

    It asks for the logprobs of all words, takes out those that are not allowed, and shares the
    probability out among the others.
    """

    def __init__(self, engine: NativeEngine, allowed: list[IntArray]) -> None:
        self.engine, self.allowed = engine, allowed

    def encode(self, source: IntArray) -> tuple[Any, list[int]]:
        return self.engine.encode(source), list(range(len(source)))

    def step(self, state: tuple[Any, list[int]], tokens: IntArray, block: Any, k: int) -> TopK:
        inner, sentences = state
        top = self.engine.step(inner, tokens, block, self.engine.config.target_size)
        shape = (*top.ids.shape[:2], k)
        logprobs, ids = np.full(shape, -np.inf), np.zeros(shape, np.int64)
        for row, sentence in enumerate(sentences):
            words = self.allowed[sentence]
            for slot in range(shape[1]):
                kept = np.isin(top.ids[row, slot], words) if len(words) else slice(None)
                left, found = top.logprobs[row, slot][kept][:k], top.ids[row, slot][kept][:k]
                whole = np.log(np.exp(np.float64(top.logprobs[row, slot][kept])).sum())
                logprobs[row, slot, : len(left)], ids[row, slot, : len(found)] = left - whole, found
        return TopK(logprobs, ids)

    def select(self, state: tuple[Any, list[int]], rows: IntArray) -> tuple[Any, list[int]]:
        inner, sentences = state
        return self.engine.select(inner, rows), [sentences[row] for row in rows.ravel().tolist()]


class AmongWords:
    """The engine's own steps among the words that each sentence is allowed."""

    def __init__(self, engine: NativeEngine, allowed: list[IntArray]) -> None:
        self.allowed, self.encode_among = allowed, engine.encode_among
        self.step, self.select = engine.step, engine.select

    def encode(self, source: IntArray) -> Any:
        return self.encode_among(source, self.allowed)


@pytest.mark.parametrize("order", ["1x1", "2x1", "2x2", "4x1", "1x2"])
def test_allowed_words_give_what_the_readable_search_finds_among_them(
    order: str, make_model: MakeModel, random: np.random.Generator, tmp_path: Path
) -> None:
    """Random lists of each sentence, all sizes, over random cases; the end may be forbidden too.

    Some words are packed beforehand: those of one list, or a few of them, or none. Other lists may
    have all of these, or not.
    """
    layout = LAYOUTS[["1x1", "2x1", "2x2", "4x1", "1x2"].index(order) % len(LAYOUTS)]
    directory = export(make_model, order, tmp_path, **layout)
    engines = [NativeEngine.load(directory, name) for name in native.instruction_sets()]
    for case in range(60):
        engine = engines[case % len(engines)]
        source, options, limits = random_case(random)
        size = engine.config.target_size
        allowed = [
            np.sort(random.permutation(size)[: random.integers(options.beam + 1, size + 1)])
            for _ in source
        ]
        engine.share_words(np.sort(random.permutation(allowed[0])[: random.integers(size)]))
        oracle: Any = MaskedEngine(engine, allowed)
        arguments = (engine.order, engine.config.special, source, options, limits)
        expected = beam_search(oracle, *arguments)
        assert_same(search_batch(engine, *arguments, allowed), expected, 1e-4)
        stepped: Any = AmongWords(engine, allowed)
        assert_same(beam_search(stepped, *arguments), expected, 1e-4)


def test_forced_words_share_the_probability_of_those_allowed(
    make_model: MakeModel, random: np.random.Generator, tmp_path: Path
) -> None:
    engine = NativeEngine.load(export(make_model, "2x1", tmp_path))
    source = random_source(random, 3, 6, WORDS, padded=True)
    allowed = [np.sort(random.permutation(WORDS)[:size]) for size in (5, 9, 15)]
    targets = np.array([random.choice(words, 8) for words in allowed])
    fed, block = engine.order.shift(targets, 2), engine.order.whole(8)
    engine.share_words(allowed[0][:3])
    state = engine.encode_among(source, allowed)
    found = engine.force(state, fed, block, targets)
    oracle = MaskedEngine(engine, allowed)
    top = oracle.step(oracle.encode(source), fed, block, WORDS)
    expected = [
        [
            top.logprobs[row, slot][top.ids[row, slot] == target].max()
            for slot, target in enumerate(own)
        ]
        for row, own in enumerate(targets)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_allowed_words_are_checked(make_model: MakeModel, tmp_path: Path) -> None:
    engine = NativeEngine.load(export(make_model, "2x1", tmp_path))
    fixed = (np.array([[5, 3]]), engine.order, engine.config.special, 1, 0, np.array([4]))
    for words in ([[5, 4]], [[4, 4]], [[WORDS]], [[1], [2]]):
        with pytest.raises(UsageError, match="native engine: "):
            engine.search(SearchRequest(*fixed, [np.array(each) for each in words]))
        with pytest.raises(UsageError, match="native engine: "):
            engine.encode_among(fixed[0], [np.array(each) for each in words])
        if len(words) == 1:
            with pytest.raises(UsageError, match="native engine: "):
                engine.share_words(np.array(words[0]))
