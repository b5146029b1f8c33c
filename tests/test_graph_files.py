"""Compressed graphs: the same model in less space, and one clear line where they are damaged."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bothends import BothendsError, Translator
from bothends.cli import run
from bothends.engines import native
from bothends.engines.export import export_model
from bothends.engines.registry import EngineName, default_engine
from bothends.model import graph_files
from bothends.model.graph_files import (
    COMPRESSED,
    COMPRESSED_GRAPHS,
    DECODER,
    ENCODER,
    GRAPHS,
    compress,
    readable_graphs,
)
from bothends.publishing.push import PushOptions, plan_upload
from bothends.quick import plain_translation
from bothends.storage.digests import DIGESTS
from bothends.verification import verify
from command_line import error_line
from tiny_model import sentences, tiny_model

ENGINES: list[EngineName] = ["onnx", *(["native"] if native.extension() else [])]  # type: ignore[list-item]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A tiny model in int8 whose graphs are compressed; it may be changed."""
    directory = Path(shutil.copytree(tiny_model("2x1", "int8"), tmp_path / "model"))
    export_model(directory, "int8", directory, compressed=True)
    return directory


def graphs_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if ".onnx" in path.name}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_compressed_model_translates_as_it_did(model: Path, engine: EngineName) -> None:
    lines = sentences(20, seed=7)
    plain = Translator.load(tiny_model("2x1", "int8"), engine=engine)
    compressed = Translator.load(model, engine=engine)
    for expected, found in zip(plain.translate(lines), compressed.translate(lines), strict=True):
        assert (found.text, found.logprob) == (expected.text, expected.logprob)


def test_the_default_engine_is_that_of_plain_graphs(model: Path) -> None:
    assert default_engine(model) == default_engine(tiny_model("2x1", "int8"))


def test_an_export_replaces_the_other_kind_of_graphs(model: Path) -> None:
    assert graphs_in(model) == set(COMPRESSED_GRAPHS)
    assert verify(model)[0].problems == ()
    export_model(model, "int8", model)
    assert graphs_in(model) == set(GRAPHS)
    assert verify(model)[0].problems == ()


def test_it_holds_the_graphs_to_the_last_bit(model: Path) -> None:
    for name in GRAPHS:
        packed = (model / (name + COMPRESSED)).read_bytes()
        plain = (tiny_model("2x1", "int8") / name).read_bytes()
        assert gzip.decompress(packed) == plain
        assert len(packed) < len(plain)
        assert packed == compress(plain)  # no time of day in it


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_left_behind(
    model: Path, tmp_path: Path, engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with readable_graphs(model) as graphs:
        assert {graph.path.parent.parent for graph in graphs} == {place}
    with Translator.load(model, engine=engine) as translator:
        assert not list(place.iterdir())
        assert translator.translate(sentences(1)[0]).text


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda content: content[: len(content) // 2], "it ends too early"),
        (lambda content: b"", "it ends too early"),
        (lambda content: content + b"more", "it goes on behind its end"),
        (lambda content: content[:-8] + bytes(4) + content[-4:], "incorrect data check"),
        (lambda content: b"\x08" + content, "incorrect header check"),
        (lambda content: gzip.compress(bytes(1 << 20)), "it unpacks to more than 10 times"),
    ],
)
def test_damage_is_one_line(
    model: Path, name: str, damage: Callable[[bytes], bytes], says: str
) -> None:
    path = model / (name + COMPRESSED)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BothendsError, match=f"{path.name}: damaged or exchanged"):
        Translator.load(model)
    (model / DIGESTS).unlink()
    with pytest.raises(BothendsError, match=f"{path}: damaged, not a compressed graph .*{says}"):
        Translator.load(model)


def test_a_plain_translation_unpacks_once(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unpacked: list[str] = []

    def unpack(stored: Path) -> bytes:
        unpacked.append(stored.name)
        return gzip.decompress(stored.read_bytes())

    monkeypatch.setattr(graph_files, "_unpacked", unpack)
    text = tmp_path / "text"
    text.write_text(f"{sentences(1)[0]}\n")
    translation = plain_translation(["translate", str(text), "--model", str(model)])
    assert translation is not None
    translation()
    assert capsys.readouterr().out.strip()
    assert sorted(unpacked) == sorted(COMPRESSED_GRAPHS)


def test_a_message_names_the_file_that_is_there(model: Path) -> None:
    other = tiny_model("1x1", "int8") / DECODER
    (model / (DECODER + COMPRESSED)).write_bytes(compress(other.read_bytes()))
    (model / DIGESTS).unlink()
    again = f"{model / (DECODER + COMPRESSED)}: exported from another model .*export {model}`"
    for engine in ENGINES:
        with pytest.raises(BothendsError, match=again):
            Translator.load(model, engine=engine)


def test_half_a_model_is_not_one(model: Path) -> None:
    (model / (ENCODER + COMPRESSED)).unlink()
    with pytest.raises(BothendsError, match=f"no {ENCODER}; write them with `bothends export"):
        Translator.load(model)


def test_without_a_place_to_unpack(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(BothendsError, match=r"no place to unpack .*set TMPDIR"):
        Translator.load(model)


def test_it_is_published_as_it_is(model: Path) -> None:
    upload = plan_upload(model, PushOptions("org/name", license="apache-2.0"))
    assert set(COMPRESSED_GRAPHS) <= set(upload.files)
    assert "graphs" in str(upload.card)


def test_float32_is_not_compressed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", str(model), "--precision", "float32", "--compress"]
    status, message = error_line(command, capsys)
    assert (status, "--compress is for int8" in message) == (2, True)
    assert graphs_in(model) == set(COMPRESSED_GRAPHS)


def test_the_command_says_how_large_they_are(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "exported"
    command = ["export", str(model), "--compress", "--no-check", "--output", str(output)]
    assert run(command) == 0
    assert f"{output / DECODER}{COMPRESSED}: int8, " in capsys.readouterr().out
    assert graphs_in(output) == set(COMPRESSED_GRAPHS)
