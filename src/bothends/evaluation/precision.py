"""What a lower precision costs: the outputs of one engine against those of another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bothends.engines.export import export_model
from bothends.engines.onnx.engine import OnnxEngine
from bothends.engines.prompt import with_prompt
from bothends.errors import BothendsError
from bothends.evaluation.bench.synthetic import random_sources
from bothends.metrics.sums import bleu, tokenizer_for
from bothends.model.directory import (
    CONFIG,
    read_description,
    record_model,
    write_description,
)
from bothends.model.lengths import LengthStatistics
from bothends.search.generator import Generator, Sentence
from bothends.search.options import SearchOptions
from bothends.text.lines import LineReader
from bothends.text.vocabulary import Vocabularies

#: Sentences that are translated together.
BATCH = 16
#: Lines of a sample that are used, and sentences that are made up if there is no sample.
SAMPLE_LINES = 200
RANDOM_SENTENCES = 32
RANDOM_LENGTH = 16

Tokens = list[int]


@dataclass(frozen=True)
class Agreement:
    """How near two engines are on a sample."""

    outputs: list[Tokens]
    reference_outputs: list[Tokens]
    #: logprob of each symbol of the reference's outputs: the engine's minus the reference's
    differences: list[float]

    @property
    def identical(self) -> float:
        """Share of outputs that are the same, token for token."""
        pairs = zip(self.outputs, self.reference_outputs, strict=True)
        return float(np.mean([one == other for one, other in pairs]))

    @property
    def mean_difference(self) -> float:
        """Per symbol; below 0 where the engine likes the reference's outputs less."""
        return float(np.mean(self.differences))

    @property
    def mean_distance(self) -> float:
        """Per symbol, whatever its sign."""
        return float(np.mean(np.abs(self.differences)))


def compare(
    generator: Generator,
    reference: Generator,
    sources: Sequence[Sentence],
    options: SearchOptions,
) -> Agreement:
    """Translate `sources` with both generators, and score the reference's outputs with both."""
    outputs: list[Tokens] = []
    reference_outputs: list[Tokens] = []
    differences: list[float] = []
    for start in range(0, len(sources), BATCH):
        batch = sources[start : start + BATCH]
        mine, theirs = (
            [best[0].tokens for best in each.search(batch, options)]
            for each in (generator, reference)
        )
        outputs += mine
        reference_outputs += theirs
        scores, reference_scores = (each.score(batch, theirs) for each in (generator, reference))
        for score, reference_score in zip(scores, reference_scores, strict=True):
            symbols = [*score.token_logprobs, score.end_logprob]
            expected = [*reference_score.token_logprobs, reference_score.end_logprob]
            differences += np.subtract(symbols, expected).tolist()
    return Agreement(outputs, reference_outputs, differences)


@dataclass(frozen=True)
class Sample:
    """Lines to translate in both precisions, without empty ones, and their translations."""

    path: Path
    lines: list[str]
    references: list[str] | None

    @classmethod
    def read(cls, path: Path, reference: Path | None) -> Sample:
        """The first lines of a file. Invalid UTF-8 is replaced: a comparison can do without."""
        lines = _first_lines(path)
        kept = [line for line in lines if line.strip()]
        if not kept:
            raise BothendsError(f"{path}: no text in its first {SAMPLE_LINES} lines")
        if reference is None:
            return cls(path, kept, None)
        references = _first_lines(reference)
        if len(references) != len(lines):
            raise BothendsError(
                f"{reference}: {len(references)} lines, but {path} has {len(lines)}: expected "
                "equally many"
            )
        pairs = zip(lines, references, strict=True)
        return cls(path, kept, [text for line, text in pairs if line.strip()])


def add_lengths(directory: Path, sample: Sample) -> bool:
    """Add the lengths of a sample's pairs to a model without lengths; whether it was done.

    Models get them from the text that they learn from; converted and older ones have none. How long
    a source may be, a sample does not tell.
    """
    description = read_description(directory)
    if description.lengths is not None or sample.references is None:
        return False
    vocabularies = Vocabularies.load(directory, description.model.special)
    source, target = (
        np.array(list(map(len, vocabulary.encode(lines))))
        for vocabulary, lines in (
            (vocabularies.source, sample.lines),
            (vocabularies.target, sample.references),
        )
    )
    lengths = LengthStatistics.of(source, target)
    if lengths is None or not os.access(directory / CONFIG, os.W_OK):
        return False
    lengths = replace(lengths, longest_source=None)
    write_description(directory, replace(description, lengths=lengths))
    record_model(directory, [CONFIG])
    return True


def report_int8(directory: Path, exported: Path, sample: Sample | None) -> Iterator[str]:
    """What int8 changes: the export of a model against one in float32, in a line or two."""
    description = read_description(directory)
    special = description.model.special
    vocabularies = None
    sources: Sequence[Sentence]
    if sample is None:
        drawn = random_sources(description.model, RANDOM_SENTENCES, RANDOM_LENGTH, seed=0)
        sources = [source[:-1] for source in drawn]  # without the end symbol
        name = f"{len(sources)} random sentences (--sample FILE for real ones)"
    else:
        vocabularies = Vocabularies.load(directory, special)
        longest = description.model.longest_source
        sources = [source[:longest] for source in vocabularies.source.encode(sample.lines)]
        name = f"{len(sources)} lines of {sample.path}"
    options = SearchOptions()
    with TemporaryDirectory() as scratch:
        export_model(directory, "float32", Path(scratch))
        int8, float32 = (
            Generator(
                with_prompt(OnnxEngine.load(each), description.model, description.order),
                description.order,
                special,
                description.model,
            )
            for each in (exported, Path(scratch))
        )
        agreement = compare(int8, float32, sources, options)
    yield (
        f"int8 against float32 on {name}, beam {options.beam}: {agreement.identical:.1%} of "
        f"outputs identical, logprob per symbol {agreement.mean_difference:+.4f} "
        f"(mean distance {agreement.mean_distance:.4f})"
    )
    if vocabularies is not None and sample is not None and sample.references is not None:
        yield _bleu(
            vocabularies.target.decode(agreement.outputs),
            vocabularies.target.decode(agreement.reference_outputs),
            sample.references,
            tokenizer_for(description.target_language),
        )


def _bleu(int8: list[str], float32: list[str], references: list[str], tokenizer: str) -> str:
    try:
        metric = bleu(tokenizer)
    except BothendsError as error:
        return f"BLEU was not computed: {error}"
    lower, higher = (metric.of(texts, references) for texts in (int8, float32))
    return (
        f"BLEU {lower:.2f} in int8, {higher:.2f} in float32 ({lower - higher:+.2f}), "
        f"{metric.signature}"
    )


def _first_lines(path: Path) -> list[str]:
    # None says that input is slow; a report can wait for it.
    lines = (line for line in LineReader([path], "replace") if line is not None)
    return list(islice(lines, SAMPLE_LINES))
