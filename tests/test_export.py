"""`bothends export`: what it writes, what it says of int8, and what it complains about."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from safetensors.numpy import load_file, save_file

from bothends.cli import run
from bothends.engines.export import export_model, write_graphs
from bothends.engines.onnx.engine import OnnxEngine
from bothends.engines.registry import Precision
from bothends.evaluation.bench.synthetic import random_weights
from bothends.evaluation.precision import compare
from bothends.model.directory import (
    CONFIG,
    WEIGHTS,
    read_description,
    record_model,
    write_description,
)
from bothends.model.graph_files import DECODER, ENCODER
from bothends.model.shortlist import SHORTLIST
from bothends.model.spec import Network
from bothends.model.torch.transformer import Transformer
from bothends.model.weights import weight_shapes
from bothends.order import GenerationOrder
from bothends.search.generator import Generator
from bothends.search.options import SearchOptions
from bothends.storage.digests import DIGESTS, check_file
from bothends.text.vocabulary import VOCABULARY
from conftest import tiny_config
from tiny_model import sentences, tiny_model

CONFIGS: list[dict[str, Any]] = [
    {},
    dict(norm="pre", encoder_layers=1, decoder_layers=3),
    dict(share_embeddings=False, target_vocabulary_size=29, tie_output=False, output_bias=True),
    dict(share_embeddings=False, target_vocabulary_size=29),
    dict(learned_positions=9, embedding_norm=True),
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A trained model that has not been exported, to be changed at will."""
    directory = tmp_path / "model"
    shutil.copytree(tiny_model("2x1", None), directory)
    return directory


@pytest.mark.parametrize("changes", CONFIGS, ids=lambda changes: "-".join(changes) or "plain")
@pytest.mark.parametrize("order", ["2x1", "4x1"])
def test_names_and_shapes_are_those_of_the_network(order: str, changes: dict[str, Any]) -> None:
    config, parsed = tiny_config(**changes), GenerationOrder.parse(order)
    state = Transformer(config, parsed).state_dict()
    expected = {name: tuple(tensor.shape) for name, tensor in state.items()}
    assert weight_shapes(config, parsed) == expected


def test_int8_is_the_default_and_is_reported(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", str(model)]) == 0
    assert OnnxEngine.load(model).precision == "int8"
    output = capsys.readouterr().out
    assert re.search(r"decoder.onnx: int8, \d+\.\d MB", output)
    assert re.search(
        r"int8 against float32 on 32 random sentences .*: \d+\.\d% of outputs identical, "
        r"logprob per symbol [+-]0\.\d{4}",
        output,
    )


def test_a_report_on_real_lines_and_their_references(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model copies, so a sample is its own reference. An empty line counts for neither."""
    pytest.importorskip("sacrebleu")
    sample = tmp_path / "sample.txt"
    sample.write_text("\n".join(["", *sentences(20, seed=5)]) + "\n", encoding="utf-8")
    arguments = ["export", str(model), "--sample", str(sample), "--reference", str(sample)]
    assert run(arguments) == 0
    output = capsys.readouterr().out
    assert "on 20 lines of" in output
    found = re.search(r"BLEU (\S+) in int8, (\S+) in float32 \(\S+\), .*version:", output)
    assert found is not None, output
    assert abs(float(found[1]) - float(found[2])) < 10


def test_float32_needs_no_report(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(model), "--precision", "float32"]) == 0
    assert "against" not in capsys.readouterr().out
    assert OnnxEngine.load(model).precision == "float32"


def test_another_directory_gets_all_that_the_runtime_needs(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "export"
    assert run(["export", str(model), "--output", str(output), "--no-check"]) == 0
    assert {path.name for path in output.iterdir()} == {
        CONFIG,
        VOCABULARY,
        ENCODER,
        DECODER,
        DIGESTS,
    }
    assert {path.name for path in model.iterdir()} == {CONFIG, VOCABULARY, WEIGHTS, DIGESTS}
    assert OnnxEngine.load(output).precision == "int8"


def test_a_shortlist_goes_with_the_model(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (model / SHORTLIST).write_bytes(b"words")
    record_model(model, [SHORTLIST])
    assert run(["export", str(model), "--output", str(tmp_path / "one"), "--no-check"]) == 0
    assert (tmp_path / "one" / SHORTLIST).read_bytes() == b"words"
    check_file(tmp_path / "one" / SHORTLIST)
    (model / SHORTLIST).write_bytes(b"wrods")
    assert run(["export", str(model), "--output", str(tmp_path / "two"), "--no-check"]) == 1
    assert f"{SHORTLIST}: damaged or exchanged" in capsys.readouterr().err


def test_an_earlier_export_may_be_written_anew(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "export"
    arguments = ["export", str(model), "--output", str(output), "--no-check"]
    assert run([*arguments, "--precision", "float32"]) == 0
    assert run(arguments) == 0
    assert OnnxEngine.load(output).precision == "int8"


@pytest.mark.parametrize("file", [WEIGHTS, CONFIG])
def test_another_model_is_not_mixed_with_this_one(
    file: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "other"
    output.mkdir()
    shutil.copyfile(tiny_model("1x1", None) / file, output / file)
    arguments = ["export", str(model), "--output", str(output)]
    complaint = "other: exists and is a model of its own; name a new directory"
    assert_complains(arguments, complaint, 1, capsys)
    assert [path.name for path in output.iterdir()] == [file]


def test_graphs_are_checked_and_say_what_they_are(model: Path) -> None:
    export_model(model, "int8", model)
    for file in (ENCODER, DECODER):
        graph = onnx.load(model / file)
        onnx.checker.check_model(graph, full_check=False)
        metadata = {entry.key: entry.value for entry in graph.metadata_props}
        assert (metadata["precision"], metadata["order"]) == ("int8", "2x1")


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_an_embedding_of_both_graphs_is_stored_once(tmp_path: Path, precision: Precision) -> None:
    config = tiny_config(vocabulary_size=6000)
    weights = random_weights(config, GenerationOrder(), seed=5)
    write_graphs(tmp_path, weights, config, GenerationOrder(), precision)
    graphs = [onnx.load(tmp_path / name, load_external_data=False) for name in (ENCODER, DECODER)]
    encoder, decoder = ({each.name: each for each in graph.graph.initializer} for graph in graphs)
    name = Network.of(config, GenerationOrder()).source_embedding.weight.name
    assert len(decoder[name].raw_data) >= 6000 * config.width
    assert not encoder[name].raw_data
    whole = onnx.load(tmp_path / ENCODER)  # follows the pointer
    (found,) = (each for each in whole.graph.initializer if each.name == name)
    assert found.raw_data == decoder[name].raw_data


def test_seven_bits_cost_a_trained_model_little(random: np.random.Generator) -> None:
    """It copies made-up words; a wrong scale anywhere would leave nothing in common."""
    engines = (OnnxEngine.load(tiny_model("2x1", each)) for each in ("float32", "int8"))
    exact, rounded = (Generator(each, each.order, each.config.special) for each in engines)
    sources = [random.integers(4, 60, length) for length in [3, 5, 8] * 8]
    agreement = compare(rounded, exact, sources, SearchOptions(beam=2))
    assert len(agreement.outputs) == len(sources)
    assert agreement.identical > 0.5
    assert agreement.mean_distance < 0.1
    itself = compare(exact, exact, sources, SearchOptions(beam=2))
    assert (itself.identical, itself.mean_distance) == (1.0, 0.0)


@pytest.mark.parametrize(("language", "tokenizer"), [("zh", "zh"), ("de", "13a")])
def test_bleu_is_counted_in_the_words_of_the_language(
    language: str, tokenizer: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    description = read_description(model)
    write_description(model, replace(description, target_language=language))
    record_model(model, [CONFIG])
    text = tmp_path / "text"
    text.write_text("ba bo\nda du\n")
    output = tmp_path / "exported"
    sample = ["--sample", str(text), "--reference", str(text)]
    assert run(["export", str(model), *sample, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert f"tok:{tokenizer}" in printed
    assert f"{output / CONFIG}: lengths of the 2 sample pairs added" in printed
    lengths = read_description(output).lengths
    assert lengths is not None
    assert (lengths.mean, lengths.spread) == (0, 0)  # copies
    # Two short lines do not tell what is too long for it.
    assert lengths.longest_source is None
    assert read_description(model).lengths is None  # its files are as they were


def without(name: str) -> Any:
    def change(weights: dict[str, Any]) -> None:
        del weights[name]

    return change


def transposed(name: str) -> Any:
    def change(weights: dict[str, Any]) -> None:
        weights[name] = np.ascontiguousarray(weights[name].T)

    return change


def with_another(weights: dict[str, Any]) -> None:
    weights["another"] = np.zeros(3, np.float32)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (without("decoder.layers.0.feed_forward.inner.bias"), "inner.bias is missing"),
        (transposed("decoder.layers.0.feed_forward.outer.weight"), "outer.weight has shape"),
        (with_another, "tensor another is not one that config.json asks for"),
    ],
)
def test_weights_that_do_not_fit(
    change: Any, complaint: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = load_file(model / WEIGHTS)
    change(weights)
    save_file(weights, model / WEIGHTS)
    (model / DIGESTS).unlink()
    assert_complains(["export", str(model)], complaint, 1, capsys)
    assert not (model / DECODER).exists()


def test_no_weights(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / WEIGHTS).unlink()
    assert_complains(["export", str(model)], "no weights, model.safetensors is missing", 1, capsys)


def test_damaged_weights(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / WEIGHTS).write_bytes(b"not weights")
    assert_complains(["export", str(model)], "model.safetensors: damaged", 1, capsys)


def test_no_such_sample(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", str(model), "--sample", str(model / "nothing")]
    assert_complains(arguments, "nothing: no such file", 1, capsys)


def test_a_sample_of_invalid_utf8_is_read_with_replacements(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = tmp_path / "sample"
    sample.write_bytes(b"ba bo\nd\xffa\n")
    assert run(["export", str(model), "--sample", str(sample)]) == 0
    assert "on 2 lines of" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sample", "reference", "complaint"),
    [
        ("", None, "sample: no text in its first 200 lines"),
        ("ba\n", "ba\nbo\n", "reference: 2 lines, but .*sample has 1: expected equally many"),
    ],
)
def test_a_sample_is_read_before_anything_is_written(
    sample: str,
    reference: str | None,
    complaint: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["export", str(model)]
    for name, text in (("sample", sample), ("reference", reference)):
        if text is not None:
            (tmp_path / name).write_text(text)
            arguments += [f"--{name}", str(tmp_path / name)]
    assert_complains(arguments, complaint, 1, capsys)
    assert not (model / DECODER).exists()


@pytest.mark.parametrize("options", ["--no-check", "--precision float32"])
def test_a_sample_for_no_check(
    model: Path, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["export", str(model), *options.split(), "--sample", str(model / CONFIG)]
    assert_complains(arguments, "--sample is for the int8 check, which --no-check", 2, capsys)


def test_a_reference_without_a_sample(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", str(model), "--reference", str(model / CONFIG)]
    assert_complains(arguments, "--reference belongs to --sample", 2, capsys)


@pytest.mark.parametrize("package", ["onnx", "safetensors"])
def test_a_missing_extra(
    package: str,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    complaint = rf"needs {package}.*pip install 'bothends\[train\]'"
    assert_complains(["export", str(model)], complaint, 1, capsys)


def assert_complains(
    arguments: list[str], complaint: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == status
    error = capsys.readouterr().err
    assert re.fullmatch(rf"bothends: error: .*{complaint}.*\n", error), error
