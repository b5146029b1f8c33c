"""The ONNX engine, beyond what every engine must do: int8, batches, threads, files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import onnx
import pytest

from bothends.engines.export import write_graphs
from bothends.engines.onnx.binding import Binding
from bothends.engines.onnx.engine import OnnxEngine
from bothends.engines.onnx.metadata import check_metadata
from bothends.engines.protocol import TopK, pad_sources
from bothends.engines.registry import Precision
from bothends.errors import BothendsError
from bothends.evaluation.bench.synthetic import random_weights
from bothends.model.config import ModelConfig
from bothends.model.directory import Description, read_description, write_description
from bothends.model.graph_files import DECODER, ENCODER
from bothends.order import GenerationOrder, IntArray
from bothends.search.beam import Hypothesis, beam_search
from bothends.search.options import SearchOptions
from bothends.search.scoring import force_scores
from bothends.storage.digests import DIGESTS
from bothends.text.vocabulary import SpecialTokens
from conftest import random_source, tiny_config
from tiny_model import sentences, tiny_model

PRECISIONS: list[Precision] = ["float32", "int8"]
SPECIAL = SpecialTokens()


def small_config() -> ModelConfig:
    """Wide enough that every kernel runs its vector loop and the rest after it."""
    return ModelConfig(
        vocabulary_size=203,
        encoder_layers=2,
        decoder_layers=2,
        width=48,
        heads=4,
        feed_forward=100,
    )


def make_engine(directory: Path, order: str, precision: Precision, seed: int = 0) -> OnnxEngine:
    config, parsed = small_config(), GenerationOrder.parse(order)
    weights = random_weights(config, parsed, seed)
    write_graphs(directory, weights, config, parsed, precision)
    write_description(directory, Description(model=config, order=parsed))
    return OnnxEngine.load(directory)


def first_steps(engine: OnnxEngine, source: IntArray, fed: IntArray, k: int) -> list[TopK]:
    """The answers to a few blocks (blocks, S, Z) that are fed one after the other."""
    state = engine.encode(source)
    return [
        engine.step(state, tokens, engine.order.block(block), k) for block, tokens in enumerate(fed)
    ]


@pytest.mark.parametrize("order", ["1x1", "2x1", "2x2"])
def test_int8_is_the_same_alone_and_in_a_batch(
    order: str, tmp_path: Path, random: np.random.Generator
) -> None:
    """To the last bit: products are integers, and everything else works row by row.

    Sentences are equally long. How many words are padding changes the order of the softmax's sum,
    and with it the last bit of a float: see the test of whole translations.
    """
    engine = make_engine(tmp_path, order, "int8")
    source = random_source(random, 32, 7, 203, padded=False)
    fed = random.integers(4, 203, (4, 32, engine.order.block_size))
    together = first_steps(engine, source, fed, k=5)
    for i in (0, 13, 31):
        alone = first_steps(engine, source[i : i + 1], fed[:, i : i + 1], k=5)
        for one, all_of_them in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one.ids[0], all_of_them.ids[i])
            np.testing.assert_array_equal(one.logprobs[0], all_of_them.logprobs[i])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_does_not_depend_on_the_batch(precision: Precision, beam: int) -> None:
    """Of a model that has learned something, with sentences of many lengths in a batch of 32."""
    directory = tiny_model("2x1", precision)
    engine = OnnxEngine.load(directory)
    sources = encode(directory, sentences(32, seed=7))
    together = translate(engine, pad_sources(sources, SPECIAL.pad), beam)
    for source, expected in zip(sources, together, strict=True):
        (alone,) = translate(engine, source[None], beam)
        assert alone.tokens == expected.tokens
        # A value between two integers may be rounded to either if its last bit differs, and one
        # of 127 steps in one of 64 inputs is a change of this order.
        assert alone.logprob == pytest.approx(
            expected.logprob, abs=1e-4 if precision == "float32" else 2e-2
        )


@pytest.mark.parametrize("order", ["1x1", "2x1", "4x1"])
def test_int8_stays_near_float32(order: str, tmp_path: Path, random: np.random.Generator) -> None:
    """On random weights: about 1 % of noise in every product, through four layers."""
    exact, rounded = (
        make_engine(tmp_path / precision, order, precision) for precision in PRECISIONS
    )
    source = random_source(random, 8, 7, 203, padded=True)
    targets = [random.integers(4, 203, length).tolist() for length in random.integers(1, 12, 8)]
    scores = [
        force_scores(engine, engine.order, SPECIAL, source, targets) for engine in (exact, rounded)
    ]
    logprobs = np.array([[each.logprob for each in some] for some in scores])
    assert np.abs(logprobs[0] - logprobs[1]).max() < 0.05 * np.abs(logprobs[0]).min()
    assert (logprobs[0] != logprobs[1]).any(), "int8 computes in float32"


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("order", ["1x1", "2x1"])
def test_the_logprob_found_is_the_forced_one(order: str, precision: Precision) -> None:
    """Stepping with a beam and reading the whole target are two paths through one graph."""
    directory = tiny_model(order, precision)
    engine = OnnxEngine.load(directory)
    source = pad_sources(encode(directory, sentences(8, seed=3)), SPECIAL.pad)
    found = translate(engine, source, beam=3)
    forced = force_scores(
        engine, engine.order, SPECIAL, source, [hypothesis.tokens for hypothesis in found]
    )
    for hypothesis, score in zip(found, forced, strict=True):
        if hypothesis.finished:
            # The sums of attention have other lengths, and see above for int8.
            assert score.logprob == pytest.approx(
                hypothesis.logprob, abs=1e-4 if precision == "float32" else 2e-2
            )


def test_long_outputs_outgrow_the_window_and_the_cache(
    tmp_path: Path, random: np.random.Generator
) -> None:
    """Two hundred blocks, with selection: the past moves to larger memory several times."""
    engine = make_engine(tmp_path, "2x1", "float32")
    order = engine.order
    source = random_source(random, 2, 5, 203, padded=True)
    state = engine.encode(source)
    history = np.zeros((2, 0), np.int64)
    rows = np.array([[0, 0, 0], [1, 1, 1]])
    for block in range(200):
        fed = random.integers(4, 203, (len(history), 2))
        history = np.concatenate([history, fed], axis=1)
        answer = engine.step(state, fed, order.block(block), 1)
        if block < 199:
            state = engine.select(state, rows)
            history = history[rows.ravel()]
            rows = np.array([[0, 1, 2], [3, 4, 5]])
            rows = np.take_along_axis(rows, random.integers(0, 3, (2, 3)), axis=1)
    forced = engine.force(
        engine.encode(np.repeat(source, 3, axis=0)),
        history,
        order.whole(400),
        np.concatenate([history[:, :-2], answer.ids[:, :, 0]], axis=1),
    )
    np.testing.assert_allclose(answer.logprobs[:, :, 0], forced[:, -2:], rtol=0, atol=1e-4)


def test_threads_share_an_engine(tmp_path: Path, random: np.random.Generator) -> None:
    engine = make_engine(tmp_path, "2x1", "int8")
    sources = [random_source(random, 3, 6, 203, padded=True) for _ in range(8)]
    options = SearchOptions(beam=3, max_length=20)

    def search(source: IntArray) -> list[list[Hypothesis]]:
        return beam_search(engine, engine.order, SPECIAL, source, options)

    one_by_one = [search(source) for source in sources]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(search, sources)) == one_by_one


def test_an_embedding_that_is_the_output_layer_is_stored_once(tmp_path: Path) -> None:
    make_engine(tmp_path, "2x1", "int8")
    decoder = onnx.load(tmp_path / DECODER)
    large = [weight.name for weight in decoder.graph.initializer if 203 in weight.dims[:1]]
    assert sorted(large) == ["source_embedding.weight", "source_embedding.weight.scales"]


def test_loading_and_translating_needs_neither_pytorch_nor_onnx() -> None:
    directory = tiny_model("2x1", "int8")
    program = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from bothends.engines.onnx.engine import OnnxEngine\n"
        f"engine = OnnxEngine.load(Path({str(directory)!r}))\n"
        "engine.encode(np.array([[5, 6, 3]]))\n"
        "print([name for name in ('torch', 'onnx', 'safetensors') if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def damage(directory: Path, kind: str) -> None:
    other = tiny_model("2x1", "float32")
    match kind:
        case "missing":
            (directory / DECODER).unlink()
        case "cut":
            content = (directory / DECODER).read_bytes()
            (directory / DECODER).write_bytes(content[: len(content) // 2])
        case "empty":
            (directory / ENCODER).write_bytes(b"")
        case "version":
            model = onnx.load(directory / ENCODER)
            next(p for p in model.metadata_props if p.key == "graph_version").value = "99"
            onnx.save(model, directory / ENCODER)
        case "order":
            described = read_description(directory)
            changed = replace(described, order=GenerationOrder.parse("1x2"))
            write_description(directory, changed)
        case "mixture":
            weights = random_weights(read_description(directory).model, GenerationOrder(2), 5)
            description = read_description(other)
            write_graphs(directory, weights, description.model, description.order, "int8")
            shutil.copyfile(other / DECODER, directory / DECODER)


@pytest.mark.parametrize("spelled", ["1e-6", "1e-06", "0.000001"])
def test_a_graph_may_spell_its_settings_in_another_way(spelled: str) -> None:
    """Graphs of earlier versions do."""
    description = Description(model=tiny_config(norm_epsilon=1e-6))
    text = json.dumps(description.model.dump_for_graphs()).replace("1e-06", spelled)
    found = {"graph_version": "1", "order": "1x1", "model": text}
    check_metadata(Path("encoder.onnx"), found, description)
    for other in (text.replace(spelled, "1e-7"), text[1:], ""):
        with pytest.raises(BothendsError, match="exported from another model"):
            check_metadata(Path("encoder.onnx"), {**found, "model": other}, description)


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("missing", "decoder.onnx is missing"),
        ("cut", "decoder.onnx: damaged"),
        ("empty", "encoder.onnx: damaged"),
        ("version", "encoder.onnx: graph version 99"),
        ("order", "exported from another model"),
        ("mixture", "exported from different weights"),
    ],
)
def test_a_directory_that_cannot_be_loaded(kind: str, complaint: str, tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(tiny_model("2x1", "float32"), directory)
    (directory / DIGESTS).unlink()  # as of an older bothends
    damage(directory, kind)
    with pytest.raises(BothendsError, match=complaint) as caught:
        OnnxEngine.load(directory)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (
            "Error in execution: Failed to allocate memory for requested buffer of size 9",
            MemoryError,
        ),
        ("Error in execution: indices element out of data bounds", RuntimeError),
    ],
)
def test_a_lack_of_memory_is_told_apart(message: str, error: type[Exception]) -> None:
    session = Mock()
    session.run_with_iobinding.side_effect = RuntimeError(message)
    with pytest.raises(error, match=message):
        Binding(session).run()


def test_a_graph_that_memory_does_not_suffice_for_is_not_called_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failure = RuntimeError("Exception during initialization: std::bad_alloc")
    monkeypatch.setattr("onnxruntime.InferenceSession", Mock(side_effect=failure))
    with pytest.raises(MemoryError, match=r"decoder\.onnx cannot be loaded"):
        OnnxEngine.load(tiny_model("2x1", "float32"))


def encode(directory: Path, lines: list[str]) -> list[IntArray]:
    from bothends.text.vocabulary import Vocabularies

    vocabulary = Vocabularies.load(directory).source
    return [np.array([*pieces, SPECIAL.end]) for pieces in vocabulary.encode(lines)]


def translate(engine: OnnxEngine, source: IntArray, beam: int) -> list[Hypothesis]:
    options: Any = SearchOptions(beam=beam, max_length=40)
    return [best[0] for best in beam_search(engine, engine.order, SPECIAL, source, options)]
