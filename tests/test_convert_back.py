"""Models of ours for other libraries: they load, write the same, and come back bit for bit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest

import foreign_models
from bothends.cli import run
from bothends.convert.ctranslate2_file import ModelFile
from bothends.convert.export import export_foreign
from bothends.convert.options import ConvertOptions
from bothends.convert.source import convert_model
from bothends.engines.export import export_model
from bothends.errors import BothendsError
from bothends.evaluation.bench.peer_ctranslate2 import convert as write_peer
from bothends.evaluation.bench.synthetic import random_weights
from bothends.model.config import ModelConfig, preset
from bothends.model.directory import Description, write_description
from bothends.model.weights import TensorFile, Weights, read_weights, write_weights
from bothends.order import GenerationOrder
from bothends.text.vocabulary import VOCABULARY
from bothends.text.vocabulary_training import VocabularyOptions, train_vocabulary
from bothends.translator import Translator
from foreign_models import odd_lines
from tiny_model import tiny_model

LIMIT = 20


def lively(config: ModelConfig) -> Weights:
    weights = random_weights(config, GenerationOrder(), 0)
    for name in weights:
        if "query" in name or "key_value" in name:
            weights[name] = 6 * weights[name]
        elif "embedding.weight" in name and not config.embedding_scale:
            weights[name] = np.float32(config.width**0.5) * weights[name]
    return weights


@pytest.fixture(scope="module")
def make_own(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """`make_own(**changes)`: a directory with a random model of ours and a real vocabulary."""
    root = tmp_path_factory.mktemp("own")
    lines = [line for line in odd_lines(300, seed=2) if line.strip()]
    vocabulary = train_vocabulary(
        lines, root / VOCABULARY, VocabularyOptions(size=420, exact=False)
    )

    def make(**changes: Any) -> Path:
        directory = tmp_path_factory.mktemp("model")
        config = preset("tiny", vocabulary_size=vocabulary.size, **changes)
        vocabulary.save(directory / VOCABULARY)
        write_weights(directory, lively(config))
        write_description(directory, Description(model=config))
        export_model(directory, "float32", directory)
        return directory

    return make


def some_lines() -> list[str]:
    return [line for line in odd_lines(300, seed=9) if line.strip() and len(line) < 50][:60]


def assert_same_weights(one: Path, other: Path) -> None:
    from bothends.model.directory import read_description

    first, second = (read_weights(each, read_description(each)) for each in (one, other))
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def behind_the_best(model: Any, source: dict[str, Any], tokens: Sequence[int]) -> float:
    """How far the logits of these tokens are, at most, from the best of their steps."""
    import torch

    inputs = torch.tensor([[model.config.decoder_start_token_id, *tokens[:-1]]])
    with torch.no_grad():
        logits = model(**source, decoder_input_ids=inputs).logits[0]
    logits[:, model.config.pad_token_id] = -torch.inf  # never generated
    chosen = logits.gather(1, torch.tensor(tokens)[:, None])
    return float((logits.max(1, keepdim=True).values - chosen).max())


@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(sinusoid="halves", activation="silu", output_bias=True),
        dict(activation="gelu", share_embeddings=False, embedding_scale=False),
    ],
    ids=["interleaved", "halves", "separate"],
)
def test_to_marian_and_back(make_own: Any, changes: dict[str, Any], tmp_path: Path) -> None:
    import torch
    from transformers import MarianMTModel, MarianTokenizer

    own = make_own(**changes)
    export_foreign(own, "marian", tmp_path / "marian")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MarianMTModel.from_pretrained(tmp_path / "marian").eval()
        tokenizer = MarianTokenizer.from_pretrained(tmp_path / "marian")
    lines = some_lines()
    translator = Translator.load(own, threads=1)
    found = translator.translate(lines, split_sentences=False, beam=1, max_length=LIMIT)
    batch = tokenizer(lines, return_tensors="pt", padding=True)
    assert batch["input_ids"].tolist()[0][
        : len(translator.vocabularies.source.encode(lines[:1])[0])
    ]
    with torch.inference_mode():
        rows = model.generate(**batch, num_beams=1, do_sample=False, max_new_tokens=LIMIT + 1)
    end = model.config.eos_token_id
    expected = []
    for row in rows[:, 1:].tolist():
        expected.append(row[: row.index(end)] if end in row else row[:LIMIT])
    assert len({tuple(row) for row in expected}) > 20
    differ = [i for i, each in enumerate(found) if list(each.tokens) != expected[i]]
    assert len(differ) <= 1  # two words as good as each other: sums have another order
    for i in differ:
        source = {name: array[i : i + 1] for name, array in batch.items()}
        assert behind_the_best(model, source, found[i].tokens) < 1e-4

    convert_model(tmp_path / "marian", ConvertOptions()).write(tmp_path / "again")
    assert_same_weights(own, tmp_path / "again")
    export_model(tmp_path / "again", "float32", tmp_path / "again")
    again = Translator.load(tmp_path / "again", threads=1)
    written = [each.tokens for each in again.translate(lines, split_sentences=False, beam=4)]
    assert written == [
        each.tokens for each in translator.translate(lines, split_sentences=False, beam=4)
    ]


def test_marian_gives_back_what_sinusoids_were_rounded_to(make_own: Any, tmp_path: Path) -> None:
    own = make_own(sinusoid_precision="float16")
    export_foreign(own, "marian", tmp_path / "marian")
    again = convert_model(tmp_path / "marian", ConvertOptions()).description.model
    assert again.sinusoid_precision == "float16"


def test_marian_there_and_back_is_bitwise_the_same(tmp_path: Path) -> None:
    for separate in (False, True):
        original, out = tmp_path / f"{separate}", tmp_path / f"out-{separate}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            foreign_models.marian(original, separate=separate)
        convert_model(original, ConvertOptions()).write(tmp_path / f"ours-{separate}")
        export_foreign(tmp_path / f"ours-{separate}", "marian", out)
        first, second = (TensorFile(each / "model.safetensors") for each in (original, out))
        assert set(second.names) == {name for name in first.names if "embed_positions" not in name}
        for name in second.names:
            np.testing.assert_array_equal(first.read(name), second.read(name), err_msg=name)
        for name in ("vocab.json", "source.spm", "target.spm"):
            theirs, ours = (original / name).read_bytes(), (out / name).read_bytes()
            assert ours == theirs or json.loads(ours) == json.loads(theirs)
        generation = json.loads((out / "generation_config.json").read_text())
        pad = json.loads((original / "config.json").read_text())["pad_token_id"]
        assert generation["bad_words_ids"] == [[pad]]


@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(norm="pre", activation="gelu", tie_output=False, output_bias=True),
        dict(norm="pre", learned_positions=64, embedding_norm=True, activation="gelu-tanh"),
        dict(sinusoid="tensor2tensor", position_offset=2, norm_epsilon=1e-3, activation="silu"),
        dict(share_embeddings=False, embedding_scale=False),
    ],
)
def test_to_ctranslate2_and_back(make_own: Any, changes: dict[str, Any], tmp_path: Path) -> None:
    own = make_own(**changes)
    export_foreign(own, "ctranslate2", tmp_path / "ct2")
    translator = Translator.load(own, threads=1)
    vocabulary, lines = translator.vocabularies.source, some_lines()
    peer = ctranslate2.Translator(str(tmp_path / "ct2"), compute_type="float32", intra_threads=1)
    results = peer.translate_batch(
        [vocabulary.pieces(ids) for ids in vocabulary.encode(lines)],
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=LIMIT + 1,
    )
    expected = [list(result.hypotheses[0][:LIMIT]) for result in results]
    found = translator.translate(lines, split_sentences=False, beam=1, max_length=LIMIT)
    assert len({tuple(row) for row in expected}) > 20
    assert [list(each.pieces) for each in found] == expected

    model = convert_model(tmp_path / "ct2", ConvertOptions())
    model.write(tmp_path / "again")
    assert_same_weights(own, tmp_path / "again")
    again = model.description.model
    for name in ("norm", "activation", "sinusoid", "position_offset", "learned_positions"):
        if name != "sinusoid" or not again.learned_positions:
            assert getattr(again, name) == getattr(translator.description.model, name)
    export_model(tmp_path / "again", "float32", tmp_path / "again")
    written = [
        each.tokens
        for each in Translator.load(tmp_path / "again").translate(
            lines, split_sentences=False, beam=1
        )
    ]
    assert written == [
        each.tokens for each in translator.translate(lines, split_sentences=False, beam=1)
    ]


@pytest.mark.parametrize("precision", ["float32", "float16", "bfloat16"])
def test_ctranslate2_there_and_back_is_bitwise_the_same(precision: str, tmp_path: Path) -> None:
    """We write float32, which holds the shorter numbers exactly: the sinusoids, too."""
    config = preset("tiny", vocabulary_size=60, norm="pre", output_bias=True)
    write_peer(config, lively(config), precision, tmp_path / "ct2")
    convert_model(tmp_path / "ct2", ConvertOptions()).write(tmp_path / "ours")
    export_foreign(tmp_path / "ours", "ctranslate2", tmp_path / "out")
    first, second = (ModelFile.read(tmp_path / each / "model.bin") for each in ("ct2", "out"))
    assert first.variables.keys() == second.variables.keys()
    for name, array in first.variables.items():
        np.testing.assert_array_equal(array, second.variables[name], err_msg=name)
    assert json.loads((tmp_path / "ct2" / "shared_vocabulary.json").read_text()) == json.loads(
        (tmp_path / "out" / "shared_vocabulary.json").read_text()
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (dict(norm="pre"), "normalises before each sublayer"),
        (dict(tie_output=False), "has an output layer of its own"),
        (dict(learned_positions=64), "has learned positions"),
        (dict(embedding_norm=True), "has a norm on its embeddings"),
        (dict(position_offset=1), "has other sinusoids"),
        (dict(frame=dict(prompt=(5,))), "has other tokens around a text"),
    ],
)
def test_what_marian_is_not(
    make_own: Any, changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(BothendsError, match=f"cannot become a Marian model: it {reason}"):
        export_foreign(make_own(**changes), "marian", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_another_order_stays_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "out")
    source = str(tiny_model("2x1", None))
    assert run(["convert", source, "--to", "ctranslate2", "--output", output]) == 1
    assert "its order is 2x1, and ctranslate2 generates from left" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
