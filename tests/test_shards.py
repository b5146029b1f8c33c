"""Prepared corpora: what is written is read, whatever its size; damage is noticed on opening."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.data.preparation import Preparation, TextFiles, prepare
from bothends.data.shards import (
    MANIFEST,
    PairWriter,
    PreparedCorpus,
    TokenPairs,
    TokenType,
    token_type,
)
from bothends.errors import BothendsError
from bothends.text.vocabulary_training import VocabularyOptions
from corpus_data import make_sentences, write_lines

Pair = tuple[list[int], list[int]]


def _tokens(largest: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, largest), max_size=6)


def _pairs(size: int) -> st.SearchStrategy[tuple[int, list[list[Pair]]]]:
    side = _tokens(size - 1)
    return st.tuples(st.just(size), st.lists(st.lists(st.tuples(side, side), max_size=4)))


@settings(max_examples=40)  # each writes files, safe on the disk
@given(
    corpus=st.sampled_from([10, 1 << 16, (1 << 16) + 1, 1 << 32]).flatmap(_pairs),
    shard_tokens=st.integers(1, 40),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    corpus: tuple[int, list[list[Pair]]],
    shard_tokens: int,
) -> None:
    """Empty sequences and batches, ids beyond 65,535, pairs before and after a shard's end."""
    vocabulary_size, batches = corpus
    directory = tmp_path_factory.mktemp("corpus")
    kind = token_type(vocabulary_size)
    writer = PairWriter(directory, "train", kind, shard_tokens)
    for batch in batches:
        writer.write([source for source, _ in batch], [target for _, target in batch])
    record, files = writer.close()

    expected = [pair for batch in batches for pair in batch]
    pairs = TokenPairs(directory, "train", record, kind)
    assert len(pairs) == len(expected)
    assert [(source.tolist(), target.tolist()) for source, target in pairs] == expected
    assert pairs.source_lengths.tolist() == [len(source) for source, _ in expected]
    assert pairs.target_lengths.tolist() == [len(target) for _, target in expected]
    assert record.source_tokens == sum(len(source) for source, _ in expected)
    assert record.target_tokens == sum(len(target) for _, target in expected)
    assert all((directory / name).stat().st_size == file.bytes for name, file in files.items())


def test_large_shards_are_split(tmp_path: Path) -> None:
    writer = PairWriter(tmp_path, "train", "uint16", shard_tokens=100)
    for number in range(30):
        writer.write([[number] * 5], [[number] * 4])
    record, files = writer.close()
    assert record.shards == (108, 108, 54), "closed at the first batch end past 100 tokens"
    assert {f"train.tokens.00{number}" for number in range(3)} < files.keys()
    pairs = TokenPairs(tmp_path, "train", record, "uint16")
    assert [int(source[0]) for source, _ in pairs] == list(range(30))


@pytest.mark.parametrize(
    ("size", "kind"), [(32_000, "uint16"), (65_536, "uint16"), (65_537, "uint32")]
)
def test_tokens_take_two_bytes_where_they_can(size: int, kind: TokenType) -> None:
    assert token_type(size) == kind


def test_an_id_outside_the_type_is_not_wrapped(tmp_path: Path) -> None:
    writer = PairWriter(tmp_path, "train", "uint16")
    with pytest.raises(OverflowError):
        writer.write([[1 << 16]], [[0]])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("prepared")
    sides = [write_lines(directory / f"text.{seed}", make_sentences(300, seed)) for seed in (1, 2)]
    text = TextFiles((sides[0],), (sides[1],))
    output = directory / "corpus"
    prepare(Preparation(text, text, output, VocabularyOptions(size=400)))
    return output


def test_reading_a_prepared_corpus(prepared: Path) -> None:
    corpus = PreparedCorpus.open(prepared)
    assert corpus.splits == ("train", "valid")
    pairs = corpus.split("valid")
    vocabularies = corpus.vocabularies()
    sources, targets = corpus.valid_text()
    assert sources == make_sentences(300, 1)
    assert vocabularies.source.encode(sources) == [source.tolist() for source, _ in pairs]
    assert vocabularies.target.encode(targets) == [target.tolist() for _, target in pairs]


def test_pairs_are_mapped_and_read_only(prepared: Path) -> None:
    pairs = PreparedCorpus.open(prepared).split("train")
    source, target = pairs[7]
    for array in (source, target, pairs.source_lengths, pairs.target_lengths):
        assert not array.flags.writeable
        assert not array.flags.owndata
    assert pairs[-1][0].tolist() == pairs[len(pairs) - 1][0].tolist()
    with pytest.raises(IndexError):
        pairs[len(pairs)]


def test_an_open_corpus_costs_no_memory(tmp_path: Path) -> None:
    """25 MB of tokens and lengths: a reader that loaded them would show it."""
    pairs = 250_000
    writer = PairWriter(tmp_path, "train", "uint32")
    batch = [list(range(10))] * 10_000
    for _ in range(pairs // len(batch)):
        writer.write(batch, batch)
    record, _ = writer.close()
    script = f"""
from pathlib import Path
from bothends.data.shards import SplitRecord, TokenPairs
def anonymous():  # KiB; mapped pages of files belong to the system
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])
before = anonymous()
pairs = TokenPairs(Path({str(tmp_path)!r}), "train", SplitRecord(**{record.model_dump()}), "uint32")
assert sum(int(pairs[i][0].sum()) for i in range(0, len(pairs), 100)) == 45 * 2_500
assert int(pairs.source_lengths.max()) == 10
print(anonymous() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 5_000, "a few megabytes of Python objects at most"


def _edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(directory: Path) -> None:
        content = json.loads((directory / MANIFEST).read_text())
        change(content)
        (directory / MANIFEST).write_text(json.dumps(content))

    return edit


def _cut(directory: Path) -> None:
    path = directory / "train.tokens.000"
    path.write_bytes(path.read_bytes()[:-2])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "no such prepared corpus; make it with bothends prepare"),
        (lambda d: (d / MANIFEST).unlink(), "not a prepared corpus, manifest.json is missing"),
        (lambda d: (d / MANIFEST).write_text("{"), "damaged, not a corpus's manifest"),
        (lambda d: (d / MANIFEST).write_text("[]"), "damaged, not a corpus's manifest"),
        (_edit(lambda m: m.pop("splits")), "manifest.json: damaged, splits: Field required"),
        (_edit(lambda m: m.update(format_version=2)), "format version 2, but .* reads up to 1"),
        (lambda d: (d / "train.offsets").unlink(), "train.offsets: missing, though manifest"),
        (_cut, r"train.tokens.000: damaged, \d+ bytes where manifest.json says \d+; prepare again"),
        (lambda d: (d / "sentencepiece.model").write_bytes(b""), "sentencepiece.model: damaged"),
    ],
)
def test_damage(
    prepared: Path, tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    directory = tmp_path / "corpus"
    shutil.copytree(prepared, directory)
    damage(directory)
    with pytest.raises(BothendsError, match=message):
        PreparedCorpus.open(directory)


@pytest.mark.parametrize("record", [{"shards": []}, {"shards": [1]}, {"pairs": 1}])
def test_a_record_that_does_not_fit(prepared: Path, tmp_path: Path, record: dict[str, Any]) -> None:
    directory = Path(shutil.copytree(prepared, tmp_path / "corpus"))
    _edit(lambda manifest: manifest["splits"]["train"].update(record))(directory)
    corpus = PreparedCorpus.open(directory)
    with pytest.raises(BothendsError, match="its record of split train does not fit the files"):
        corpus.split("train")


def test_a_split_that_is_not_there(prepared: Path) -> None:
    with pytest.raises(BothendsError, match="no split 'test', only train, valid; validation pairs"):
        PreparedCorpus.open(prepared).split("test")


def test_lengths_are_what_a_trainer_sorts_by(prepared: Path) -> None:
    pairs = PreparedCorpus.open(prepared).split("train")
    order = np.argsort(pairs.source_lengths, kind="stable")
    lengths = [len(pairs[int(index)][0]) for index in order]
    assert lengths == sorted(lengths)
