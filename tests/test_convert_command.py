"""`bothends convert` as a user runs it: what works, and one line for whatever does not."""

from __future__ import annotations

import json
import pickle
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import foreign_models
from bothends.cli import run
from bothends.convert import result
from bothends.errors import BothendsError
from bothends.model.directory import read_description
from bothends.model.weights import read_weights


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("originals")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        foreign_models.marian(root / "marian")
        foreign_models.bart(root / "bart")
        foreign_models.nllb(root / "nllb")
    return root


@pytest.fixture
def marian(originals: Path, tmp_path: Path) -> Path:
    return copy(originals / "marian", tmp_path / "original")


def copy(source: Path, target: Path) -> Path:
    import shutil

    shutil.copytree(source, target)
    return target


def convert(source: Path, *options: str) -> int:
    return run(["convert", str(source), "--output", str(source.parent / "out"), *options])


def edit_json(name: str, **changes: Any) -> Callable[[Path], None]:
    def edit(directory: Path) -> None:
        path = directory / name
        content = json.loads(path.read_text())
        content.update({key: value for key, value in changes.items() if value is not None})
        for key, value in changes.items():
            if value is None:
                del content[key]
        path.write_text(json.dumps(content))

    return edit


def edit_tensor(name: str, change: Callable[[Any], Any] | None) -> Callable[[Path], None]:
    def edit(directory: Path) -> None:
        path = directory / "model.safetensors"
        tensors = load_file(path)
        tensor = tensors.pop(name)
        if change is not None:
            tensors[name] = np.ascontiguousarray(change(tensor))
        save_file(tensors, path)

    return edit


def cut(name: str, size: int) -> Callable[[Path], None]:
    def edit(directory: Path) -> None:
        (directory / name).write_bytes((directory / name).read_bytes()[:size])

    return edit


def deep(name: str) -> Callable[[Path], Any]:
    """Brackets that Python's own reader falls over."""
    return lambda directory: (directory / name).write_text("[" * 100_000)


class Evil:
    """A pickle that would run something."""

    def __reduce__(self) -> Any:
        return (print, ("this must never be printed",))


def pickled(directory: Path) -> None:
    (directory / "model.safetensors").unlink()
    (directory / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Evil()}))


def truncated_pickle(directory: Path) -> None:
    tensors = load_file(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    state = {name: torch.from_numpy(array) for name, array in tensors.items()}
    torch.save(state, directory / "pytorch_model.bin")
    cut("pytorch_model.bin", 5000)(directory)


FC1 = "model.encoder.layers.0.fc1.weight"
SHARED, EMBED = "model.shared.weight", "model.encoder.embed_tokens.weight"


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (edit_json("config.json", model_type="t5"), "'t5' cannot be converted: it knows words by"),
        (edit_json("config.json", model_type="gpt2"), "of the types bart, m2m_100, marian, mbart"),
        (edit_json("config.json", d_model=None), "d_model should be a whole number, not None"),
        (
            edit_json("config.json", model_type="bart", architectures=["BartForCausalLM"]),
            "config.json: architecture BartForCausalLM, so this bart cannot be converted; ",
        ),
        (
            edit_json("config.json", is_encoder_decoder=False),
            "is_encoder_decoder is false, so this",
        ),
        (edit_json("config.json", d_model=30), f"{SHARED} has shape (324, 32), but config.json"),
        (edit_json("config.json", vocab_size=9), f"{SHARED} has shape (324, 32), but config.json"),
        (edit_json("config.json", encoder_layers=3), "layers.2.self_attn.q_proj.weight is missing"),
        (edit_json("config.json", decoder_ffn_dim=8), "encoder_ffn_dim and decoder_ffn_dim differ"),
        (edit_json("config.json", activation_function="mish"), "activation 'mish' is not"),
        (edit_json("config.json", pad_token_id=-1), "pad_token_id should be a token's id"),
        (edit_json("config.json", bad_words_ids=5), "bad_words_ids should be lists of token ids"),
        (edit_json("config.json", bad_words_ids=[[-1]]), "bad_words_ids should be lists of"),
        (edit_json("config.json", bad_words_ids=[["a"]]), "bad_words_ids should be lists of"),
        (edit_json("config.json", encoder_attention_heads=5, decoder_attention_heads=5), "heads"),
        (edit_json("config.json", eos_token_id=10**6), "outside the vocabulary of 324"),
        (edit_json("config.json", encoder_layers=10**9), "encoder_layers: Input should be less"),
        (edit_tensor(FC1, None), f"model.safetensors: tensor {FC1} is missing"),
        (edit_tensor(FC1, np.transpose), f"tensor {FC1} has shape (32, 48), but config.json asks"),
        (edit_tensor(FC1, np.int8), f"model.safetensors: tensor {FC1} is in int8; supported are"),
        (
            edit_tensor(FC1, lambda x: x * np.inf),
            f"tensor {FC1} has values that are infinite or not a",
        ),
        (edit_tensor(SHARED, lambda x: x[1:]), f"{SHARED} has shape (323, 32), but config.json"),
        (edit_tensor(SHARED, None), f"model.safetensors: tensor {EMBED} or {SHARED} is missing"),
        (edit_tensor("final_logits_bias", None), "tensor final_logits_bias is missing"),
        (cut("model.safetensors", 5000), "model.safetensors: damaged, not a file of weights"),
        (cut("config.json", 50), "config.json: damaged, not JSON"),
        (deep("config.json"), "config.json: damaged, not JSON (brackets more than"),
        (deep("vocab.json"), "vocab.json: damaged, not a vocabulary"),
        (cut("vocab.json", 50), "vocab.json: damaged, not a vocabulary"),
        (cut("source.spm", 50), "source.spm: damaged, or not a SentencePiece model"),
        (lambda d: (d / "target.spm").unlink(), "no tokenizer, target.spm is missing"),
        (lambda d: (d / "vocab.json").unlink(), "no tokenizer, vocab.json is missing"),
        (lambda d: (d / "model.safetensors").unlink(), "neither model.safetensors nor pytorch_mo"),
        (lambda d: (d / "config.json").unlink(), "neither model.bin nor config.json is there"),
        (pickled, "pytorch_model.bin: damaged, or not only weights"),
        (truncated_pickle, "pytorch_model.bin: damaged, or not only weights ("),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    damage: Callable[[Path], Any], complaint: str, marian: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name for path in marian.parent.iterdir()}
    damage(marian)
    generation = marian / "generation_config.json"
    generation.unlink()
    assert convert(marian) == 1
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.err.count("\n") == 1
    assert "printed" not in captured.out
    assert {path.name for path in marian.parent.iterdir()} == before


@pytest.mark.parametrize("moment", ["write_weights", "write_description", "record_model"])
def test_an_interrupted_conversion_leaves_nothing(
    moment: str, marian: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Ctrl-C, while it writes; `tests/test_faults.py` kills it besides."""
    original = getattr(result, moment)

    def interrupted(*arguments: Any) -> None:
        original(*arguments)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(result, moment, interrupted)
    assert convert(marian) == 130
    assert [path.name for path in marian.parent.iterdir()] == ["original"]


def test_weights_in_an_old_file_or_in_several(marian: Path, tmp_path: Path) -> None:
    """The same model from safetensors, from `.bin`, and from two files with an index."""
    assert convert(marian) == 0
    expected = read_weights(tmp_path / "out", read_description(tmp_path / "out"))
    tensors = load_file(marian / "model.safetensors")
    (marian / "model.safetensors").unlink()

    def outputs(name: str) -> Any:
        output = tmp_path / name
        assert run(["convert", str(marian), "--output", str(output)]) == 0
        return read_weights(output, read_description(output))

    half = len(tensors) // 2
    parts = {"a.safetensors": list(tensors)[:half], "b.safetensors": list(tensors)[half:]}
    for name, names in parts.items():
        save_file({each: tensors[each] for each in names}, marian / name)
    index = {"weight_map": {each: name for name, names in parts.items() for each in names}}
    (marian / "model.safetensors.index.json").write_text(json.dumps(index))
    split = outputs("split")
    (marian / "model.safetensors.index.json").unlink()
    state = {name: torch.from_numpy(array) for name, array in tensors.items()}
    torch.save(state, marian / "pytorch_model.bin")
    old = outputs("old")
    for found in (split, old):
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)


def test_an_index_cannot_lead_elsewhere(marian: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (marian / "model.safetensors").unlink()
    index = {"weight_map": {"x": "../../secret"}}
    (marian / "model.safetensors.index.json").write_text(json.dumps(index))
    assert convert(marian) == 1
    assert "'../../secret' is not a file of this directory" in capsys.readouterr().err


def test_a_multilingual_model_is_converted_for_a_pair(
    originals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = copy(originals / "nllb", tmp_path / "original")
    edit_json("tokenizer_config.json", src_lang=None, tgt_lang=None)(original)
    assert convert(original) == 2
    assert "a multilingual model, add --source-language (eng_Latn, " in capsys.readouterr().err
    wrong = ["--source-language", "eng_Latn", "--target-language", "deu_Lat"]
    assert convert(original, *wrong) == 2
    assert "not one of its 3 languages; did you mean deu_Latn?" in capsys.readouterr().err
    right = ["--source-language", "fra_Latn", "--target-language", "eng_Latn"]
    assert convert(original, *right) == 0
    description = read_description(tmp_path / "out")
    assert (description.source_language, description.target_language) == ("fra_Latn", "eng_Latn")


def test_languages_that_make_no_sense(
    originals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = copy(originals / "nllb", tmp_path / "original")
    edit_json("tokenizer_config.json", src_lang=5)(original)
    assert convert(original) == 2
    assert "a multilingual model, add --source-language" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        foreign_models.m2m(tmp_path / "m2m")
    far = {str(10**12): {"content": "__xx__"}}
    edit_json("tokenizer_config.json", added_tokens_decoder=far)(tmp_path / "m2m")
    assert convert(tmp_path / "m2m") == 1
    assert "the tokenizer has a token 1000000000000, but" in capsys.readouterr().err


def test_a_missing_tokenizer_says_how_to_get_it(
    originals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = copy(originals / "bart", tmp_path / "original")
    (original / "tokenizer.json").unlink()
    assert convert(original) == 1
    assert "no tokenizer, tokenizer.json is missing; write it with" in capsys.readouterr().err


def test_what_is_not_there_or_in_the_way(
    marian: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["convert", str(tmp_path / "none"), "--output", str(tmp_path / "x")]) == 1
    assert "no such file or directory; supported are Hugging Face" in capsys.readouterr().err
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    assert convert(marian) == 1
    assert "exists and is not empty; name a new directory" in capsys.readouterr().err


def test_a_converted_model_is_an_ordinary_model(
    originals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Convert, export in int8, translate, score, verify."""
    original = copy(originals / "nllb", tmp_path / "original")
    assert convert(original) == 0
    model = str(tmp_path / "out")
    text = tmp_path / "text"
    text.write_text("the old house\n\na tree\n")
    assert run(["export", model, "--sample", str(text)]) == 0
    assert run(["verify", model]) == 0
    capsys.readouterr()
    assert run(["translate", "--model", model, str(text)]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 4
    assert lines[0]
    assert lines[1] == ""
    (tmp_path / "target").write_text("the house\nthe river\na\n")
    pairs = ["--source", str(text), "--target", str(tmp_path / "target")]
    assert run(["score", "--model", model, *pairs]) == 0


def test_what_is_beyond_learned_positions_is_cut_and_said(
    originals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A source or a target that is too long for the model is no crash, and no secret."""
    from bothends.translator import Translator

    original = copy(originals / "bart", tmp_path / "original")
    assert convert(original) == 0
    model = tmp_path / "out"
    assert run(["export", str(model), "--precision", "float32"]) == 0
    translator = Translator.load(model, threads=1)
    assert translator.description.model.longest_source == 126  # 128 positions, `<s>` and `</s>`
    long, short = translator.translate(
        ["the old house " * 100, "the tree"], max_length=500, split_sentences=False
    )
    assert (long.truncated, short.truncated) == (True, False)
    assert len(long.tokens) <= 126  # the start symbol, `<s>`, the text
    with pytest.raises(BothendsError, match="but the model has learned 128 positions"):
        translator.score(["the tree"], ["the old house " * 100])
