"""`bothends evaluate`: how good, compared with whom, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bothends.cli.options import (
    DEFAULTS,
    BeamOption,
    CommandOption,
    CommandRestartOption,
    CommandTimeoutOption,
    CommandWindowOption,
    DeduplicateOption,
    DeviceOption,
    EngineOption,
    InvalidOption,
    JsonFileOption,
    LengthPenaltyOption,
    PrecisionOption,
    ShortlistOption,
    ThreadsOption,
)
from bothends.cli.outputs import check_writable, write_json
from bothends.jobs.filter_process import ProgramOptions


def evaluate(
    reference: Annotated[
        Path, typer.Option(metavar="FILE", help="Reference translations, line by line.")
    ],
    model: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR...", help="Models for --source; the first is the baseline."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Text for the models to translate. Equal lines are one text with more references.",
        ),
    ] = None,
    command: CommandOption = None,
    command_timeout: CommandTimeoutOption = ProgramOptions.timeout,
    command_window: CommandWindowOption = ProgramOptions.window,
    command_restart: CommandRestartOption = False,
    hypothesis: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Existing translations; listed after the models."),
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
            help="sacreBLEU's tokenizer: 13a, intl, char, zh, ja-mecab, none, ... Default: by the "
            "model's target language."
        ),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Samples for intervals and p-values; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 0,
    beam: BeamOption = DEFAULTS.beam,
    length_penalty: LengthPenaltyOption = DEFAULTS.length_penalty,
    deduplicate: DeduplicateOption = DEFAULTS.deduplicate,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = None,
    device: DeviceOption = None,
    shortlist: ShortlistOption = True,
    invalid: InvalidOption = "error",
    output: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...", help="Where translations go: a file for each --model and --command."
        ),
    ] = None,
    json_: JsonFileOption = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the scores: .svg or .png.")
    ] = None,
) -> None:
    """Score one or several systems, and compare them.

    Scores have signatures and intervals; differences come from a paired bootstrap.
    """
    from bothends.evaluation.report import draw_evaluation, legend, tables
    from bothends.evaluation.systems import EvaluationPlan, evaluate_files
    from bothends.tables import print_tables
    from bothends.translating.load_options import LoadOptions
    from bothends.translating.translation import TranslationOptions

    models, hypotheses, outputs = model or [], hypothesis or [], output or []
    plan = EvaluationPlan(
        reference=reference,
        metrics=metrics,
        tokenizer=tokenizer,
        models=tuple(models),
        source=source,
        commands=tuple(
            ProgramOptions.parse(each, command_timeout, command_window, command_restart)
            for each in command or []
        ),
        hypotheses=tuple(hypotheses),
        outputs=tuple(outputs),
        samples=bootstrap,
        seed=seed,
        options=TranslationOptions(
            beam=beam, length_penalty=length_penalty, deduplicate=deduplicate
        ),
        loading=LoadOptions(engine, precision, threads, device, shortlist),
        invalid=invalid,
    )
    check_writable(
        {"--json": json_, "--picture": picture, "--output": outputs},
        (reference, source, *hypotheses),
    )
    evaluation = evaluate_files(plan)
    print_tables(tables(evaluation), list(legend(evaluation)))
    write_json(json_, evaluation.as_json())
    if picture is not None:
        draw_evaluation(evaluation, picture)
