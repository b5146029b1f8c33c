"""One suite for every engine: what it answers is what the whole network says in float64.

An engine is compared with `Transformer.forward` on the same weights. To be tested here, an engine
needs one line in `ENGINES`. Which of two almost equal words comes first is rounding, so the suite
compares logprobs: those returned with the best ones, and with those of the ids returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bothends.engines.export import write_graphs
from bothends.engines.native import instruction_sets
from bothends.engines.native.engine import NativeEngine, unsupported
from bothends.engines.onnx.engine import OnnxEngine
from bothends.engines.protocol import Engine, FloatArray, TopK
from bothends.engines.quantisation import quantise_matrix
from bothends.engines.registry import Precision
from bothends.engines.torch import TorchEngine
from bothends.errors import BothendsError
from bothends.model.config import Dropout
from bothends.model.directory import Description, write_description
from bothends.model.torch.transformer import Transformer
from bothends.order import GenerationOrder, IntArray
from conftest import ALL_ORDERS, MakeModel, order_tensors, random_source

WORDS = 23
LAYOUTS = [
    dict(norm="pre"),
    dict(activation="gelu"),
    dict(activation="silu", sinusoid="halves"),
    dict(share_embeddings=False, target_vocabulary_size=29),
    dict(tie_output=False, output_bias=True),
    dict(embedding_scale=False, encoder_layers=1, decoder_layers=3),
    dict(embedding_norm=True, learned_positions=40, norm_epsilon=1e-3),
    dict(sinusoid="tensor2tensor", position_offset=2, activation="gelu-tanh"),
    dict(sinusoid_precision="bfloat16"),
]


@dataclass(frozen=True)
class EngineCase:
    """An engine under test: how to make it from a model, and how exact its logprobs are."""

    name: str
    make: Callable[[Transformer, Path], Engine[Any]]
    tolerance: float


def make_torch(model: Transformer, directory: Path) -> TorchEngine:
    return TorchEngine(model)


def make_onnx(model: Transformer, directory: Path, precision: Precision = "float32") -> OnnxEngine:
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    write_graphs(directory, weights, model.config, model.order, precision)
    write_description(directory, Description(model=model.config, order=model.order))
    return OnnxEngine.load(directory)


def make_onnx_int8(model: Transformer, directory: Path) -> OnnxEngine:
    """Rounds the matrices of `model` itself, so that only rounded inputs are left to differ."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                rounded = quantise_matrix(parameter.numpy().astype(np.float32))
                parameter.copy_(torch.from_numpy(rounded.values * rounded.scales[:, None]))
    return make_onnx(model, directory, "int8")


def make_native(instruction_set: str, model: Transformer, directory: Path) -> NativeEngine:
    make_onnx_int8(model, directory)
    return NativeEngine.load(directory, instruction_set)


ENGINES = [
    EngineCase("torch-float64", make_torch, 1e-10),
    # Seven digits, of which four layers and sums over the vocabulary cost two.
    EngineCase("onnx-float32", make_onnx, 1e-4),
    # Inputs of products are rounded to 1/127 of the largest of their row: up to 0.03 over 30 seeds.
    EngineCase("onnx-int8", make_onnx_int8, 0.08),
    *(
        EngineCase(f"native-{name}", partial(make_native, name), 0.08)
        for name in instruction_sets()
    ),
]


@pytest.fixture(params=ENGINES, ids=lambda case: case.name)
def engine_case(request: pytest.FixtureRequest) -> EngineCase:
    case: EngineCase = request.param
    return case


@pytest.fixture
def make_engine(engine_case: EngineCase, tmp_path: Path) -> Callable[[Transformer], Engine[Any]]:
    """`make_engine(model)`: the engine under test with the weights of `model`."""
    return lambda model: engine_case.make(model, tmp_path)


MakeEngine = Callable[[Transformer], Engine[Any]]


def true_logprobs(model: Transformer, source: IntArray, tokens: IntArray) -> FloatArray:
    """Logprobs (S, T, V) of every word in every slot, from the whole network in float64."""
    block = order_tensors(model.order, tokens.shape[1])
    with torch.no_grad():
        logits = model(torch.from_numpy(source), torch.from_numpy(tokens), block)
    logprobs: FloatArray = logits.log_softmax(dim=-1).numpy()
    return logprobs


def step(
    engine: Engine[Any], state: Any, order: GenerationOrder, block: int, tokens: IntArray, k: int
) -> TopK:
    return engine.step(state, tokens, order.block(block), k)


def assert_best(found: TopK, expected: FloatArray, tolerance: float) -> None:
    """`found` (R, Z, k) are the best words among all logprobs `expected` (R, Z, V)."""
    k = found.logprobs.shape[-1]
    best = -np.sort(-expected, axis=-1)[..., :k]
    of_ids = np.take_along_axis(expected, found.ids, axis=-1)
    np.testing.assert_allclose(found.logprobs, best, rtol=0, atol=tolerance)
    np.testing.assert_allclose(found.logprobs, of_ids, rtol=0, atol=tolerance)
    assert (np.diff(np.sort(found.ids, axis=-1), axis=-1) > 0).all(), "a word came twice"
    assert (np.diff(found.logprobs, axis=-1) <= 0).all(), "best first"


def check_search(
    model: Transformer,
    engine: Engine[Any],
    source: IntArray,
    random: np.random.Generator,
    tolerance: float,
) -> None:
    """Walk as a search does, rows forking and dying and sentences leaving, and check each step."""
    order = model.order
    state = engine.encode(source)
    sentences = np.arange(len(source))  # of each row
    history = np.zeros((len(source), 0), dtype=np.int64)
    lines = len(source)
    for block in range(4):
        fed = random.integers(0, WORDS, (len(history), order.block_size))
        history = np.concatenate([history, fed], axis=1)
        found = step(engine, state, order, block, fed, k=3)
        expected = true_logprobs(model, source[sentences], history)
        assert_best(found, expected[:, -order.block_size :], tolerance)
        each = len(history) // lines
        staying = np.sort(random.permutation(lines)[: max(1, lines - block)])
        rows = staying[:, None] * each + random.integers(
            0, each, (len(staying), (3, 3, 2)[block % 3])
        )
        state = engine.select(state, rows)
        lines, sentences, history = len(rows), sentences[rows.ravel()], history[rows.ravel()]


@pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
def test_steps_after_any_selection(
    order: GenerationOrder,
    engine_case: EngineCase,
    make_engine: MakeEngine,
    make_model: MakeModel,
    random: np.random.Generator,
) -> None:
    model = make_model(order)
    engine = make_engine(model)
    for sentences, padded in ((1, False), (1, True), (5, True)):
        source = random_source(random, sentences, 6, WORDS, padded=padded)
        check_search(model, engine, source, random, engine_case.tolerance)


@pytest.mark.parametrize("changes", LAYOUTS, ids=lambda changes: "-".join(map(str, changes)))
def test_steps_in_every_layout(
    changes: dict[str, Any],
    engine_case: EngineCase,
    make_engine: MakeEngine,
    make_model: MakeModel,
    random: np.random.Generator,
) -> None:
    model = make_model("4x1", **changes)
    if engine_case.name.startswith("native") and unsupported(model.config):
        with pytest.raises(BothendsError, match=r"cannot run a model with .*: use onnx"):
            make_engine(model)
        return
    source = random_source(random, 3, 6, WORDS, padded=True)
    check_search(model, make_engine(model), source, random, engine_case.tolerance)


def test_sentences_may_change_places(
    engine_case: EngineCase,
    make_engine: MakeEngine,
    make_model: MakeModel,
    random: np.random.Generator,
) -> None:
    model = make_model("2x1")
    engine = make_engine(model)
    source = random_source(random, 4, 6, WORDS, padded=True)
    state = engine.encode(source)
    first = random.integers(0, WORDS, (4, 2))
    step(engine, state, model.order, 0, first, k=2)
    rows = np.array([[3, 3], [0, 0], [2, 2]])
    state = engine.select(state, rows)
    second = random.integers(0, WORDS, (6, 2))
    found = step(engine, state, model.order, 1, second, k=2)
    history = np.concatenate([first[rows.ravel()], second], axis=1)
    expected = true_logprobs(model, source[rows.ravel()], history)[:, 2:]
    assert_best(found, expected, engine_case.tolerance)


def test_rows_may_fork_before_the_first_step(
    engine_case: EngineCase,
    make_engine: MakeEngine,
    make_model: MakeModel,
    random: np.random.Generator,
) -> None:
    model = make_model("2x1")
    engine = make_engine(model)
    source = random_source(random, 3, 6, WORDS, padded=True)
    rows = np.array([[0, 0], [2, 2]])
    state = engine.select(engine.encode(source), rows)
    fed = random.integers(0, WORDS, (4, 2))
    found = step(engine, state, model.order, 0, fed, k=2)
    assert_best(found, true_logprobs(model, source[rows.ravel()], fed), engine_case.tolerance)


@pytest.mark.parametrize("k", [1, 2, WORDS - 1, WORDS, WORDS + 1, 1000])
def test_any_number_of_words_may_be_asked_for(
    k: int,
    engine_case: EngineCase,
    make_engine: MakeEngine,
    make_model: MakeModel,
    random: np.random.Generator,
) -> None:
    model = make_model("2x2")
    engine = make_engine(model)
    source = random_source(random, 2, 4, WORDS, padded=True)
    fed = np.full((2, 4), 2)
    found = step(engine, engine.encode(source), model.order, 0, fed, k)
    assert found.logprobs.shape == found.ids.shape == (2, 4, min(k, WORDS))
    assert np.issubdtype(found.ids.dtype, np.integer)
    assert_best(found, true_logprobs(model, source, fed), engine_case.tolerance)


@pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
def test_forced_logprobs(
    order: GenerationOrder,
    engine_case: EngineCase,
    make_engine: MakeEngine,
    make_model: MakeModel,
    random: np.random.Generator,
) -> None:
    model = make_model(order)
    source = random_source(random, 4, 6, WORDS, padded=True)
    slots = order.padded_length(9)
    targets = random.integers(0, WORDS, (4, slots))
    fed = order.shift(targets, 2)
    engine = make_engine(model)
    found = engine.force(engine.encode(source), fed, order.whole(slots), targets)
    every = true_logprobs(model, source, fed)
    expected = np.take_along_axis(every, targets[:, :, None], axis=2)[:, :, 0]
    assert found.shape == (4, slots)
    np.testing.assert_allclose(found, expected, rtol=0, atol=engine_case.tolerance)


@pytest.mark.parametrize("order", ["1x1", "2x1", "2x2", "4x1", "2x1+independent-directions"])
def test_a_step_can_force_as_well(
    order: str,
    engine_case: EngineCase,
    make_engine: MakeEngine,
    make_model: MakeModel,
    random: np.random.Generator,
) -> None:
    """One sentence is encoded and then read by several lines of rows, as a fill does."""
    model = make_model(order)
    engine, size = make_engine(model), model.order.block_size
    source = random_source(random, 2, 6, WORDS, padded=True)
    state = engine.select(engine.encode(source), np.array([[0], [0], [1]]))
    sentences = np.array([0, 0, 1])
    history = np.zeros((3, 0), np.int64)
    for number in range(3):
        fed = random.integers(4, WORDS, (len(history), size))
        targets = random.integers(0, WORDS, (len(history), size))
        history = np.concatenate([history, fed], axis=1)
        best, forced = engine.step_and_force(state, fed, model.order.block(number), 4, targets)
        rows = np.repeat(source[sentences], len(history) // 3, axis=0)
        expected = true_logprobs(model, rows, history)[:, -size:]
        assert_best(best, expected, engine_case.tolerance)
        of_targets = np.take_along_axis(expected, targets[:, :, None], axis=2)[:, :, 0]
        np.testing.assert_allclose(forced, of_targets, rtol=0, atol=engine_case.tolerance)
        each = len(history) // 3
        chosen = np.arange(3)[:, None] * each + random.integers(0, each, (3, 2))
        state, history = engine.select(state, chosen), history[chosen.ravel()]


def test_more_slots_than_are_held_at_once_can_be_forced(
    engine_case: EngineCase,
    make_engine: MakeEngine,
    make_model: MakeModel,
    random: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("torch", "onnx.engine", "native.engine"):
        monkeypatch.setattr(f"bothends.engines.{module}.FORCED_SLOTS", 5)
    test_forced_logprobs(GenerationOrder.parse("2x1"), engine_case, make_engine, make_model, random)


def test_a_sentence_does_not_notice_its_batch(
    engine_case: EngineCase,
    make_engine: MakeEngine,
    make_model: MakeModel,
    random: np.random.Generator,
) -> None:
    """The empty source (its end symbol alone) and a source of one token are among them."""
    model = make_model("2x1")
    engine = make_engine(model)
    source = random_source(random, 4, 6, WORDS, padded=True)
    source[0], source[1] = [3, 0, 0, 0, 0, 0, 0, 0], [7, 3, 0, 0, 0, 0, 0, 0]
    fed = np.full((4, 2), 2)
    together = step(engine, engine.encode(source), model.order, 0, fed, k=WORDS)
    for i, row in enumerate(source):
        state = engine.encode(row[row != 0][None])
        alone = step(engine, state, model.order, 0, fed[:1], k=WORDS)
        np.testing.assert_allclose(
            together.logprobs[i], alone.logprobs[0], rtol=0, atol=engine_case.tolerance
        )


def test_the_torch_engine_leaves_dropout_out(make_model: MakeModel) -> None:
    """Also when training has gone on since the engine was made."""
    model = make_model("2x1", dropout=Dropout(residual=0.5, attention=0.5, embedding=0.5))
    engine = TorchEngine(model)
    model.train()
    source, fed = np.array([[5, 6, 3]]), np.array([[2, 2]])
    found = step(engine, engine.encode(source), model.order, 0, fed, k=4)
    assert_best(found, true_logprobs(model.eval(), source, fed), 1e-10)
