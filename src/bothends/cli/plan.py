"""`bothends plan`: how long a job will take on how many cores, before it is begun."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from bothends.cli.options import DEFAULTS, BeamOption, EngineOption, ModelOption
from bothends.errors import UsageError


def plan(
    lines: Annotated[
        str, typer.Option(help="Lines of the corpus, or several such numbers: 4500000,1e8.")
    ],
    workers: Annotated[str, typer.Option(help="Cores, or several such numbers.")] = "1,10,100,1000",
    rate: Annotated[
        float | None, typer.Option(help="Lines that a core translates in a second; else measured.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text of the corpus, to measure the rate.")
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Lines of --source that are measured.")] = 200,
    model: ModelOption = None,
    beam: BeamOption = DEFAULTS.beam,
    engine: EngineOption = None,
    losses: Annotated[
        float | None,
        typer.Option(help="Hours after which a worker is lost, on average; else never."),
    ] = None,
    overhead: Annotated[
        float, typer.Option(help="Seconds for each shard besides its lines.")
    ] = 0.05,
    start: Annotated[
        float | None, typer.Option(help="Seconds until a worker begins; else measured, or 5.")
    ] = None,
    restart: Annotated[float, typer.Option(help="Seconds until a lost worker is replaced.")] = 10.0,
) -> None:
    """Say what a job would take: time, core hours, size of shards.

    The rate is given, or measured here on one core with --source.
    """
    from dataclasses import replace

    from bothends.bulk import measure_rate
    from bothends.distillation.teachers import ModelTeacher
    from bothends.engines.registry import default_engine
    from bothends.jobs.plan import JobSize, best_shard_lines, forecast
    from bothends.model.bundled import find_model
    from bothends.tables import Table, print_tables

    if (rate is None) == (source is None):
        raise UsageError("give --rate, or --source FILE to measure it: one of the two")
    notes = []
    if source is not None:
        directory = find_model(model)
        teacher = ModelTeacher(directory, engine or default_engine(directory), beam)
        measured = measure_rate(teacher, source, sample)
        rate, start = measured.rate, measured.start if start is None else start
        notes.append(
            f"measured here on one core: {rate:,.1f} lines a second, {measured.start:.1f} s to "
            f"begin ({measured.lines:,} lines of {source})"
        )
    assert rate is not None
    rows = []
    for count in _numbers("--lines", lines):
        for cores in _numbers("--workers", workers):
            size = JobSize(
                lines=count,
                workers=cores,
                rate=rate,
                overhead=overhead,
                start=5.0 if start is None else start,
                restart=restart,
                mean_time_between_losses=float("inf") if losses is None else 3600 * losses,
            )
            best = forecast(replace(size, shard_lines=best_shard_lines(size)))
            rows.append(
                (
                    f"{count:,}",
                    f"{cores:,}",
                    _time(best.seconds),
                    f"{best.core_hours:,.1f}",
                    f"{best.efficiency:.0%}",
                    f"{best.losses:,.0f}",
                    f"{best.size.shard_lines:,}",
                )
            )
    headings = ("lines", "cores", "time", "core hours", "in use", "lost workers", "shard lines")
    notes.append("in use: the share of core hours in which lines were translated that counted")
    print_tables([Table("Plan", headings, tuple(rows))], notes)


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(float(word)) for word in text.split(",")]
    except (ValueError, OverflowError):
        numbers = [0]
    if min(numbers) < 1:
        raise UsageError(f"{option} {text}: expected whole numbers from 1 on, such as 1000000,1e8")
    return numbers


def _time(seconds: float) -> str:
    return "never" if seconds > 3e9 else str(timedelta(seconds=round(seconds)))
