"""`bothends agreement`: does a model prefer the right verb to the wrong one?"""

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


def agreement(
    model: Annotated[list[Path], typer.Option(metavar="DIR...", help="One or several models.")],
    source: Annotated[Path, typer.Option(metavar="FILE", help="Source text, line by line.")],
    correct: Annotated[Path, typer.Option(metavar="FILE", help="Its translation, verbs right.")],
    incorrect: Annotated[Path, typer.Option(metavar="FILE", help="The same, a verb wrong.")],
    distances: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Words from subject to verb, a number in each line; else guessed for German.",
        ),
    ] = None,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = "onnx",
    invalid: InvalidOption = "error",
    json_: JsonFileOption = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw accuracies: .svg or .png.")
    ] = None,
) -> None:
    """Test agreement of subject and verb, by their distance.

    A pair counts as right if the correct translation is the more probable one.
    """
    from bothends.errors import BothendsError
    from bothends.evaluation.analyses.agreement import (
        draw_agreement,
        judge,
        make_pairs,
        parse_distances,
        report,
        table,
        tally,
    )
    from bothends.progress import progress
    from bothends.tables import print_tables
    from bothends.translator import Translator

    check_writable({"--json": json_, "--picture": picture}, (source, correct, incorrect, distances))
    sources = read_lines(source, invalid)
    if not sources:
        raise BothendsError(f"{source}: is empty, expected a sentence in each line")
    right, wrong = (
        read_aligned(path, source, len(sources), invalid) for path in (correct, incorrect)
    )
    numbers = None
    if distances is not None:
        lines = read_aligned(distances, source, len(sources), invalid)
        numbers = parse_distances(lines, distances)
    pairs = make_pairs(sources, right, wrong, numbers)
    results = []
    for directory in model:
        translator = Translator.load(directory, precision=precision, threads=threads, engine=engine)
        judgements = []
        with progress(str(directory), "pairs", len(pairs)) as advance:
            for judgement in judge(translator, pairs):
                judgements.append(judgement)
                advance(1)
        order = str(translator.description.order)
        results.append(tally(str(directory), order, pairs, judgements))
    notes = [
        "% of pairs whose right translation has the higher probability (95% interval, Wilson)."
    ]
    if numbers is None:
        notes.append("Distances are guessed from the German text: docs/analysis.md says how well.")
    print_tables([table(results)], notes)
    if json_ is not None:
        json_.write_text(json.dumps(report(results, numbers is None)) + "\n", encoding="utf-8")
    if picture is not None:
        draw_agreement(results, picture)
