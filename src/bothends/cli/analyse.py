"""`bothends analyse`: the paper's analyses, of agreement, of mutual information and of lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bothends.cli.options import (
    DEFAULTS,
    BeamOption,
    DeviceOption,
    EngineOption,
    InvalidOption,
    JsonFileOption,
    PrecisionOption,
    ThreadsOption,
)
from bothends.cli.outputs import check_writable, write_json
from bothends.cli.several import SeveralValues

analyse = typer.Typer(
    help="Analyse models: agreement, pmi, lengths.",
    rich_markup_mode=None,
)

SourceOption = Annotated[Path, typer.Option(metavar="FILE", help="Source text, line by line.")]
BootstrapOption = Annotated[
    int, typer.Option(min=0, help="Bootstrap samples for intervals; 0 for none.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Random seed.")]


@analyse.command(cls=SeveralValues)
def agreement(
    model: Annotated[list[Path], typer.Option(metavar="DIR...", help="One or several models.")],
    source: SourceOption,
    correct: Annotated[
        Path, typer.Option(metavar="FILE", help="Correct translations, line by line.")
    ],
    incorrect: Annotated[
        Path, typer.Option(metavar="FILE", help="The same translations with a wrong verb.")
    ],
    distances: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Words from subject to verb, a number per line. Default: guessed, for German.",
        ),
    ] = None,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = None,
    device: DeviceOption = None,
    invalid: InvalidOption = "error",
    json_: JsonFileOption = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw accuracies: .svg or .png.")
    ] = None,
) -> None:
    """Test agreement of subject and verb, by their distance.

    A pair counts as right if the correct translation is the more probable one.
    """
    from bothends.evaluation.analyses.agreement import (
        draw_agreement,
        measure,
        read_pairs,
        report,
        table,
    )
    from bothends.tables import print_tables
    from bothends.translating.load_options import LoadOptions

    check_writable({"--json": json_, "--picture": picture}, (source, correct, incorrect, distances))
    pairs = read_pairs(source, correct, incorrect, distances, invalid)
    results = measure(model, pairs, LoadOptions(engine, precision, threads, device))
    notes = [
        "% of pairs whose right translation has the higher probability (95% interval, Wilson)."
    ]
    if distances is None:
        notes.append("Distances are guessed from the German text: docs/analysis.md says how well.")
    print_tables([table(results)], notes)
    write_json(json_, report(results, distances is None))
    if picture is not None:
        draw_agreement(results, picture)


@analyse.command(cls=SeveralValues)
def pmi(
    model: Annotated[list[Path], typer.Option(metavar="DIR...", help="Models of several orders.")],
    source: SourceOption,
    target: Annotated[Path, typer.Option(metavar="FILE", help="Its translation, line by line.")],
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = None,
    device: DeviceOption = None,
    invalid: InvalidOption = "error",
    json_: JsonFileOption = None,
) -> None:
    """Estimate the mutual information of words written in one step.

    An estimate takes two models: 1x2 and 1x1, or 2x1 and 2x1+autoregressive.
    """
    from bothends.evaluation.analyses.pmi import analyse, measure, tables
    from bothends.evaluation.parallel_lines import read_aligned, read_lines
    from bothends.tables import print_tables
    from bothends.translating.load_options import LoadOptions

    check_writable({"--json": json_}, (source, target))
    sources = read_lines(source, invalid)
    targets = read_aligned(target, source, len(sources), invalid)
    loading = LoadOptions(engine, precision, threads, device)
    analysis = analyse(measure(model, sources, targets, loading), bootstrap, seed)
    notes = ["Per symbol, end symbols included; natural logs."]
    if bootstrap:
        notes.append(f"95% intervals of {bootstrap:,} bootstrap samples, seed {seed}.")
    if not analysis.estimates:
        notes.append("No PMI: it takes 1x2 and 1x1, or 2x1 and 2x1+autoregressive.")
    print_tables(tables(analysis), notes)
    write_json(json_, analysis.as_json())


@analyse.command(cls=SeveralValues)
def lengths(
    source: SourceOption,
    reference: Annotated[
        Path, typer.Option(metavar="FILE", help="Reference translations, line by line.")
    ],
    model: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR...", help="Models to translate and time; the first is the baseline."
        ),
    ] = None,
    hypothesis: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Existing translations; not timed."),
    ] = None,
    bins: Annotated[
        int, typer.Option(min=1, help="Number of bins, with equally many sentences each.")
    ] = 10,
    metric: Annotated[str, typer.Option(help="One metric of evaluate.")] = "bleu",
    tokenizer: Annotated[
        str | None, typer.Option(help="sacreBLEU's tokenizer, as in evaluate.")
    ] = None,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    beam: BeamOption = DEFAULTS.beam,
    precision: PrecisionOption = None,
    engine: EngineOption = None,
    device: DeviceOption = None,
    invalid: InvalidOption = "error",
    json_: JsonFileOption = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw quality and speed-up: .svg or .png.")
    ] = None,
) -> None:
    """Measure quality and speed by the length of the source.

    A test set is sorted by length and cut into bins of equal size.
    """
    from bothends.errors import UsageError
    from bothends.evaluation.analyses.lengths import (
        Timed,
        by_length,
        draw_lengths,
        measure,
        split_by_length,
        table,
    )
    from bothends.evaluation.parallel_lines import read_aligned, read_lines
    from bothends.metrics.named import choose_metrics, default_tokenizer
    from bothends.tables import print_tables
    from bothends.translating.load_options import LoadOptions
    from bothends.translating.translation import TranslationOptions

    models, hypotheses = model or [], hypothesis or []
    if not models and not hypotheses:
        raise UsageError("nothing to measure: give --model DIR, or --hypothesis FILE")
    check_writable({"--json": json_, "--picture": picture}, (source, reference, *hypotheses))
    chosen = choose_metrics(metric, tokenizer or default_tokenizer(models))
    if len(chosen) > 1:
        raise UsageError(f"--metric {metric}: expected a single metric")
    sources = read_lines(source, invalid)
    references = read_aligned(reference, source, len(sources), invalid)
    split_by_length(sources, bins)  # complains before the work, not after it
    finished = [
        Timed(str(path), read_aligned(path, source, len(sources), invalid)) for path in hypotheses
    ]
    loading = LoadOptions(engine, precision, 1, device)
    timed = measure(models, sources, TranslationOptions(beam=beam), loading, seed)
    found = by_length([*timed, *finished], sources, references, chosen[0], bins, bootstrap, seed)
    notes = [f"{chosen[0].title}: {chosen[0].signature}"]
    if models:
        notes.append(
            f"ms: median; one sentence at a time, one thread, beam {beam}, systems in turns."
        )
    print_tables([table(found)], notes)
    write_json(json_, {**found.as_json(), "beam": beam})
    if picture is not None:
        draw_lengths(found, picture)
