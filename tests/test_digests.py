"""Digests: what is not as it was written is refused, and `verify` tells what it is."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bothends import BothendsError, Translator
from bothends.cli import run
from bothends.data.shards import MANIFEST, PreparedCorpus
from bothends.engines.export import export_model
from bothends.model.bundled import BUNDLED, bundled_models
from bothends.model.directory import CARD, CONFIG, WEIGHTS
from bothends.model.graph_files import DECODER, ENCODER
from bothends.model.shortlist import SHORTLIST
from bothends.model.torch.averaging import average_models
from bothends.model.torch.checkpoint import load_model
from bothends.storage import digests
from bothends.storage.digests import DIGESTS, FileRecord, check_file, read_digests, record_digests
from bothends.text.vocabulary import VOCABULARY, Vocabulary
from bothends.text.vocabulary_training import VocabularyOptions, train_vocabulary
from bothends.training.loop import train
from bothends.training.run import OPTIMISER, RunDirectory
from command_line import error_line
from tiny_model import sentences, tiny_model
from training_data import tiny_corpus, tiny_recipe


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of a tiny model, to be damaged."""
    return Path(shutil.copytree(tiny_model(), tmp_path / "model"))


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_all_that_makes_a_model_is_described(model: Path) -> None:
    found = read_digests(model)
    assert found is not None
    assert found.files.keys() == {CONFIG, VOCABULARY, WEIGHTS, ENCODER, DECODER}
    for name, record in found.files.items():
        assert record == FileRecord.of(model / name)


def test_a_foreign_vocabulary_of_the_same_size_is_refused(model: Path, tmp_path: Path) -> None:
    ours = Vocabulary.load(model / VOCABULARY)
    text = [line[::-1] for line in sentences(500)]
    foreign = train_vocabulary(text, tmp_path / "foreign", VocabularyOptions(size=ours.size))
    assert foreign.size == ours.size
    foreign.save(model / VOCABULARY)
    with pytest.raises(BothendsError, match=f"{VOCABULARY}: damaged or exchanged, it is not"):
        Translator.load(model)
    (model / DIGESTS).unlink()
    Translator.load(model)  # which is why there are digests


@pytest.mark.parametrize("name", [CONFIG, VOCABULARY, ENCODER, DECODER])
def test_no_bit_is_lost_in_silence(model: Path, name: str) -> None:
    generator = random.Random(name)
    content = (model / name).read_bytes()
    for _ in range(20):
        flip(model / name, generator.randrange(8 * len(content)))
        with pytest.raises(BothendsError, match=name):
            Translator.load(model)
        (model / name).write_bytes(content)
    Translator.load(model)


def test_weights_are_checked_by_all_that_read_them(model: Path, tmp_path: Path) -> None:
    flip(model / WEIGHTS, 8 * (model / WEIGHTS).stat().st_size - 3)  # the last number of the last
    readers: list[Callable[[], object]] = [
        lambda: load_model(model),
        lambda: export_model(model, "float32", model),
        lambda: average_models([model], tmp_path / "average"),
    ]
    for read in readers:
        with pytest.raises(BothendsError, match=f"{WEIGHTS}: damaged or exchanged"):
            read()


def test_a_file_that_was_put_there_is_refused(model: Path) -> None:
    found = read_digests(model)
    assert found is not None
    files = {name: record for name, record in found.files.items() if name != ENCODER}
    (model / DIGESTS).write_text(json.dumps(replace(found, files=files).dump()))
    with pytest.raises(BothendsError, match=f"{ENCODER}: {DIGESTS}, which lists the files"):
        Translator.load(model)


def test_a_model_without_digests_is_taken_as_it_is_and_export_writes_them(model: Path) -> None:
    (model / DIGESTS).unlink()
    Translator.load(model)
    export_model(model, "int8", model)
    found = read_digests(model)
    assert found is not None
    assert found.files.keys() == {CONFIG, VOCABULARY, WEIGHTS, ENCODER, DECODER}
    Translator.load(model)


def test_an_export_does_not_make_a_changed_file_right(model: Path) -> None:
    flip(model / VOCABULARY, 80_000)
    export_model(model, "int8", model)
    with pytest.raises(BothendsError, match=f"{VOCABULARY}: damaged or exchanged"):
        Translator.load(model)
    with pytest.raises(BothendsError, match=f"{VOCABULARY}: damaged or exchanged"):
        export_model(model, "int8", model.with_name("elsewhere"))
    assert not model.with_name("elsewhere").exists()


def test_the_card_may_be_edited(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / CARD).write_text("Mine.\n")
    Translator.load(model)
    assert run(["verify", str(model)]) == 0


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format_version": 1, "files": {"../x": {}}}', "\xff", "[" * 9999]
)
def test_damaged_digests(model: Path, content: str) -> None:
    (model / DIGESTS).write_bytes(content.encode("latin-1"))
    with pytest.raises(BothendsError, match=f"{DIGESTS}: damaged") as caught:
        Translator.load(model)
    assert "\n" not in str(caught.value)


def test_digests_of_a_newer_bothends(model: Path) -> None:
    (model / DIGESTS).write_text('{"format_version": 2}')
    with pytest.raises(BothendsError, match="a newer bothends is needed"):
        Translator.load(model)


class TestLargeFiles:
    @pytest.fixture
    def large(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A file that is too large to be hashed at every load, in a directory with digests."""
        monkeypatch.setattr(digests, "SMALL", 10)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        path = tmp_path / "large"
        path.write_bytes(b"0123456789 and more")
        record_digests(tmp_path, ["large"])
        return path

    def count_hashes(self, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        hashed: list[Path] = []
        of = FileRecord.of
        monkeypatch.setattr(FileRecord, "of", lambda path: (hashed.append(path), of(path))[1])  # type: ignore[func-returns-value]
        return hashed

    def test_they_are_hashed_once(self, large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        hashed = self.count_hashes(monkeypatch)
        for _ in range(3):
            check_file(large)
        assert hashed == [large]

    def test_and_again_when_they_change(self, large: Path) -> None:
        check_file(large)
        large.write_bytes(b"0123456789 and MORE")
        os.utime(large, ns=(1, 1))
        with pytest.raises(BothendsError, match="large: damaged or exchanged"):
            check_file(large)

    def test_another_record_is_another_check(self, large: Path) -> None:
        check_file(large)
        status = large.stat()
        large.write_bytes(b"0123456789 and MORE")
        record_digests(large.parent, ["large"], ["large"])
        large.write_bytes(b"0123456789 and more")
        os.utime(large, ns=(status.st_atime_ns, status.st_mtime_ns))
        with pytest.raises(BothendsError, match="large: damaged or exchanged"):
            check_file(large)

    @pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
    def test_a_damaged_memory_is_no_memory(self, large: Path, content: bytes) -> None:
        memory = large.parent / "cache" / "bothends" / "checked.json"
        memory.parent.mkdir(parents=True)
        memory.write_bytes(content)
        check_file(large)
        assert list(json.loads(memory.read_bytes())) == [str(large)]

    @pytest.mark.parametrize("cache", ["/dev/null/cache", "relative", "{}/large/cache"])
    def test_without_a_place_to_remember_sizes_are_compared(
        self, large: Path, monkeypatch: pytest.MonkeyPatch, cache: str
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", cache.format(large.parent))
        hashed = self.count_hashes(monkeypatch)
        check_file(large)
        assert hashed == []
        large.write_bytes(b"0123456789 and a little more")
        with pytest.raises(BothendsError, match="large: damaged or exchanged"):
            check_file(large)

    def test_the_memory_does_not_grow_forever(
        self, large: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(digests, "_REMEMBERED", 2)
        memory = large.parent / "cache" / "bothends" / "checked.json"
        for name in ("a", "b", "large"):
            path = large.parent / name
            path.write_bytes(b"0123456789 and more")
            record_digests(large.parent, [name])
            check_file(path)
        assert [Path(name).name for name in json.loads(memory.read_bytes())] == ["b", "large"]


class TestVerify:
    def problems(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
        assert run(["verify", str(directory)]) == 1
        captured = capsys.readouterr()
        assert captured.err.startswith("bothends: error: ")
        assert captured.err.count("\n") == 1
        return captured.out

    def test_the_models_in_the_box(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["verify"]) == 0
        lines = capsys.readouterr().out.splitlines()
        shortlists = [SHORTLIST in os.listdir(BUNDLED / name) for name in bundled_models()]
        assert len(lines) == len(shortlists)
        for line, has_shortlist in zip(lines, shortlists, strict=True):
            assert f"model, {4 + has_shortlist} files" in line

    def test_a_model(self, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["verify", str(model)]) == 0
        assert "model, 5 files" in capsys.readouterr().out
        flip(model / DECODER, 99)
        (model / ENCODER).unlink()
        (model / VOCABULARY).write_bytes(b"short")
        found = self.problems(model, capsys)
        assert f"{DECODER}: other content" in found
        assert f"{ENCODER}: missing" in found
        assert f"{VOCABULARY}: 5 bytes" in found
        assert CONFIG not in found

    def test_recording(self, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        config = model / CONFIG
        config.write_text(
            config.read_text().replace('"source_language": null', '"source_language": "en"')
        )
        with pytest.raises(BothendsError, match=f"{CONFIG}: damaged or exchanged"):
            Translator.load(model)
        assert run(["verify", "--record", str(model)]) == 0
        assert Translator.load(model).description.source_language == "en"
        assert run(["verify", str(model)]) == 0

    def test_a_model_without_digests(self, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (model / DIGESTS).unlink()
        assert "nothing to compare with" in self.problems(model, capsys)

    def test_a_prepared_corpus(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        corpus = Path(shutil.copytree(tiny_corpus(), tmp_path / "corpus"))
        assert run(["verify", str(corpus)]) == 0
        assert "prepared corpus" in capsys.readouterr().out
        flip(corpus / "train.tokens.000", 1)
        assert "train.tokens.000: other content" in self.problems(corpus, capsys)
        (corpus / MANIFEST).write_text("{}")
        assert "manifest.json: damaged" in self.problems(corpus, capsys)

    def test_a_distilled_corpus(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        text, corpus = tmp_path / "text", tmp_path / "distilled"
        text.write_text("".join(f"{line}\n" for line in sentences(8)))
        command = ["distill", "--teacher", str(tiny_model()), "--source", str(text)]
        options = ["--shard-lines", "3", "--processes", "1", "--output", str(corpus)]
        assert run([*command, *options]) == 0
        assert run(["verify", str(corpus)]) == 0
        assert "distilled corpus, 5 files" in capsys.readouterr().out
        flip(corpus / "shards" / "000001.jsonl", -80)
        assert "000001.jsonl: damaged" in self.problems(corpus, capsys)
        (corpus / MANIFEST).unlink()  # as if it were not complete yet
        found = self.problems(corpus, capsys)
        assert "distillation that goes on, 3 files" in found
        assert found.count("damaged") == 1

    def test_a_run(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        train(tiny_recipe(tmp_path))
        assert run(["verify", str(tmp_path / "run")]) == 0
        assert capsys.readouterr().out.count("model, 4 files") == 2
        directory = RunDirectory(tmp_path / "run")
        newest = directory.complete()[-1]
        flip(newest / OPTIMISER, 99_999)
        assert f"{newest / OPTIMISER}: other content" in self.problems(tmp_path, capsys)
        with pytest.raises(BothendsError, match=f"{OPTIMISER}: damaged or exchanged"):
            directory.load(newest)

    @pytest.mark.parametrize(
        ("arguments", "status", "complaint"),
        [
            (["{}/nothing"], 1, "nothing: no such directory"),
            (["{}"], 1, "no model, corpus, run or chain, nor is there one in its directories"),
            (["--record", "{}"], 1, "not a model directory, config.json is missing"),
            (["--record"], 2, "--record: name the model directories"),
        ],
    )
    def test_what_cannot_be_verified(
        self,
        arguments: list[str],
        status: int,
        complaint: str,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        filled = [argument.format(tmp_path) for argument in arguments]
        found = error_line(["verify", *filled], capsys)
        assert found[0] == status
        assert complaint in found[1]


def test_the_vocabulary_of_a_prepared_corpus_is_checked(tmp_path: Path) -> None:
    corpus = Path(shutil.copytree(tiny_corpus(), tmp_path / "corpus"))
    PreparedCorpus.open(corpus).vocabularies()
    flip(corpus / VOCABULARY, 2000)
    with pytest.raises(BothendsError, match=VOCABULARY):
        PreparedCorpus.open(corpus).vocabularies()
