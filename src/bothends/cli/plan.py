"""`bothends plan`: how long a job will take on how many cores, before it is begun."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bothends.cli.options import (
    DEFAULTS,
    BeamOption,
    EngineOption,
    JsonFileOption,
    ModelOption,
)
from bothends.errors import UsageError

if TYPE_CHECKING:
    from bothends.engines.registry import EngineName
    from bothends.planning import Measured
    from bothends.tables import Table


def plan(
    lines: Annotated[str, typer.Option(help="Lines of the corpus; several numbers: 4500000,1e8.")],
    workers: Annotated[
        str, typer.Option(help="Cores; several numbers are compared.")
    ] = "1,10,100,1000",
    rate: Annotated[
        float | None, typer.Option(help="Lines per second and core, if you know them.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Text of the corpus, to measure all figures with."),
    ] = None,
    measured: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Figures stored by --json.")
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Lines of --source to measure.")] = 200,
    model: ModelOption = None,
    beam: BeamOption = DEFAULTS.beam,
    engine: EngineOption = None,
    losses: Annotated[
        float | None,
        typer.Option(help="Mean hours until a worker is lost. Default: never."),
    ] = None,
    stragglers: Annotated[
        str | None,
        typer.Option(metavar="SHARE:TIMES", help="Slow workers: 0.05:3 is one in 20, 3 x slower."),
    ] = None,
    overhead: Annotated[
        float | None, typer.Option(help="Seconds per shard, apart from its lines.")
    ] = None,
    start: Annotated[float | None, typer.Option(help="Seconds until a worker is ready.")] = None,
    restart: Annotated[
        float | None, typer.Option(help="Seconds until a lost worker is replaced.")
    ] = None,
    serial: Annotated[
        float | None, typer.Option(help="Seconds per line in the merging process.")
    ] = None,
    shard_lines: Annotated[
        int | None, typer.Option(min=1, help="Lines per shard. Default: the best number.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Jobs that share the text and run at the same time.")
    ] = 1,
    json_: JsonFileOption = None,
) -> None:
    """Say what a job would take: time, core hours, size of shards.

    With --source, the rate, overhead, start and restart are measured here first, in about a minute;
    --json FILE stores them for --measured FILE. With --rate, what you leave out has the value of
    the machine in docs/cluster.md.
    """
    from dataclasses import replace

    from bothends.cli.outputs import check_writable, write_json
    from bothends.jobs.plan import JobSize, best_shard_lines, forecast
    from bothends.planning import read_measured
    from bothends.tables import Table, print_tables

    if sum(given is not None for given in (rate, source, measured)) != 1:
        raise UsageError(
            "give --rate, --measured FILE, or --source FILE to measure: one of the three"
        )
    if json_ is not None and source is None:
        raise UsageError("--json stores what is measured: give --source FILE, too")
    check_writable({"--json": json_}, [measured, None if source is None else Path(source)])
    figures: Measured | None = read_measured(measured) if measured else None
    tables, notes = [], []
    if source is not None:
        found = _measure(source, model, engine, beam, sample)
        figures = found[0]
        tables.append(_figures_table(found))
        notes.append(f"measured here with {figures.lines:,} lines of {source}: {figures.kind}")
        write_json(json_, figures.model_dump(mode="json"))
    share, slowness = _stragglers(stragglers)

    def chosen(given: float | None, name: str) -> float:
        if given is not None:
            return given
        return float(getattr(figures, name)) if figures else TYPICAL[name]

    rows = []
    for count in _numbers("--lines", lines):
        for cores in _numbers("--workers", workers):
            if figures is None:
                assert rate is not None
                speed = rate
            elif cores == 1:
                speed = 1 / (1 / figures.rate_alone + figures.line_overhead)
            else:
                speed = figures.effective_rate
            size = JobSize(
                lines=count,
                workers=cores,
                rate=speed,
                overhead=chosen(overhead, "overhead"),
                start=chosen(start, "start"),
                restart=chosen(restart, "restart"),
                mean_time_between_losses=float("inf") if losses is None else 3600 * losses,
                stragglers=share,
                slowness=slowness,
                serial=chosen(serial, "serial"),
                jobs=jobs,
            )
            best = forecast(replace(size, shard_lines=shard_lines or best_shard_lines(size)))
            rows.append(
                (
                    f"{count:,}",
                    f"{cores:,}",
                    _time(best.seconds),
                    f"{best.core_hours:,.1f}",
                    f"{best.efficiency:.0%}",
                    f"{best.losses:,.1f}",
                    f"{best.size.shard_lines:,}",
                    _time(size.serial_seconds),
                )
            )
    headings = (
        *("lines", "cores", "time", "core hours", "in use", "lost workers", "shard lines"),
        "of it one process",
    )
    notes.append("in use: the share of core hours in which lines were translated that counted")
    notes.append(
        "of it one process: reading the text at the beginning and merging at the end, which --jobs "
        "shares"
    )
    print_tables([*tables, Table("Plan", headings, tuple(rows))], notes)


#: Where nothing is measured: of the machine and model in docs/cluster.md.
TYPICAL = {"overhead": 0.0014, "start": 0.93, "restart": 0.51, "serial": 1.42e-5}


def _measure(
    source: str, model: Path | None, engine: EngineName | None, beam: int, sample: int
) -> list[Measured]:
    """Figures of each engine that runs the model, the one that a job would take first."""
    from bothends.cli.bulk import SearchSettings, job_teacher
    from bothends.engines.registry import default_engine
    from bothends.jobs.processes import available_cores
    from bothends.model.bundled import find_model
    from bothends.planning import measure
    from bothends.storage.places import parse_place

    directory, place = find_model(model), parse_place(source)
    engines: list[EngineName] = [engine or default_engine(directory)]
    if engine is None and engines[0] == "native":
        engines.append("onnx")
    search = SearchSettings(beam, DEFAULTS.length_penalty, DEFAULTS.max_source_length)
    return [
        measure(job_teacher(model, name, search, None), name, place, sample, available_cores())
        for name in engines
    ]


def _figures_table(found: list[Measured]) -> Table:
    from bothends.tables import Table

    cores = found[0].cores
    headings = (
        *("engine", "lines/s alone", f"lines/s, {cores} busy", "start s", "restart s"),
        *("shard ms", "line us", "one process, line us"),
    )
    rows = [
        (
            each.engine,
            f"{each.rate_alone:,.1f}",
            f"{each.rate:,.1f}",
            f"{each.start:.2f}",
            f"{each.restart:.2f}",
            f"{1e3 * each.overhead:.1f}",
            f"{1e6 * each.line_overhead:.1f}",
            f"{1e6 * each.serial:.1f}",
        )
        for each in found
    ]
    return Table("Measured, for each worker", headings, tuple(rows))


def _stragglers(text: str | None) -> tuple[float, float]:
    share, _, times = (text or "0:1").partition(":")
    try:
        return float(share), float(times)
    except ValueError:
        raise UsageError(f"--stragglers {text}: expected SHARE:TIMES, such as 0.05:3") from None


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(float(word)) for word in text.split(",")]
    except (ValueError, OverflowError):
        numbers = [0]
    if min(numbers) < 1:
        raise UsageError(f"{option} {text}: expected whole numbers from 1 on, such as 1000000,1e8")
    return numbers


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return "never" if seconds > 3e9 else str(timedelta(seconds=round(seconds)))
