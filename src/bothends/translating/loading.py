"""Loading a model: its description, its vocabularies, and the engine that runs it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bothends.engines.protocol import Engine
from bothends.engines.registry import EngineName, Precision, default_engine, load_engine
from bothends.errors import BothendsError, warn
from bothends.jobs.processes import available_cores
from bothends.model.bundled import BUNDLED, find_model
from bothends.model.directory import Description, read_description
from bothends.model.shortlist import SHORTLIST, Shortlist, read_shortlist
from bothends.search.options import check_whole_number
from bothends.text.arguments import check_choice
from bothends.text.vocabulary import Vocabularies


@dataclass(frozen=True)
class LoadedModel:
    """What a `Translator` is made of; the fields are the arguments of its constructor."""

    engine: Engine[Any]
    description: Description
    vocabularies: Vocabularies
    threads: int
    engine_name: EngineName
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    shortlist: Shortlist | None = None


def load_model(
    directory: Path | str | None,
    precision: Precision | None,
    threads: int | None,
    engine: EngineName | None,
    device: str | None,
    shortlist: bool,
) -> LoadedModel:
    """The model of these settings; see `Translator.load`."""
    directory = find_model(directory, weights=engine == "torch")
    description = read_description(directory)
    check_choice("shortlist", shortlist)
    if threads is not None:
        check_whole_number("threads", threads, 1)
    engine = engine or default_engine(directory, precision, description)
    workers = threads or available_cores()
    with ThreadPoolExecutor(1) as beside:  # both take long, and neither holds Python's lock
        reading = beside.submit(load_vocabularies, directory, description)
        try:
            cores = min(workers, available_cores())
            network = load_engine(engine, directory, precision, device, description, cores)
        finally:  # of two errors, that of the vocabulary: it is the smaller file, and read first
            vocabularies = reading.result()
    ignored = shortlist and engine != "native" and (directory / SHORTLIST).is_file()
    if ignored and directory.parent != BUNDLED:  # nobody has asked for theirs
        warn(f"{directory}: the {engine} engine ignores its {SHORTLIST}")
    if engine == "torch":
        # PyTorch spreads a single batch over cores, or over a GPU.
        from bothends.engines.torch import limited_threads

        context = partial(limited_threads, threads)
        return LoadedModel(network, description, vocabularies, 1, engine, context)
    words = None
    if shortlist and engine == "native":
        sizes = description.model.vocabulary_size, description.model.target_size
        words = read_shortlist(directory, *sizes)
    return LoadedModel(network, description, vocabularies, workers, engine, shortlist=words)


def load_vocabularies(directory: Path, description: Description) -> Vocabularies:
    """The vocabularies of a model; an error if they have other sizes than its network."""
    model = description.model
    vocabularies = Vocabularies.load(directory, model.special)
    for side, vocabulary, words in (
        ("source", vocabularies.source, model.vocabulary_size),
        ("target", vocabularies.target, model.target_size),
    ):
        if vocabulary.size != words:
            raise BothendsError(
                f"{vocabulary.path}: {vocabulary.size} entries, but the model has {words} "
                f"{side} words: it is the vocabulary of another model"
            )
    return vocabularies
