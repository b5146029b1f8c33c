"""Everything that reads bytes which somebody else may have written, as one table.

A reader gets a directory that is right, one of whose files was replaced by a damaged one, and reads
it as a command would. It may refuse with a `BothendsError`. Digests are removed first: they would
refuse everything, and older directories have none.
"""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import yaml

from bothends.chain.recipe import load_chain
from bothends.convert.export import export_foreign
from bothends.convert.options import ConvertOptions
from bothends.convert.source import convert_model
from bothends.data.shards import MANIFEST, PreparedCorpus
from bothends.distillation.bulk import BulkTranslation, translate_in_bulk
from bothends.distillation.corpus_directory import DistilledCorpus
from bothends.distillation.distill import Distillation, distill
from bothends.distillation.shard_file import read_shard
from bothends.distillation.teachers import ModelTeacher
from bothends.documents import DocumentFormat, DocumentOptions, Glossary, translate_document
from bothends.engines.onnx.engine import OnnxEngine
from bothends.engines.protocol import pad_sources
from bothends.errors import UsageError
from bothends.evaluation.bench.synthetic import random_weights
from bothends.jobs.pool import InThisProcess
from bothends.jobs.stages import Stage, StageGraph
from bothends.model.config import preset
from bothends.model.directory import (
    CONFIG,
    WEIGHTS,
    Description,
    read_description,
    write_description,
)
from bothends.model.graph_files import COMPRESSED, DECODER, ENCODER, GRAPHS, compress
from bothends.model.weights import read_weights, write_weights
from bothends.order import GenerationOrder
from bothends.serve.keys import ApiKeys, add_key
from bothends.serve.requests import parse_form, parse_json
from bothends.serve.schemas import LibreTranslateRequest
from bothends.storage.digests import DIGESTS, check_file, read_digests
from bothends.text.foreign import load_tokenizer
from bothends.text.lines import LineReader, read_text
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


def _make_compressed_model(directory: Path) -> None:
    for path in tiny_model("2x1", "int8").iterdir():
        if path.name in GRAPHS:
            (directory / (path.name + COMPRESSED)).write_bytes(compress(path.read_bytes()))
        elif path.name != DIGESTS:
            shutil.copy(path, directory)


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
    return Distillation(
        ModelTeacher(tiny_model()), (text,), directory, shard_lines=5, pool=InThisProcess()
    )


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


def _make_left_to_right(directory: Path) -> None:
    """A model of ours that others can have, and which needs no training."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(tiny_model() / VOCABULARY, directory / VOCABULARY)
    size = Vocabulary.load(directory / VOCABULARY).size
    config = preset("tiny", vocabulary_size=size, encoder_layers=1, decoder_layers=1)
    write_weights(directory, random_weights(config, GenerationOrder(), 0))
    write_description(directory, Description(model=config))


def _make_foreign(kind: Literal["marian", "ctranslate2"]) -> Callable[[Path], None]:
    def make(directory: Path) -> None:
        own = directory.with_name("own")
        _make_left_to_right(own)
        export_foreign(own, kind, directory)

    return make


_PLAIN = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
_TOKENIZER = {
    "version": "1.0",
    "added_tokens": [{"id": 3, "content": "<unk>", "special": True, **_PLAIN}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
    "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
    "model": {
        "type": "BPE",
        "unk_token": "<unk>",
        "vocab": {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "b": 4, "a": 5, "ba": 6},
        "merges": ["b a"],
    },
}


def _read_tokenizer(directory: Path) -> None:
    path = directory / "tokenizer.json"
    tokenizer = load_tokenizer(path.read_bytes(), path)
    tokenizer.get_added_tokens_decoder()
    tokenizer.token_to_id("<unk>")


def _make_argos(path: Path) -> None:
    model = path / "model"
    model.mkdir()
    _make_foreign("ctranslate2")(model)
    with zipfile.ZipFile(path / "x.argosmodel", "w") as archive:
        archive.writestr("x/metadata.json", '{"from_code": "en", "to_code": "de"}')
        archive.write(tiny_model() / VOCABULARY, "x/sentencepiece.model")
        for each in sorted(model.iterdir()):
            archive.write(each, f"x/model/{each.name}")


def _convert(name: str = "") -> Callable[[Path], None]:
    """Read a foreign model, and cut and join text with it."""

    def read(directory: Path) -> None:
        model = convert_model(directory / name, ConvertOptions())
        vocabulary = model.vocabularies.source
        vocabulary.decode(vocabulary.encode(["ba bo da", "", "\u00c4 \u2581 x"]))

    return read


def _make_document(name: str, text: str) -> Callable[[Path], None]:
    def make(directory: Path) -> None:
        (directory / name).write_bytes(text.encode())

    return make


_MARKDOWN = """# Title of *it*

- first [link](http://example.org "t") and `code`
- second <b>bold</b> &amp; more

| a | b |
|---|---|
| x | y |

```sh
ls
```
> quoted ![picture](a.png)
"""
_HTML = """<!doctype html><html lang="en"><head><title>A title</title><script>if (a < b) {}</script>
</head><body><p class="x">Some <b>bold <i>and</i></b> text &amp; more.<br>New line</p>
<pre>as is</pre><!-- comment --><table><tr><td title="tip">x</td></tr></table>
<textarea>y</textarea></body></html>"""
_WEB = """WEBVTT

NOTE first

a name
00:01.000 --> 01:00:02.500 align:start
<v Ann>First</v> &amp; <c.red>second</c> line,
- Who <00:01.500>is it?
"""
_SUBTITLES = """1
00:00:01,000 --> 00:00:02,500
<i>First</i> line,
second line.

2
00:00:03,000 --> 00:00:04,000 X1:1 X2:2
- Who?
- Nobody.
"""


def _translate(name: str, kind: DocumentFormat) -> Callable[[Path], None]:
    def read(directory: Path) -> None:
        translate_document(
            read_text(directory / name), kind, lambda lines: [line.upper() for line in lines]
        )

    return read


def _read_glossary(directory: Path) -> None:
    options = DocumentOptions(glossary=Glossary.load(directory / "terms"))
    translate_document("The old house, a tree.", "text", list, options)


def _make_keys(directory: Path) -> None:
    add_key(directory / "keys", "ann")
    add_key(directory / "keys", "bob")


def _make_bulk(directory: Path) -> None:
    translate_in_bulk(_bulk(directory))


def _bulk(directory: Path) -> BulkTranslation:
    text = directory.with_name("text")
    text.write_text("".join(f"{line}\n" for line in sentences(5)))
    other = directory.with_name("other")
    other.write_text("ba\n")
    teacher = ModelTeacher(tiny_model())
    return BulkTranslation(teacher, (text, other), directory, InThisProcess())


def _read_bulk(directory: Path) -> None:
    """Whatever it says, it is refused or left alone: the job is done already."""
    if (directory / MANIFEST).is_file():
        translate_in_bulk(_bulk(directory))


def _stage(directory: Path) -> tuple[StageGraph, Stage]:
    stage = Stage("stage", directory / "output", None, {"beam": 1})
    return StageGraph([stage], directory), stage


def _make_stage(directory: Path) -> None:
    graph, stage = _stage(directory)
    with graph.making(stage) as path:
        path.write_text("x")


def _read_stage(directory: Path) -> None:
    graph, stage = _stage(directory)
    graph.state(stage)


_REQUEST = {"q": ["Hello.", "World"], "source": "en", "target": "de", "format": "text"}


def _read_request(directory: Path) -> None:
    """The body of a request to the server, as JSON and as a form."""
    body = (directory / "body").read_bytes()
    for parse in (parse_json, parse_form):
        with suppress(UsageError):
            parse(body, LibreTranslateRequest)


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
    "compressed graph": Reader(_make_compressed_model, DECODER + COMPRESSED, _read_graphs),
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
    "Marian configuration": Reader(_make_foreign("marian"), "config.json", _convert()),
    "Marian vocabulary": Reader(_make_foreign("marian"), "vocab.json", _convert()),
    "Marian tokenizer": Reader(_make_foreign("marian"), "tokenizer_config.json", _convert()),
    "Marian pieces": Reader(_make_foreign("marian"), "source.spm", _convert()),
    "Marian weights": Reader(_make_foreign("marian"), "model.safetensors", _convert()),
    "tokenizer": Reader(
        _make_document("tokenizer.json", json.dumps(_TOKENIZER)), "tokenizer.json", _read_tokenizer
    ),
    "CTranslate2 model": Reader(_make_foreign("ctranslate2"), "model.bin", _convert()),
    "CTranslate2 configuration": Reader(_make_foreign("ctranslate2"), "config.json", _convert()),
    "CTranslate2 vocabulary": Reader(
        _make_foreign("ctranslate2"), "shared_vocabulary.json", _convert()
    ),
    "Argos package": Reader(_make_argos, "x.argosmodel", _convert("x.argosmodel")),
    "Markdown": Reader(
        _make_document("page.md", _MARKDOWN), "page.md", _translate("page.md", "markdown")
    ),
    "HTML": Reader(
        _make_document("page.html", _HTML), "page.html", _translate("page.html", "html")
    ),
    "subtitles": Reader(_make_document("a.srt", _SUBTITLES), "a.srt", _translate("a.srt", "srt")),
    "web-subtitles": Reader(_make_document("a.vtt", _WEB), "a.vtt", _translate("a.vtt", "vtt")),
    "text": Reader(_make_document("a.txt", _MARKDOWN), "a.txt", _translate("a.txt", "text")),
    "glossary": Reader(
        _make_document("terms", "# terms\nhouse\tHaus\nold house\tAltbau\n"),
        "terms",
        _read_glossary,
    ),
    "API keys": Reader(_make_keys, "keys", lambda d: ApiKeys.load(d / "keys").owner("x")),
    "job manifest": Reader(_make_bulk, MANIFEST, _read_bulk),
    "request": Reader(_make_document("body", json.dumps(_REQUEST)), "body", _read_request),
    "record of a stage": Reader(_make_stage, "stage.json", _read_stage),
    "compressed lines": Reader(_make_gzip, "text.gz", lambda d: list(LineReader([d / "text.gz"]))),
}
