"""A real model directory, small enough to be made anew: vocabulary, weights and exported graphs.

It has learned for a few seconds to copy made-up sentences. That is enough to end a translation in
time, to say different things of different lines, and to be sure of some words and in doubt about
others: what a test needs that compares two ways of translating.
"""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch

from bothends.engines.export import export_model
from bothends.engines.registry import Precision
from bothends.model.config import Dropout, preset
from bothends.model.directory import Description
from bothends.model.torch.checkpoint import save_model
from bothends.model.torch.transformer import Transformer
from bothends.order import GenerationOrder
from bothends.text.vocabulary import VOCABULARY
from bothends.text.vocabulary_training import VocabularyOptions, train_vocabulary
from toy_task import Pair, loss_of

SYLLABLES = ("ba", "bo", "da", "du", "ga", "gi", "ka", "ki", "la", "lo", "ma", "mu")
STEPS, BATCH, RATE = 120, 32, 5e-3


def sentences(count: int, seed: int = 0) -> list[str]:
    """Made-up sentences of 1 to 8 words, always of the same made-up words."""
    generator = random.Random(0)
    words = ["".join(generator.choices(SYLLABLES, k=generator.randint(1, 3))) for _ in range(100)]
    generator.seed(seed)
    return [" ".join(generator.choices(words, k=generator.randint(1, 8))) for _ in range(count)]


def tiny_model(order: str = "2x1", precision: Precision | None = "float32") -> Path:
    """The directory of a tiny model, made once per session; without graphs if `precision` is None.

    Not to be changed: a test that damages a model copies it first.
    """
    return _trained(order) if precision is None else _exported(order, precision)


@cache
def _exported(order: str, precision: Precision) -> Path:
    directory = _new_directory()
    shutil.copytree(_trained(order), directory, dirs_exist_ok=True)
    export_model(directory, precision, directory)
    return directory


@cache
def _trained(name: str) -> Path:
    order = GenerationOrder.parse(name)
    directory = _new_directory()
    options = VocabularyOptions(size=400, exact=False)
    vocabulary = train_vocabulary(sentences(500), directory / VOCABULARY, options)
    config = preset(
        "tiny",
        vocabulary_size=vocabulary.size,
        encoder_layers=1,
        decoder_layers=1,
        norm="pre",
        dropout=Dropout(residual=0, attention=0, activation=0, embedding=0),
    )
    torch.manual_seed(1)
    model = Transformer(config, order)
    _learn_to_copy(model, vocabulary.encode(sentences(STEPS * BATCH, seed=1)))
    save_model(directory, model, Description(model=config, order=order))
    return directory


def _learn_to_copy(model: Transformer, lines: Sequence[list[int]]) -> None:
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 30) * (1 - step / STEPS)
        batch = lines[step * BATCH : (step + 1) * BATCH]
        optimizer.zero_grad()
        loss_of(model, [Pair(line, line) for line in batch]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _new_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="bothends-tiny-"))
    atexit.register(shutil.rmtree, directory)
    return directory
