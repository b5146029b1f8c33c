"""Every command that writes, as a table: what it reads, how it is called, what is left alone.

All of them run in a workspace of their own, in a child of this process, which may be damaged or
killed at will. A fork has everything imported, so that a fault costs a fraction of a second.

`test_faults.py` compares the table with the command line: a command that writes, and has no row
here, fails a test, and so does an option that names an output.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import xml.etree.ElementTree
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import bothends.chain.run
import bothends.distillation.distill
import bothends.jobs.pool
import bothends.planning
from bothends.cli import run
from bothends.engines.export import export_model
from bothends.evaluation.bench.synthetic import random_weights
from bothends.jobs.pool import InThisProcess
from bothends.model.config import preset
from bothends.model.directory import Description, write_description
from bothends.model.weights import write_weights
from bothends.order import GenerationOrder
from bothends.planning import Measured
from bothends.serve.keys import ApiKeys
from bothends.storage.digests import DIGESTS
from bothends.text.vocabulary import VOCABULARY, Vocabulary
from corpus_data import make_sentences, write_lines
from tiny_model import sentences, tiny_model
from training_data import TINY, tiny_corpus, write_recipe

#: What holds times, or is drawn from it, wherever it is: it has to be whole, and that is all.
VOLATILE = {"training.json", "log.jsonl", "curves.svg"}
#: Seconds after which a child is ended, whatever it waits for.
PATIENCE = 600


@dataclass(frozen=True)
class Command:
    """A command that writes into the workspace it runs in."""

    arguments: str
    #: fills the workspace with what it reads
    make: Callable[[Path], object]
    #: files that are never the same twice, besides those that are `VOLATILE` everywhere
    volatile: frozenset[str] = field(default_factory=frozenset)
    #: what a child changes in itself before the command runs: processes it would start, for one
    patch: Callable[[], object] = lambda: None
    #: takes seconds, so that the suite leaves most of its faults to the slow tests
    slow: bool = False


def _text(workspace: Path) -> None:
    write_lines(workspace / "text", make_sentences(60, words=40))


def _model(workspace: Path) -> None:
    shutil.copytree(tiny_model(), workspace / "model")
    write_lines(workspace / "text", sentences(12))


def _model_without_digests(workspace: Path) -> None:
    _model(workspace)
    (workspace / "model" / DIGESTS).unlink()


def _weights(workspace: Path) -> None:
    shutil.copytree(tiny_model(precision=None), workspace / "model")


def _recipe(workspace: Path) -> None:
    shutil.copytree(tiny_corpus(), workspace / "corpus")
    settings = {"updates": 4}
    data = {"prepared": "corpus"}
    write_recipe(workspace / "r.yaml", {**TINY, "data": data, "training": settings, "run": "run"})


def _run(workspace: Path) -> None:
    _recipe(workspace)
    assert in_child("train r.yaml", workspace).status == 0
    shutil.rmtree(workspace / "corpus")


def _page(workspace: Path) -> None:
    _model(workspace)
    first, second, third = sentences(3)
    (workspace / "page.md").write_text(f"# {first}\n\n- *{second}*\n\n{third}\n")


def _two_texts(workspace: Path) -> None:
    _model(workspace)
    write_lines(workspace / "text2", sentences(7, seed=1))
    (workspace / "new").mkdir()


def _pairs(workspace: Path) -> None:
    _model(workspace)
    lines = sentences(12)
    write_lines(workspace / "right", lines)
    write_lines(workspace / "wrong", [f"{line} ba" for line in lines])
    write_lines(workspace / "distances", ["2"] * 12)


def _left_to_right(workspace: Path) -> None:
    """A model that other libraries can have, too; its weights are random."""
    directory = workspace / "model"
    directory.mkdir()
    shutil.copyfile(tiny_model() / VOCABULARY, directory / VOCABULARY)
    size = Vocabulary.load(directory / VOCABULARY).size
    config = preset("tiny", vocabulary_size=size, encoder_layers=1, decoder_layers=1)
    write_weights(directory, random_weights(config, GenerationOrder(), 0))
    write_description(directory, Description(model=config))
    export_model(directory, "float32", directory)


def _foreign(kind: str) -> Callable[[Path], None]:
    def make(workspace: Path) -> None:
        _left_to_right(workspace)
        ending = in_child(f"convert model --to {kind} --output foreign", workspace)
        assert ending.status == 0, ending.errors
        shutil.rmtree(workspace / "model")

    return make


def _argos(workspace: Path) -> None:
    _foreign("ctranslate2")(workspace)
    directory = workspace / "foreign"
    (directory / "source.spm").rename(workspace / "sentencepiece.model")
    (directory / "target.spm").unlink()
    with zipfile.ZipFile(workspace / "foreign.argosmodel", "w") as package:
        package.writestr("package/metadata.json", "{}")
        package.write(workspace / "sentencepiece.model", "package/sentencepiece.model")
        for path in directory.iterdir():
            package.write(path, f"package/model/{path.name}")
    shutil.rmtree(directory)


def _chain(workspace: Path) -> None:
    for name, count in (("train", 60), ("valid", 6)):
        lines = make_sentences(count, len(name), words=40)
        write_lines(workspace / f"{name}.source", lines)
        write_lines(workspace / f"{name}.target", [" ".join(reversed(x.split())) for x in lines])
    training = {"updates": 2}
    write_recipe(workspace / "r.yaml", {**TINY, "data": {"prepared": "-"}, "training": training})
    model = {"recipe": "r.yaml", "average": 1, "precision": "float32"}
    chain = {
        "directory": "runs",
        "corpus": {
            **{side: f"train.{side}" for side in ("source", "target")},
            **{f"valid_{side}": f"valid.{side}" for side in ("source", "target")},
            "vocabulary_size": 300,
        },
        "teacher": model,
        "distill": {"beam": 1},
        "students": {"student": {**model, "order": "2x1"}},
        "evaluation": {"source": "valid.source", "reference": "valid.target", "beams": [1]},
    }
    write_recipe(workspace / "c.yaml", chain)


def _stages_in_this_process() -> None:
    setattr(bothends.chain.run, "run_command", lambda arguments, _: run(arguments))  # noqa: B010


def _workers_in_this_process() -> None:
    setattr(bothends.jobs.pool, "parse_pool", lambda _: InThisProcess())  # noqa: B010
    setattr(bothends.distillation.distill, "_pool", lambda *_: InThisProcess())  # noqa: B010


def _no_measuring() -> None:
    """Measuring starts processes, takes a minute, and gives other figures each time."""
    figures = dict.fromkeys(
        ("rate_alone", "rate", "start", "restart", "overhead", "line_overhead"), 1.0
    )
    found = Measured(engine="onnx", kind="any", lines=1, cores=1, serial=0.0, **figures)
    setattr(bothends.planning, "measure", lambda *_: found)  # noqa: B010


COMMANDS: dict[str, Command] = {
    "prepare": Command(
        "prepare --source text --target text --vocabulary-size 300 --threads 1 --output new/corpus",
        _text,
    ),
    "denoise": Command("denoise --text text --output new-text", _text),
    "splice": Command("splice --source text --lines 20 --output new-text", _text),
    "order": Command("order 2x1 --svg new.svg", lambda _: None),
    "train": Command("train r.yaml", _recipe),
    "average": Command("average run --last 2 --output new/model", _run),
    "export": Command("export model --no-check --output new/exported", _weights),
    "export in place": Command("export model --no-check", _weights),
    "export compressed": Command(
        "export model --no-check --compress --output new/exported", _weights
    ),
    "distill": Command(
        "distill --teacher model --source text --processes 1 --shard-lines 5 --output new/corpus "
        "--picture new.svg",
        _model,
        volatile=frozenset({"new.svg"}),
        patch=_workers_in_this_process,
    ),
    "evaluate": Command(
        "evaluate --model model --source text --reference text --beam 1 --bootstrap 0 "
        "--output new-text --json new.json --picture new.svg",
        _model,
    ),
    "evaluate to a bitmap": Command(
        "evaluate --hypothesis text --reference text --bootstrap 0 --picture new.png", _model
    ),
    "translate": Command("translate --model model text --beam 1 --output new-text", _model),
    "translate to a directory": Command(
        "translate --model model text text2 --beam 1 --output new", _two_texts
    ),
    "translate a document": Command(
        "translate --model model page.md --beam 1 --output new.md", _page
    ),
    "translate --workers": Command(
        "translate --model model text --beam 1 --workers 2 --shard-lines 5 --output new-text",
        _model,
        patch=_workers_in_this_process,
    ),
    "translate --workers --picture": Command(
        "translate --model model text --beam 1 --workers 2 --shard-lines 5 --output new-text "
        "--picture new.svg",
        _model,
        volatile=frozenset({"new.svg"}),
        patch=_workers_in_this_process,
    ),
    "summarize": Command("summarize --model model text --beam 1 --output new-text", _model),
    "summarize --workers --picture": Command(
        "summarize --model model text --beam 1 --workers 2 --shard-lines 5 --output new-text "
        "--picture new.svg",
        _model,
        volatile=frozenset({"new.svg"}),
        patch=_workers_in_this_process,
    ),
    "fill": Command("fill --model model --source ba --svg new.svg", _model),
    "analyse pmi": Command(
        "analyse pmi --model model --source text --target text --json new.json",
        _model,
    ),
    "analyse agreement": Command(
        "analyse agreement --model model --source text --correct right --incorrect wrong "
        "--distances distances --json new.json --picture new.svg",
        _pairs,
    ),
    "analyse lengths": Command(
        "analyse lengths --source text --reference text --hypothesis right --bins 2 "
        "--bootstrap 10 --json new.json --picture new.svg",
        _pairs,
    ),
    "bench": Command(
        "bench --model model --source text --batch 1 --beam 1 --repeat 1 --sentences 2 "
        "--peers none --json new.json --picture new.svg",
        _model,
        volatile=frozenset({"new.json", "new.svg"}),
    ),
    "plan": Command(
        "plan --model model --source text --lines 1000 --json new.json", _model, patch=_no_measuring
    ),
    "convert from Marian": Command("convert foreign --output new/model", _foreign("marian")),
    "convert from CTranslate2": Command(
        "convert foreign --output new/model", _foreign("ctranslate2")
    ),
    "convert from Argos": Command("convert foreign.argosmodel --output new/model", _argos),
    "convert to Marian": Command("convert model --to marian --output new/model", _left_to_right),
    "convert to CTranslate2": Command(
        "convert model --to ctranslate2 --output new/model", _left_to_right
    ),
    "chain": Command("chain c.yaml", _chain, patch=_stages_in_this_process, slow=True),
    "shortlist": Command(
        "shortlist --model model --source text --target text --held-out 2 --beam 1 --json new.json",
        _model,
    ),
    "verify --record": Command("verify --record model", _model_without_digests),
    "serve --new-key": Command(
        "serve --api-keys keys --new-key ann", lambda _: None, volatile=frozenset({"keys"})
    ),
}

#: Commands that write nothing, with arguments that show it.
READING: dict[str, Command] = {
    "demo": Command("demo --rounds 1", lambda _: None),
    "push": Command("push model someone/model --license mit --dry-run", _model),
    "score": Command("score --model model --source text --target text", _model),
}


@dataclass(frozen=True)
class Ending:
    """How a child ended: its exit status, or minus the signal that killed it."""

    status: int
    errors: str


def in_child(
    arguments: str,
    workspace: Path,
    before: Callable[[], object] = lambda: None,
    stdout: int | None = None,
) -> Ending:
    """Run a command in a child of this process, after `before` has been called there."""
    # A pipe holds more than a command has to say, and does not count as a file on a full disk.
    read, errors = os.pipe()
    child = os.fork()
    if child == 0:
        status = 99
        try:
            signal.alarm(PATIENCE)
            nothing = os.open(os.devnull, os.O_RDWR)
            for target, handle in ((0, nothing), (1, stdout or nothing), (2, errors)):
                os.dup2(handle, target)
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
            os.chdir(workspace)
            before()
            status = run(arguments.split())
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(errors)
    with open(read, "rb") as told:
        text = told.read().decode()
    return Ending(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text)


def snapshot(workspace: Path, volatile: frozenset[str] = frozenset()) -> dict[str, str]:
    """Digests of all files in a workspace, but for hidden ones; volatile ones are only whole."""
    return {
        str(path.relative_to(workspace)): _whole(path)
        if path.name in VOLATILE | volatile
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(workspace.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(workspace).parts)
    }


def _whole(path: Path) -> str:
    """`whole`, or an error: nobody may ever see half a file."""
    if path.suffix == ".svg":
        xml.etree.ElementTree.parse(path)
    elif path.name == "log.jsonl":  # whose last line may wait for the rest of it
        for line in path.read_bytes().splitlines()[:-1]:
            json.loads(line)
    elif path.name == "keys":
        if not path.stat().st_size:  # killed before the first one was written
            return "empty"
        return f"whole, of {' and '.join(ApiKeys.load(path).hashes)}"
    else:
        json.loads(path.read_bytes())
    return "whole"
