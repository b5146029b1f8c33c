"""Every command that writes, as a table: what it reads, how it is called, what is left alone.

All of them run in a workspace of their own, in a child of this process, which may be damaged or
killed at will. A fork has everything imported, so that a fault costs a fraction of a second.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bothends.cli import run
from bothends.digests import DIGESTS
from corpus_data import make_sentences, write_lines
from tiny_model import sentences, tiny_model
from training_data import TINY, tiny_corpus, write_recipe

#: What holds times, or is drawn from it.
VOLATILE = {"training.json", "log.jsonl", "curves.svg", ".lock"}
#: Seconds after which a child is ended, whatever it waits for.
PATIENCE = 120


@dataclass(frozen=True)
class Command:
    """A command that writes into the workspace it runs in."""

    arguments: str
    #: fills the workspace with what it reads
    make: Callable[[Path], object]


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


COMMANDS: dict[str, Command] = {
    "prepare": Command(
        "prepare --source text --target text --vocabulary-size 300 --threads 1 --output new/corpus",
        _text,
    ),
    "splice": Command("splice --source text --lines 20 --output new-text", _text),
    "order": Command("order 2x1 --svg new.svg", lambda _: None),
    "train": Command("train r.yaml", _recipe),
    "average": Command("average run --last 2 --output new/model", _run),
    "export": Command("export model --no-check --output new/exported", _weights),
    "export in place": Command("export model --no-check", _weights),
    "distill": Command(
        "distill --teacher model --source text --processes 1 --shard-lines 5 --output new/corpus",
        _model,
    ),
    "evaluate": Command(
        "evaluate --model model --source text --reference text --beam 1 --bootstrap 0 "
        "--output new-text --json new.json",
        _model,
    ),
    "translate": Command("translate --model model text --beam 1 --output new-text", _model),
    "fill": Command("fill --model model --source ba --svg new.svg", _model),
    "analyse": Command(
        "analyse pmi --model model --source text --target text --json new.json",
        _model,
    ),
    "verify --record": Command("verify --record model", _model_without_digests),
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


def snapshot(workspace: Path) -> dict[str, str]:
    """Digests of all files in a workspace, but for hidden and volatile ones."""
    return {
        str(path.relative_to(workspace)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(workspace.rglob("*"))
        if path.is_file()
        and path.name not in VOLATILE
        and not any(part.startswith(".") for part in path.relative_to(workspace).parts)
    }
