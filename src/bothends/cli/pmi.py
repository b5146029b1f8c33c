"""`bothends pmi`: perplexities, and how much words written at once depend on each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bothends.cli.evaluate import read_aligned, read_lines
from bothends.cli.options import (
    EngineOption,
    InvalidOption,
    JsonFileOption,
    PrecisionOption,
    ThreadsOption,
)
from bothends.cli.outputs import check_writable


def pmi(
    model: Annotated[list[Path], typer.Option(metavar="DIR...", help="Models of several orders.")],
    source: Annotated[Path, typer.Option(metavar="FILE", help="Source text, line by line.")],
    target: Annotated[Path, typer.Option(metavar="FILE", help="Its translation, line by line.")],
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Samples for intervals; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = "onnx",
    invalid: InvalidOption = "error",
    json_: JsonFileOption = None,
) -> None:
    """Estimate the mutual information of words written in one step.

    An estimate takes two models: 1x2 and 1x1, or 2x1 and 2x1+autoregressive.
    """
    from bothends.errors import BothendsError
    from bothends.evaluation.analyses.pmi import Model, analyse, tables
    from bothends.progress import progress
    from bothends.tables import print_tables
    from bothends.translator import Translator

    check_writable({"--json": json_}, (source, target))
    sources = read_lines(source, invalid)
    if not sources:
        raise BothendsError(f"{source}: is empty, expected a sentence in each line")
    targets = read_aligned(target, source, len(sources), invalid)
    models = []
    for directory in model:
        translator = Translator.load(directory, precision=precision, threads=threads, engine=engine)
        scores = []
        with progress(str(directory), "pairs", len(sources)) as advance:
            for score in translator.stream_scores(zip(sources, targets, strict=True)):
                scores.append(score)
                advance(1)
        models.append(Model.of(str(directory), translator.description.order, scores))
    analysis = analyse(models, bootstrap, seed)
    notes = ["Per symbol, end symbols included; natural logs."]
    if bootstrap:
        notes.append(f"95% intervals of {bootstrap:,} bootstrap samples, seed {seed}.")
    if not analysis.estimates:
        notes.append("No PMI: it takes 1x2 and 1x1, or 2x1 and 2x1+autoregressive.")
    print_tables(tables(analysis), notes)
    if json_ is not None:
        json_.write_text(json.dumps(analysis.as_json()) + "\n", encoding="utf-8")
