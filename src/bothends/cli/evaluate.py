"""`bothends evaluate`: how good, compared with whom, and how sure that is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bothends.cli.options import (
    EngineOption,
    InvalidOption,
    JsonFileOption,
    PrecisionOption,
    ThreadsOption,
)
from bothends.cli.outputs import check_writable
from bothends.errors import BothendsError, UsageError

if TYPE_CHECKING:
    from bothends.text.lines import Invalid
    from bothends.translation import TranslationOptions
    from bothends.translator import Translator


def evaluate(
    reference: Annotated[
        Path, typer.Option(metavar="FILE", help="The right translations, one per line.")
    ],
    model: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR...", help="Models for --source; the first is the baseline."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Text for the models to translate; tells lines that are one text's references.",
        ),
    ] = None,
    hypothesis: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Translations that exist already; after the models."),
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(
            help="Some of bleu, chrf, rouge (rouge1, rouge2, rougeL), otem, otem4, repetition, "
            "length, exact; or all."
        ),
    ] = "bleu,chrf,otem,repetition,length",
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="sacreBLEU's: 13a, intl, char, zh, ja-mecab, none, ...; else by the language of "
            "the model."
        ),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Samples for intervals and p-values; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept; 1 is greedy search.")] = 4,
    length_penalty: Annotated[float, typer.Option(min=0, help="0 prefers short output.")] = 0.6,
    dedup: Annotated[bool, typer.Option("--dedup", help="Drop immediate repetitions.")] = False,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = "onnx",
    invalid: InvalidOption = "error",
    output: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Where translations go: one file for each --model."),
    ] = None,
    json_: JsonFileOption = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the scores: .svg or .png.")
    ] = None,
) -> None:
    """Score one or several systems, and compare them.

    Metrics have signatures and intervals; differences are of a paired bootstrap.
    """
    from bothends.evaluation.evaluate import System
    from bothends.evaluation.evaluate import evaluate as score_systems
    from bothends.metrics.named import choose_metrics, default_tokenizer
    from bothends.tables import print_tables
    from bothends.translation import TranslationOptions
    from bothends.translator import Translator

    models, hypotheses, outputs = model or [], hypothesis or [], output or []
    if not models and not hypotheses:
        raise UsageError("nothing to evaluate: give --model DIR and --source FILE, or --hypothesis")
    if models and source is None:
        raise UsageError("--model needs --source FILE, the text to translate")
    if outputs and len(outputs) != len(models):
        raise UsageError(
            f"--output has {len(outputs)} files, but there are {len(models)} models: one for each"
        )
    # Whatever would fail after minutes of translating is asked for now.
    chosen = choose_metrics(metrics, tokenizer or default_tokenizer(models))
    check_writable(
        {"--json": json_, "--picture": picture, "--output": outputs},
        (reference, source, *hypotheses),
    )
    references = read_lines(reference, invalid)
    if not references:
        raise BothendsError(f"{reference}: is empty, expected a translation for each line")
    finished = [
        System(str(path), str(path), read_aligned(path, reference, len(references), invalid))
        for path in hypotheses
    ]
    systems = []
    lines = None
    if source is not None:
        lines = read_aligned(source, reference, len(references), invalid)
        options = TranslationOptions(beam=beam, length_penalty=length_penalty, deduplicate=dedup)
        settings = f"beam {beam}, length penalty {length_penalty:g}{', dedup' if dedup else ''}"
        for number, directory in enumerate(models):
            translator = Translator.load(
                directory, precision=precision, threads=threads, engine=engine
            )
            texts = _translate(translator, str(directory), lines, options)
            origin = f"{directory}: {translator.description.order}, {engine}, {settings}"
            systems.append(System(str(directory), origin, texts))
            if outputs:
                outputs[number].write_text("".join(f"{text}\n" for text in texts), "utf-8")
    evaluation = score_systems(
        [*systems, *finished], str(reference), references, chosen, bootstrap, seed, lines
    )
    from bothends.evaluation.report import draw_evaluation, legend, tables

    print_tables(tables(evaluation), list(legend(evaluation)))
    if json_ is not None:
        line = json.dumps(evaluation.as_json(), ensure_ascii=False)
        json_.write_text(line + "\n", encoding="utf-8")
    if picture is not None:
        draw_evaluation(evaluation, picture)


def read_lines(path: Path, invalid: Invalid) -> list[str]:
    from bothends.text.lines import LineReader

    return [line for line in LineReader([path], invalid) if line is not None]


def read_aligned(path: Path, reference: Path, count: int, invalid: Invalid) -> list[str]:
    """The lines of a file; empty ones count, for there must be one for each of the reference."""
    lines = read_lines(path, invalid)
    if len(lines) != count:
        raise BothendsError(
            f"{path} has {len(lines):,} lines, but {reference} has {count:,}: line N of one must "
            "belong to line N of the other"
        )
    return lines


def _translate(
    translator: Translator, name: str, lines: list[str], options: TranslationOptions
) -> list[str]:
    from bothends.progress import progress

    texts, overlong = [], 0
    with progress(name, "lines", len(lines)) as advance:
        for translation in translator.stream(lines, options):
            texts.append(translation.text)
            overlong += translation.truncated
            advance(1)
    if overlong:
        print(
            f"bothends: warning: {name}: {overlong:,} lines were longer than "
            f"{options.max_source_length} tokens, the rest of them is not translated",
            file=sys.stderr,
        )
    return texts
