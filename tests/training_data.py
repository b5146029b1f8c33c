"""A tiny prepared corpus and recipes for it: a run takes a fraction of a second."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from bothends.data.preparation import Preparation, TextFiles, prepare
from bothends.text.vocabulary_training import VocabularyOptions
from bothends.training.recipe import Recipe
from bothends.training.recipe_file import load_recipe
from corpus_data import make_sentences, write_lines

#: A whole recipe; `tiny_recipe` changes it by dotted keys.
TINY: dict[str, Any] = {
    "data": {"prepared": None},
    "model": {
        "preset": "tiny",
        "encoder_layers": 1,
        "decoder_layers": 1,
        "width": 16,
        "heads": 2,
        "feed_forward": 24,
    },
    "optimiser": {"learning_rate": 0.01, "warmup": 4},
    "batch": {
        "tokens": 300,
        "micro_tokens": 160,
        "max_source_length": 80,
        "max_target_length": 80,
    },
    "training": {"updates": 6},
    "validation": {"every": 3, "metric": "loss"},
    "checkpoints": {"every": 2, "keep": 2},
    "log_every": 2,
    "threads": 1,
    "device": "cpu",
}


@cache
def tiny_corpus(seed: int = 0, separate: bool = False, valid: bool = True) -> Path:
    """A prepared corpus of 120 pairs and 12 validation pairs, made once per session."""
    directory = Path(tempfile.mkdtemp(prefix="bothends-corpus-"))
    atexit.register(shutil.rmtree, directory)

    def text(name: str, count: int, seed: int) -> TextFiles:
        sentences = make_sentences(count, seed, words=40)
        source = write_lines(directory / f"{name}.source", sentences)
        swapped = [" ".join(reversed(line.split())) for line in sentences]
        return TextFiles((source,), (write_lines(directory / f"{name}.target", swapped),))

    prepare(
        Preparation(
            train=text("train", 120, seed),
            valid=text("valid", 12, seed + 100) if valid else None,
            output=directory / "prepared",
            vocabulary=VocabularyOptions(size=300, exact=False),
            separate=separate,
        )
    )
    return directory / "prepared"


def write_recipe(path: Path, content: Any) -> Path:
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def tiny_recipe(directory: Path, *overrides: str) -> Recipe:
    """The tiny recipe for a run in `directory`, with `key=value` overrides."""
    directory.mkdir(parents=True, exist_ok=True)
    path = write_recipe(directory / "tiny.yaml", TINY)
    return load_recipe(
        path, [f"data.prepared={tiny_corpus()}", f"run={directory / 'run'}", *overrides]
    )
