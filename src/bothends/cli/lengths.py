"""`bothends lengths`: quality and speed by the length of the source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bothends.cli.evaluate import read_aligned, read_lines
from bothends.cli.options import EngineOption, InvalidOption, JsonFileOption, PrecisionOption
from bothends.cli.outputs import check_writable

if TYPE_CHECKING:
    from bothends.engines.registry import EngineName, Precision
    from bothends.evaluation.analyses.lengths import Translate


def lengths(
    source: Annotated[Path, typer.Option(metavar="FILE", help="Text, line by line.")],
    reference: Annotated[
        Path, typer.Option(metavar="FILE", help="The right translations, one per line.")
    ],
    model: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR...", help="Models to translate and time; the first is the baseline."
        ),
    ] = None,
    hypothesis: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Translations that exist already; not timed."),
    ] = None,
    bins: Annotated[int, typer.Option(min=1, help="Bins of equally many sentences.")] = 10,
    metric: Annotated[str, typer.Option(help="As in evaluate, one.")] = "bleu",
    tokenizer: Annotated[str | None, typer.Option(help="sacreBLEU's, as in evaluate.")] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Samples for intervals; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap and of turns.")] = 0,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept; 1 is greedy search.")] = 4,
    precision: PrecisionOption = None,
    engine: EngineOption = "onnx",
    invalid: InvalidOption = "error",
    json_: JsonFileOption = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw quality and speed-up: .svg or .png.")
    ] = None,
) -> None:
    """Measure quality and speed by the length of the source.

    A test set is sorted by length and cut into bins of equal size.
    """
    from bothends.errors import BothendsError, UsageError
    from bothends.evaluation.analyses.lengths import (
        Timed,
        by_length,
        draw_lengths,
        split_by_length,
        table,
        translate_in_turns,
    )
    from bothends.metrics.named import choose_metrics, default_tokenizer
    from bothends.progress import progress
    from bothends.tables import print_tables

    if not model and not hypothesis:
        raise UsageError("nothing to measure: give --model DIR, or --hypothesis FILE")
    check_writable(
        {"--json": json_, "--picture": picture}, (source, reference, *(hypothesis or []))
    )
    chosen = choose_metrics(metric, tokenizer or default_tokenizer(model or []))
    if len(chosen) > 1:
        raise UsageError(f"--metric {metric}: expected one")
    sources = read_lines(source, invalid)
    if not sources:
        raise BothendsError(f"{source}: is empty, expected a sentence in each line")
    references = read_aligned(reference, source, len(sources), invalid)
    split_by_length(sources, bins)  # complains before the work, not after it
    finished = [
        Timed(str(path), read_aligned(path, source, len(sources), invalid))
        for path in hypothesis or []
    ]
    directories = model or []
    translators = [_translator(each, precision, engine, beam) for each in directories]
    turns = []
    if translators:
        with progress("translate", "lines", len(sources)) as advance:
            for turn in translate_in_turns(translators, sources, seed):
                turns.append(turn)
                advance(1)
    timed = [
        Timed(str(path), *zip(*(turn[number] for turn in turns), strict=True))
        for number, path in enumerate(directories)
    ]
    found = by_length([*timed, *finished], sources, references, chosen[0], bins, bootstrap, seed)
    notes = [f"{chosen[0].title}: {chosen[0].signature}"]
    if translators:
        notes.append(
            f"ms: median; one sentence at a time, one thread, beam {beam}, systems in turns."
        )
    print_tables([table(found)], notes)
    if json_ is not None:
        json_.write_text(json.dumps({**found.as_json(), "beam": beam}) + "\n", encoding="utf-8")
    if picture is not None:
        draw_lengths(found, picture)


def _translator(
    directory: Path, precision: Precision | None, engine: EngineName, beam: int
) -> Translate:
    from bothends.translator import Translator

    translator = Translator.load(directory, precision=precision, threads=1, engine=engine)
    return lambda line: translator.translate([line], beam=beam)[0].text
