"""The native engine as a user meets it: what it loads, what it refuses, threads, memory."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.engines.native import describe, extension
from bothends.engines.native.arrays import ArrayNames, array_names
from bothends.engines.native.engine import NativeEngine, _shape
from bothends.engines.registry import default_engine, load_engine
from bothends.errors import BothendsError, UsageError
from bothends.model.directory import CONFIG, read_description
from bothends.model.graph_files import DECODER, ENCODER
from bothends.model.sinusoid import position_encodings
from bothends.model.spec import Network
from bothends.search.batch import search_batch
from bothends.search.options import SearchOptions
from bothends.storage.digests import DIGESTS
from bothends.translator import Translator
from tiny_model import sentences, tiny_model

native: Any = extension()
if native is None:
    pytest.skip("the native engine is not built", allow_module_level=True)


def copy_of(model: Path, to: Path) -> Path:
    """A model to damage, without digests, which would tell at once."""
    copy = Path(shutil.copytree(model, to / "model"))
    (copy / DIGESTS).unlink()
    return copy


def test_int8_models_run_natively_by_default() -> None:
    assert default_engine(tiny_model("2x1", "int8")) == "native"
    assert default_engine(tiny_model("2x1", "float32")) == "onnx"
    assert default_engine(tiny_model("2x1", "int8"), "float32") == "onnx"
    assert Translator.load(tiny_model("2x1", "int8")).engine_name == "native"


def test_a_missing_or_damaged_file_is_left_to_onnx(tmp_path: Path) -> None:
    """Which has the error for it."""
    model = copy_of(tiny_model("2x1", "int8"), tmp_path)
    (model / DECODER).write_bytes(b"\xff" * 100)
    assert default_engine(model) == "onnx"
    (model / DECODER).unlink()
    assert default_engine(model) == "onnx"


@pytest.mark.parametrize("order", ["1x1", "2x1", "4x1"])
def test_translations_are_those_of_onnx_runtime(order: str) -> None:
    lines = sentences(60, seed=5)
    model = tiny_model(order, "int8")
    ours = Translator.load(model, engine="native").translate(lines, beam=3)
    theirs = Translator.load(model, engine="onnx").translate(lines, beam=3)
    same = sum(one.text == other.text for one, other in zip(ours, theirs, strict=True))
    # A near tie may be decided by the last digit of a float.
    assert same >= 57
    for one, other in zip(ours, theirs, strict=True):
        assert one.score == pytest.approx(other.score, abs=0.15)


def test_scores_are_those_of_onnx_runtime() -> None:
    lines, targets = sentences(40, seed=5), sentences(40, seed=6)
    model = tiny_model("2x1", "int8")
    ours = Translator.load(model, engine="native").score(lines, targets)
    theirs = Translator.load(model, engine="onnx").score(lines, targets)
    for one, other in zip(ours, theirs, strict=True):
        assert one.logprob == pytest.approx(other.logprob, rel=0.02, abs=0.3)


def test_threads_and_batches_do_not_change_a_bit() -> None:
    model, lines = tiny_model("2x1", "int8"), sentences(200, seed=7)
    alone = Translator.load(model, engine="native", threads=1)
    expected = [alone.translate([line], beam=2)[0] for line in lines]
    for threads, batch_tokens in ((1, 512), (8, 64)):
        translator = Translator.load(model, engine="native", threads=threads)
        found = translator.translate(lines, beam=2, batch_tokens=batch_tokens)
        for one, other in zip(found, expected, strict=True):
            assert (one.tokens, one.logprob) == (other.tokens, other.logprob)


def test_eight_threads_share_one_engine() -> None:
    engine = NativeEngine.load(tiny_model("2x1", "int8"))
    random = np.random.default_rng(0)
    sources = [random.integers(4, 100, (n % 5 + 1, n % 9 + 2)) for n in range(64)]
    options = SearchOptions(beam=3, n_best=3, max_length=20)

    def search(source: np.ndarray) -> Any:
        return search_batch(engine, engine.order, engine.config.special, source, options)

    expected = list(map(search, sources))
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert list(pool.map(search, sources)) == expected


@pytest.mark.parametrize(
    "searches", [1000, pytest.param(25_000, marks=pytest.mark.slow)], ids="{:,}".format
)
def test_memory_stays_flat(searches: int) -> None:
    """Buffers are used again, and nothing of a search of four sentences is left behind."""
    engine = NativeEngine.load(tiny_model("2x1", "int8"))
    random = np.random.default_rng(0)
    options = SearchOptions(beam=4, max_length=16)

    def work(count: int) -> int:
        for _ in range(count):
            source = random.integers(4, 100, (4, 8))
            search_batch(engine, engine.order, engine.config.special, source, options)
            engine.force(
                engine.encode(source),
                source,
                engine.order.whole(8),
                source,
            )
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kB

    before = work(100)
    assert work(searches) - before < 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is told by /proc")
def test_memory_of_an_unusual_search_is_given_back() -> None:
    engine = NativeEngine.load(tiny_model("2x1", "int8"))

    def megabytes() -> float:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6

    before = megabytes()
    state = engine.encode(np.full((2000, 80), 5))
    during = megabytes()
    assert during > before + 40  # else this says nothing
    del state
    assert megabytes() < before + (during - before) / 2


@pytest.mark.parametrize("isa", native.instruction_sets())
def test_the_environment_names_an_instruction_set(
    isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOTHENDS_ISA", isa)
    kernels = NativeEngine.load(tiny_model("2x1", "int8")).kernels
    assert isa in kernels


def test_an_unknown_instruction_set_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTHENDS_ISA", "avx3")
    with pytest.raises(UsageError, match="BOTHENDS_ISA: unknown instruction set 'avx3'; did you"):
        NativeEngine.load(tiny_model("2x1", "int8"))


def test_an_instruction_set_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    if "amx" in native.instruction_sets():
        pytest.skip("this processor has them all")
    monkeypatch.setenv("BOTHENDS_ISA", "amx")
    with pytest.raises(BothendsError, match="this processor has no amx, only portable"):
        NativeEngine.load(tiny_model("2x1", "int8"))


def test_float32_is_refused() -> None:
    with pytest.raises(BothendsError, match="exported in float32, and the native engine runs int8"):
        load_engine("native", tiny_model("2x1", "float32"))
    with pytest.raises(UsageError, match="the native engine computes in int8"):
        load_engine("native", tiny_model("2x1", "int8"), "float32")


def test_a_changed_file_is_told_by_its_digest(tmp_path: Path) -> None:
    model = Path(shutil.copytree(tiny_model("2x1", "int8"), tmp_path / "model"))
    content = bytearray((model / ENCODER).read_bytes())
    content[len(content) // 2] ^= 1
    (model / ENCODER).write_bytes(content)
    with pytest.raises(BothendsError, match="digests"):
        NativeEngine.load(model)


def test_a_path_that_is_not_utf8(tmp_path: Path) -> None:
    model = tmp_path / os.fsdecode(b"mod\xe9le")
    try:
        shutil.copytree(tiny_model("2x1", "int8"), model)
    except OSError:
        pytest.skip("this file system has no such names")
    translator = Translator.load(model, threads=1)
    assert translator.engine_name == "native"
    assert translator.translate("ba bo").text
    with pytest.raises(
        BothendsError, match=r"decoder.onnx: ONNX Runtime cannot .* not UTF-8; rename"
    ):
        load_engine("onnx", model)
    # The rest of a damaged file is found when the network is loaded.
    (model / DIGESTS).unlink()
    content = (model / ENCODER).read_bytes()
    (model / ENCODER).write_bytes(content.replace(b"norm.", b"nrom."))
    with pytest.raises(BothendsError, match=r"mod\udce9le: encoder.onnx: .*; `bothends export "):
        load_engine("native", model)


def test_two_exports_do_not_mix(tmp_path: Path) -> None:
    model = copy_of(tiny_model("2x1", "int8"), tmp_path)
    shutil.copy(tiny_model("1x1", "int8") / ENCODER, model / ENCODER)
    with pytest.raises(BothendsError, match=r"another model than config\.json describes"):
        NativeEngine.load(model)


def test_tokens_outside_the_vocabulary_are_refused() -> None:
    engine = NativeEngine.load(tiny_model("2x1", "int8"))
    for token in (-1, engine.config.vocabulary_size, 2**40):
        with pytest.raises(UsageError, match="outside the vocabulary"):
            engine.encode(np.array([[token, 3]]))
    state = engine.encode(np.array([[5, 3]]))
    with pytest.raises(UsageError, match="outside the vocabulary"):
        engine.step(state, np.array([[0, -7]]), engine.order.block(0), 1)
    with pytest.raises(UsageError, match="tokens must be an array"):
        engine.step(state, np.array([[0, 0], [0, 0]]), engine.order.block(0), 1)
    with pytest.raises(UsageError, match="the mask must have"):
        engine.step(state, np.array([[0, 0]]), engine.order.block(1), 1)
    with pytest.raises(UsageError, match="no such row"):
        engine.select(state, np.array([[1]]))


def test_targets_are_not_forced_for_rows_beyond_the_sentences() -> None:
    engine = NativeEngine.load(tiny_model("2x1", "int8"))
    state = engine.select(engine.encode(np.array([[5, 3]])), np.array([[0, 0, 0]]))
    tokens = np.zeros((3, 2), np.int64)
    with pytest.raises(UsageError, match="forced before rows are selected"):
        engine.force(state, tokens, engine.order.block(0), tokens + 5)


def test_version_says_whether_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe().startswith("native engine: built, instruction sets portable")
    monkeypatch.setattr("bothends.engines.native.extension", lambda: None)
    assert "not built" in describe()
    monkeypatch.setattr("bothends.engines.native.engine.extension", lambda: None)
    with pytest.raises(BothendsError, match="the native engine is not built"):
        NativeEngine.load(tiny_model("2x1", "int8"))


# --- damaged files ---

HEALTHY = {name: (tiny_model("2x1", "int8") / name).read_bytes() for name in (ENCODER, DECODER)}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of(tiny_model("2x1", "int8"), tmp_path_factory.mktemp("damaged"))


def load_and_translate(model: Path) -> None:
    """Either it works or it is an error of one line: never a crash, never another exception."""
    complaint = ""
    try:
        engine = NativeEngine.load(model)
        options = SearchOptions(beam=2, max_length=6)
        source = np.array([[5, 6, 3], [7, 3, 0]])
        search_batch(engine, engine.order, engine.config.special, source, options)
    except BothendsError as error:
        complaint = str(error)
    assert "\n" not in complaint


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_weight_files_never_crash(damaged: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([ENCODER, DECODER]))
    content = bytearray(HEALTHY[name])
    kind = data.draw(st.sampled_from(["cut", "bytes", "splice"]))
    if kind == "cut":
        content = content[: data.draw(st.integers(0, len(content)))]
    elif kind == "bytes":
        for _ in range(data.draw(st.integers(1, 20))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    else:
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 50))] = data.draw(st.binary(max_size=50))
    for each, healthy in HEALTHY.items():
        (damaged / each).write_bytes(bytes(content) if each == name else healthy)
    load_and_translate(damaged)


@settings(max_examples=100)
@given(content=st.binary(max_size=200))
def test_any_bytes_are_an_error(damaged: Path, content: bytes) -> None:
    (damaged / ENCODER).write_bytes(content)
    (damaged / DECODER).write_bytes(HEALTHY[DECODER])
    with pytest.raises(BothendsError, match=r"encoder\.onnx"):
        NativeEngine.load(damaged)


def arrays_of(model: Path) -> ArrayNames:
    description = read_description(model)
    return array_names(Network.of(description.model, description.order))


def test_the_arrays_it_reads_are_all_that_an_export_has() -> None:
    """Apart from constants of the graphs, and what a file takes from the one beside it."""
    onnx = pytest.importorskip("onnx")
    model = tiny_model("2x1", "int8")
    names = arrays_of(model)
    for path, read in ((model / ENCODER, names.encoder), (model / DECODER, names.decoder)):
        graph = onnx.load(path, load_external_data=False).graph
        stored = {each.name for each in graph.initializer}
        assert {name for name in stored if "." in name} == set(read)


@pytest.mark.parametrize("change", [lambda names: names[:-1], lambda names: [*names, "more"]])
def test_other_arrays_than_the_network_reads_are_an_error(change: Any) -> None:
    model = tiny_model("2x1", "int8")
    shape = _shape(read_description(model))
    names = arrays_of(model)
    files = str(model / ENCODER), str(model / DECODER)
    for wrong in (
        names._replace(encoder=change(names.encoder)),
        names._replace(decoder=change(names.decoder)),
    ):
        with pytest.raises(RuntimeError, match="array"):
            native.Engine(*files, shape, wrong, "")


@settings(max_examples=60)
@given(data=st.data())
def test_absurd_shapes_are_an_error(data: st.DataObject) -> None:
    """The compiled code checks what it is told against what is in the files."""
    model = tiny_model("2x1", "int8")
    shape = dict(
        source_words=400,
        target_words=400,
        encoder_layers=1,
        decoder_layers=1,
        width=64,
        heads=4,
        feed_forward=256,
        direction_embeddings=0,
        activation="relu",
        pre_norm=True,
        embedding_scale=True,
        output_bias=False,
        halves=False,
        last_pair=32,
        sinusoid_precision="exact",
        position_offset=0,
    )
    # Any offset of the positions makes a network.
    offset = "position_offset"
    sizes = [name for name, value in shape.items() if type(value) is int and name != offset]
    name = data.draw(st.sampled_from(sizes))
    absurd = [-1, 3, 2**16, 2**31 - 1, 2**31, 2**63, -(2**63)]
    absurd += [0] * (name != "direction_embeddings")  # which has none
    shape[name] = data.draw(st.sampled_from(absurd))
    with pytest.raises((ValueError, RuntimeError, OverflowError, MemoryError)):
        native.Engine(str(model / ENCODER), str(model / DECODER), shape, arrays_of(model), "")


@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(sinusoid="halves", sinusoid_precision="float16"),
        dict(sinusoid_precision="bfloat16"),
        dict(sinusoid="tensor2tensor", position_offset=2, sinusoid_precision="float16"),
    ],
)
def test_positions_are_encoded_as_everywhere(changes: dict[str, Any]) -> None:
    """In the table and beyond it. Rounded inputs would hide it in what the engine answers."""
    model = tiny_model("2x1", "int8")
    description = read_description(model)
    config = replace(description.model, **changes)
    shape = _shape(replace(description, model=config))
    files = str(model / ENCODER), str(model / DECODER)
    engine = native.Engine(*files, shape, arrays_of(model), "")
    positions = np.array([*range(-400, 401), 100_000])  # 355 is nearly a multiple of pi
    found = np.stack([engine.encoding(position) for position in positions.tolist()])
    expected = position_encodings(positions, config).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0 if changes else 1e-7)


def test_the_configuration_is_checked_against_the_files(tmp_path: Path) -> None:
    model = copy_of(tiny_model("2x1", "int8"), tmp_path)
    text = (model / CONFIG).read_text()
    (model / CONFIG).write_text(text.replace('"decoder_layers": 1', '"decoder_layers": 2'))
    with pytest.raises(BothendsError, match="exported from another model"):
        NativeEngine.load(model)


def test_a_search_imports_nothing_heavy() -> None:
    """They take longer to import than a small model takes to load."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from bothends.translator import Translator\n"
        f"model = Translator.load(Path({str(tiny_model('2x1', 'int8'))!r}))\n"
        "assert model.translate(['ba bo'])[0].finished is not None\n"
        "assert model.engine_name == 'native'\n"
        "heavy = 'onnxruntime', 'torch', 'onnx', 'pydantic', 'typing_extensions'\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert run.stdout == "[]\n"
