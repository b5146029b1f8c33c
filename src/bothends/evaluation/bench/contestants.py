"""From what a user asks to have measured to systems that are ready to translate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from bothends.engines.prompt import with_prompt
from bothends.engines.registry import EngineName, Precision, default_engine
from bothends.errors import BothendsError, UsageError
from bothends.evaluation.bench.measure import Contestant
from bothends.evaluation.bench.peers import Peers, PeerSource, make_peers
from bothends.evaluation.bench.programs import run_programs
from bothends.evaluation.bench.synthetic import (
    never_ending,
    random_shortlist,
    random_sources,
    random_weights,
    synthetic_config,
)
from bothends.evaluation.bench.systems import Bothends, Label
from bothends.evaluation.bench.workload import (
    OPTIONS,
    RandomIds,
    TextWorkload,
    Workload,
    read_pairs,
)
from bothends.jobs.filter_process import ProgramOptions
from bothends.metrics.named import default_tokenizer
from bothends.metrics.sums import bleu, tokenizer_for
from bothends.model.bundled import find_model
from bothends.model.config import ModelConfig
from bothends.model.directory import WEIGHTS, Description, read_description, write_description
from bothends.model.hub import origin, short_name, shown
from bothends.model.shortlist import read_shortlist
from bothends.model.weights import Weights, in_float32, read_weights
from bothends.order import GenerationOrder
from bothends.text.vocabulary import Vocabularies

#: The orders of `--synthetic base`.
DEFAULT_ORDERS = "1x1,2x1,2x2"
#: Sentences in a turn, unless a user says otherwise.
SYNTHETIC_SENTENCES, TEXT_SENTENCES = 4, 64


@dataclass(frozen=True)
class Synthetic:
    """A shape and the orders it is to be measured with: `base:1x1,2x1`."""

    preset: str
    orders: tuple[GenerationOrder, ...]

    @classmethod
    def parse(cls, text: str) -> Synthetic:
        name, _, orders = text.partition(":")
        synthetic_config(name)  # an unknown name is an error here, not minutes later
        parsed = map(GenerationOrder.parse, (orders or DEFAULT_ORDERS).split(","))
        return cls(name, tuple(dict.fromkeys(parsed)))


@dataclass(frozen=True)
class BenchOptions:
    """What is to be measured."""

    synthetic: tuple[Synthetic, ...]
    models: tuple[Path, ...]
    precisions: tuple[Precision, ...]
    peers: Peers
    largest_batch: int
    source_length: int
    target_length: int
    #: empty: the default engine of each model
    engines: tuple[EngineName, ...] = ()
    sentences: int | None = None
    source: Path | None = None
    reference: Path | None = None
    seed: int = 0
    #: programs that translate the text, too
    commands: tuple[ProgramOptions, ...] = ()
    #: use a model's shortlist, if it has one
    shortlist: bool = True
    #: words of a random shortlist that synthetic models are measured with, too
    synthetic_words: int | None = None


def gather(wanted: BenchOptions, scratch: Path) -> tuple[list[Contestant], list[str]]:
    """All systems of a run, and notes about who is missing.

    Models that are made for the run are written under `scratch`.
    """
    if wanted.commands and not wanted.source:
        raise UsageError("--command needs --source FILE, the text to translate")
    if not wanted.synthetic and not wanted.models and not wanted.commands:
        raise UsageError("nothing to measure: name a --model DIR, or --synthetic base:1x1,2x1")
    shapes = [spec.preset for spec in wanted.synthetic]
    if len(set(shapes)) < len(shapes):
        raise UsageError("--synthetic names a shape twice: list its orders once, base:1x1,2x1")
    if wanted.source and not wanted.models and not wanted.commands:
        raise UsageError("--source is text for models: name a --model DIR to translate it")
    if wanted.reference and not wanted.source:
        raise UsageError("--reference is a translation of --source, which is missing")
    notes = list(wanted.peers.notes)
    contestants = [each for spec in wanted.synthetic for each in _synthetic(spec, wanted, scratch)]
    contestants += _models(wanted, scratch, notes)
    return contestants, notes


def _synthetic(spec: Synthetic, wanted: BenchOptions, scratch: Path) -> Iterator[Contestant]:
    config = synthetic_config(spec.preset)
    # A shallow decoder is compared with the whole one.
    family, baseline = spec.preset.partition("-")[0], "-" not in spec.preset
    workload = _random_ids(f"synthetic-{spec.preset}", config, wanted, never_ends=True)
    shortlist = None
    if wanted.synthetic_words is not None:
        words = wanted.synthetic_words, wanted.source_length, wanted.seed
        shortlist = random_shortlist(config, *words)
    for precision in wanted.precisions:
        # Orders that need the same weights share the graphs and the memory they take.
        for directions, group in groupby(sorted(spec.orders, key=_embedded), key=_embedded):
            orders = list(group)
            directory = scratch / f"{spec.preset}-{directions}-{precision}"
            weights = _endless_weights(config, orders[0], wanted.seed)
            _write_model(directory, config, orders[0], weights, precision)
            for engine in wanted.engines or (default_engine(directory),):
                if engine == "native" and precision != "int8":
                    continue
                load = _loader(directory, engine)
                kernels = getattr(load(1), "kernels", None)
                for order in orders:
                    label = Label(family, spec.preset, str(order), engine, precision)
                    label = replace(label, instruction_set=kernels, baseline=baseline)
                    model = order, config, load
                    yield Contestant(Bothends(label, *model), workload, config)
                    if engine == "native" and shortlist is not None:
                        label = replace(label, shortlist=True, baseline=False)
                        yield Contestant(Bothends(label, *model, shortlist), workload, config)
    plain = _endless_weights(config, GenerationOrder(), wanted.seed)
    source = PeerSource(family, spec.preset, config, plain, shortlist, baseline)
    for peer in make_peers(wanted.peers, source, wanted.precisions, scratch):
        yield Contestant(peer, workload, config)


def _models(wanted: BenchOptions, scratch: Path, notes: list[str]) -> Iterator[Contestant]:
    """Exported models as they are, and the peers with the weights of the first `1x1` among them."""
    pairs = None
    if wanted.source is not None:
        pairs = read_pairs(wanted.source, wanted.reference, wanted.sentences or TEXT_SENTENCES)
    peers_wait = bool(wanted.peers.names)
    with_weights = wanted.peers.asked_for or "torch" in (wanted.engines or ())
    directories = [find_model(model, weights=with_weights) for model in wanted.models]
    notes += (f"{short_name(each)}: {origin(each)}" for each in directories if origin(each))
    for directory, name in zip(directories, _short_names(directories), strict=True):
        description = read_description(directory)
        config, order = description.model, description.order
        shortlist = None
        if wanted.shortlist:
            shortlist = read_shortlist(directory, config.vocabulary_size, config.target_size)
        workload: Workload
        if pairs is None or wanted.source is None:
            workload = _random_ids("random-ids", config, wanted, never_ends=False)
        else:
            vocabularies = Vocabularies.load(directory, config.special)
            tokenizer = tokenizer_for(description.target_language)
            if pairs.references is not None:
                bleu(tokenizer)  # what it wants and is not installed is named before the work
            workload = TextWorkload(
                wanted.source.name, pairs.lines, vocabularies, config, pairs.references, tokenizer
            )
            if overlong := workload.overlong:
                notes.append(
                    f"{name}: {overlong:,} lines were longer than {OPTIONS.max_source_length} "
                    "tokens, the rest of them is not translated"
                )
        for engine in wanted.engines or (default_engine(directory),):
            load = _loader(directory, engine)
            words = shortlist if engine == "native" else None
            label = Label(
                "models",
                name,
                str(order),
                engine,
                load(1).precision,
                words is not None,
                getattr(load(1), "kernels", None),
            )
            system = Bothends(label, order, config, load, words)
            yield Contestant(system, workload, config)
        if peers_wait and order == GenerationOrder():
            peers_wait = False
            if not (directory / WEIGHTS).is_file() and not wanted.peers.asked_for:
                notes.append(
                    f"no peers for the models: {name} was exported without its weights "
                    f"({WEIGHTS}), which peers are made from."
                )
                continue
            try:
                weights = in_float32(read_weights(directory, description))
            except BothendsError as error:
                if wanted.peers.asked_for:
                    raise
                notes.append(f"no peers for the models: {error}")
                continue
            source = PeerSource("models", name, config, weights, shortlist)
            for peer in make_peers(wanted.peers, source, wanted.precisions, scratch):
                yield Contestant(peer, workload, config)
    if peers_wait and wanted.models:
        notes.append("no peers for the models: none of them is 1x1, which is all that peers run.")


@contextmanager
def programs(wanted: BenchOptions) -> Iterator[list[Contestant]]:
    """The programs of a run, as long as they run."""
    if not wanted.commands or wanted.source is None:
        yield []
        return
    pairs = read_pairs(wanted.source, wanted.reference, wanted.sentences or TEXT_SENTENCES)
    tokenizer = default_tokenizer(wanted.models)
    with run_programs(wanted.commands, wanted.source.name, pairs, tokenizer) as contestants:
        yield contestants


def _write_model(
    directory: Path,
    config: ModelConfig,
    order: GenerationOrder,
    weights: Weights,
    precision: Precision,
) -> None:
    """A model directory that holds what the runtime needs: a description and two graphs."""
    try:
        from bothends.engines.export import write_graphs
    except ImportError as error:
        raise BothendsError(
            f"--synthetic writes graphs, which needs {error.name}: pip install {error.name}"
        ) from None
    directory.mkdir(parents=True)
    write_description(directory, Description(order=order, model=config))
    write_graphs(directory, weights, config, order, precision)


def _loader(directory: Path, engine: EngineName) -> Callable[[int], Any]:
    """The engine of a directory by its number of threads, loaded once for each."""
    if engine == "native":
        from bothends.engines.native.engine import NativeEngine

        return lru_cache(maxsize=None)(lambda threads: NativeEngine.load(directory, cores=threads))
    from bothends.engines.onnx.engine import OnnxEngine

    description = read_description(directory)

    def load(threads: int) -> Any:
        onnx = OnnxEngine.load(directory, threads)
        return with_prompt(onnx, description.model, description.order)

    return lru_cache(maxsize=None)(load)


def _random_ids(
    name: str, config: ModelConfig, wanted: BenchOptions, never_ends: bool
) -> RandomIds:
    sentences = wanted.sentences or SYNTHETIC_SENTENCES
    drawn = random_sources(
        config, sentences + wanted.largest_batch, wanted.source_length, wanted.seed
    )
    name = f"{name},source={wanted.source_length},target={wanted.target_length}"
    return RandomIds(name, drawn, sentences, wanted.target_length, never_ends)


def _endless_weights(config: ModelConfig, order: GenerationOrder, seed: int) -> Weights:
    return never_ending(random_weights(config, order, seed), config)


def _embedded(order: GenerationOrder) -> int:
    """Direction embeddings that an order needs: what its weights depend on."""
    return order.directions if order.uses_direction_embedding else 0


def _short_names(directories: Sequence[Path]) -> list[str]:
    """The last part of each path, or the whole path where two would be called the same."""
    names = [short_name(directory) for directory in directories]
    if len(set(names)) < len(names):
        return [shown(directory) for directory in directories]
    return names
