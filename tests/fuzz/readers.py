"""Everything that reads bytes which somebody else may have written, as one table.

A reader gets a directory that is right, one of whose files was replaced by a damaged one, and reads
it as a command would. It may refuse with a `BothendsError`. Digests are removed first: they would
refuse everything, and older directories have none.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from bothends.chain.recipe import load_chain
from bothends.data.shards import MANIFEST, PreparedCorpus
from bothends.digests import DIGESTS, check_file, read_digests
from bothends.distillation.corpus_directory import DistilledCorpus
from bothends.distillation.distill import Distillation, distill
from bothends.distillation.shard_file import read_shard
from bothends.distillation.teachers import ModelTeacher
from bothends.engines.onnx.engine import OnnxEngine
from bothends.engines.protocol import pad_sources
from bothends.model.directory import CONFIG, DECODER, ENCODER, WEIGHTS, read_description
from bothends.model.weights import read_weights
from bothends.text.lines import LineReader
from bothends.text.pairs import read_lines
from bothends.text.vocabulary import VOCABULARY, Vocabulary
from bothends.training.recipe_file import load_recipe
from bothends.training.run import PROGRESS, Progress, RunDirectory
from bothends.verification import verify
from tiny_model import sentences, tiny_model
from training_data import TINY, tiny_corpus


@dataclass(frozen=True)
class Reader:
    """One kind of file, and who reads it."""

    #: writes a directory that is right
    make: Callable[[Path], object]
    #: the file in it to be damaged
    file: str
    read: Callable[[Path], object]


def _make_model(directory: Path) -> None:
    shutil.copytree(tiny_model(), directory, dirs_exist_ok=True)
    (directory / DIGESTS).unlink()


def _make_model_with_digests(directory: Path) -> None:
    shutil.copytree(tiny_model(), directory, dirs_exist_ok=True)


def _make_corpus(directory: Path) -> None:
    shutil.copytree(tiny_corpus(), directory, dirs_exist_ok=True)


def _make_recipe(directory: Path) -> None:
    (directory / "recipe.yaml").write_text(yaml.safe_dump({**TINY, "data": {"prepared": "x"}}))


def _make_chain(directory: Path) -> None:
    shutil.copyfile(_RECIPES / "chain.yaml", directory / "chain.yaml")


_RECIPES = Path(__file__).parent


@cache
def _distilled(directory: Path) -> Distillation:
    text = directory.with_name("text")
    text.write_text("".join(f"{line}\n" for line in sentences(5)))
    return Distillation(ModelTeacher(tiny_model()), (text,), directory, shard_lines=5)


def _make_distilled(directory: Path) -> None:
    distill(_distilled(directory))


def _read_shard(directory: Path) -> None:
    manifest = json.loads((directory / MANIFEST).read_bytes())
    from bothends.distillation.job import Job

    read_shard(directory / "shards" / "000000.jsonl", Job(**manifest["job"]), sentences(5))


def _make_text(directory: Path) -> None:
    lines = "\ufeffEin Satz.\r\n\nÄpfel \u2028 und Birnen\nlast, without an end"
    (directory / "text").write_bytes(lines.encode())


def _make_gzip(directory: Path) -> None:
    text = "".join(f"{line}\n" for line in sentences(50)).encode()
    (directory / "text.gz").write_bytes(gzip.compress(text, mtime=0))


def _make_progress(directory: Path) -> None:
    (directory / PROGRESS).write_bytes(Progress(update=7).to_json())


def _read_vocabulary(directory: Path) -> None:
    vocabulary = Vocabulary.load(directory / VOCABULARY)
    ids = vocabulary.encode(["ba bo da", "", "Ä \u2581 x", "a" * 300])
    vocabulary.decode(ids)
    vocabulary.decode([range(min(vocabulary.size, 1000))])


def _read_graphs(directory: Path) -> None:
    engine = OnnxEngine.load(directory)
    engine.encode(pad_sources([np.array([5, 6, 7, 3])], 0))


def _read_pairs(directory: Path) -> None:
    corpus = PreparedCorpus.open(directory)
    for _ in corpus.split("train"):
        pass
    corpus.vocabularies()
    corpus.valid_text()


def _check_digests(directory: Path) -> None:
    if read_digests(directory) is not None:
        check_file(directory / VOCABULARY)
    verify(directory)


READERS: dict[str, Reader] = {
    "configuration": Reader(_make_model, CONFIG, read_description),
    "digests": Reader(_make_model_with_digests, DIGESTS, _check_digests),
    "vocabulary": Reader(_make_model, VOCABULARY, _read_vocabulary),
    "weights": Reader(_make_model, WEIGHTS, lambda d: read_weights(d, read_description(d))),
    "encoder": Reader(_make_model, ENCODER, _read_graphs),
    "decoder": Reader(_make_model, DECODER, _read_graphs),
    "manifest": Reader(_make_corpus, MANIFEST, _read_pairs),
    "tokens": Reader(_make_corpus, "train.tokens.000", _read_pairs),
    "offsets": Reader(_make_corpus, "train.offsets", _read_pairs),
    "validation text": Reader(_make_corpus, "valid.source", _read_pairs),
    "distilled manifest": Reader(
        _make_distilled, MANIFEST, lambda d: (DistilledCorpus(d).manifest(), verify(d))
    ),
    "shard": Reader(_make_distilled, "shards/000000.jsonl", _read_shard),
    "recipe": Reader(_make_recipe, "recipe.yaml", lambda d: load_recipe(d / "recipe.yaml")),
    "recipe of a run": Reader(_make_recipe, "recipe.yaml", lambda d: RunDirectory(d).recipe()),
    "progress": Reader(_make_progress, PROGRESS, lambda d: RunDirectory(d).load_progress(d)),
    "chain": Reader(_make_chain, "chain.yaml", lambda d: load_chain(d / "chain.yaml")),
    "lines": Reader(_make_text, "text", lambda d: list(LineReader([d / "text"]))),
    "lines of a corpus": Reader(_make_text, "text", lambda d: list(read_lines(d / "text"))),
    "compressed lines": Reader(_make_gzip, "text.gz", lambda d: list(LineReader([d / "text.gz"]))),
}
