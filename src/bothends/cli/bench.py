"""`bothends bench`: how fast, against whom, and where the time goes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bothends.cli.options import (
    CommandOption,
    CommandTimeoutOption,
    JsonFileOption,
    ShortlistOption,
)
from bothends.cli.outputs import check_writable, write_json
from bothends.errors import UsageError
from bothends.jobs.filter_process import ProgramOptions

if TYPE_CHECKING:
    from bothends.engines.registry import EngineName, Precision


#: Threads of a system. An engine starts them all, however few processors there are.
MOST_THREADS = 1024


def bench(
    model: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR...", help="Exported models."),
    ] = None,
    command: CommandOption = None,
    command_timeout: CommandTimeoutOption = ProgramOptions.timeout,
    synthetic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHAPE[:ORDER,...]",
            help="Random weights and forced lengths: base, small or tiny (base-1: a decoder of "
            "one layer), and orders.",
        ),
    ] = None,
    batch: Annotated[str, typer.Option(help="Batch sizes, in sentences.")] = "1,32",
    beam: Annotated[str, typer.Option(help="Beam sizes; 1 is greedy search.")] = "1,4",
    threads: Annotated[
        str,
        typer.Option(help="Cores per system, or auto: one for a single sentence, all for a batch."),
    ] = "auto",
    precision: Annotated[
        str, typer.Option(help="Precision of synthetic models and peers; a model has its own.")
    ] = "int8",
    engine: Annotated[
        str | None,
        typer.Option(help="native, onnx or native,onnx. Default: native for int8, if it is built."),
    ] = None,
    source_length: Annotated[
        int, typer.Option(min=2, help="Tokens of a synthetic source, its end included.")
    ] = 25,
    target_length: Annotated[
        int, typer.Option(min=2, help="Tokens of a forced translation, its end included.")
    ] = 32,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text for the models to translate.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Reference translations, for BLEU.")
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(min=1, help="Sentences per turn. Default: 4 synthetic ones, 64 of a text."),
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=1, help="Rounds; every system takes one turn in each.")
    ] = 5,
    peers: Annotated[
        str | None,
        typer.Option(
            help="ctranslate2, transformers, or none. Default: ctranslate2, if installed."
        ),
    ] = None,
    shortlist: ShortlistOption = True,
    synthetic_shortlist: Annotated[
        int | None,
        typer.Option(
            min=50, help="Also measure synthetic models with a shortlist of this many words."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of weights, sources and turns.")
    ] = 0,
    json_: JsonFileOption = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw speed-ups: .svg or .png.")
    ] = None,
) -> None:
    """Measure speed, with systems in turns and named baselines.

    Every figure has its signature: data, order, beam, engine, precision, threads, commit.
    """
    from bothends.evaluation.bench.contestants import BenchOptions, Synthetic, gather, programs
    from bothends.evaluation.bench.machine import this_machine
    from bothends.evaluation.bench.measure import Plan, measure
    from bothends.evaluation.bench.peers import choose_peers
    from bothends.evaluation.bench.report import make_report
    from bothends.evaluation.bench.table import print_report

    plan = Plan(
        batches=_numbers("--batch", batch),
        beams=_numbers("--beam", beam),
        threads=(None,) if threads == "auto" else _numbers("--threads", threads),
        rounds=repeat,
        seed=seed,
    )
    wanted = BenchOptions(
        synthetic=tuple(map(Synthetic.parse, synthetic or [])),
        models=tuple(model or []),
        precisions=_precisions(precision),
        engines=_engines(engine),
        peers=choose_peers(None if peers is None else [] if peers == "none" else peers.split(",")),
        largest_batch=max(plan.batches),
        source_length=source_length,
        target_length=target_length,
        sentences=sentences,
        source=source,
        reference=reference,
        seed=seed,
        commands=tuple(ProgramOptions.parse(each, command_timeout) for each in command or []),
        shortlist=shortlist,
        synthetic_words=synthetic_shortlist,
    )
    if picture is not None and not wanted.models and not wanted.synthetic:
        raise UsageError("--picture draws speed-ups of orders: name a --model DIR or --synthetic")
    # Whatever would fail after minutes of measuring is asked for now.
    check_writable({"--json": json_, "--picture": picture}, (source, reference))

    def tell(message: str) -> None:
        # Lines between rounds, no live bar: drawing it would take its time from what is measured.
        print(f"bench: {message}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="bothends-bench-") as scratch:
        contestants, notes = gather(wanted, Path(scratch))
        with programs(wanted) as others:
            measurement = measure([*contestants, *others], plan, tell)
    report = make_report(measurement, this_machine(), repeat, notes)
    print_report(report)
    write_json(json_, report.as_json())
    if picture is not None:
        from bothends.evaluation.bench.plots import draw_bench

        draw_bench(report, picture)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    """`1,32` as whole numbers from 1 on, each of them once."""
    try:
        numbers = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise UsageError(f"{option} {text}: expected whole numbers from 1 on, such as 1,32")
    if option == "--threads" and max(numbers) > MOST_THREADS:
        raise UsageError(f"--threads {max(numbers)}: at most {MOST_THREADS}")
    return numbers


def _engines(text: str | None) -> tuple[EngineName, ...]:
    known: dict[str, EngineName] = {"native": "native", "onnx": "onnx"}
    words = dict.fromkeys(text.split(",") if text else [])
    if not known.keys() >= words.keys():
        raise UsageError(f"--engine {text}: expected native, onnx or native,onnx")
    return tuple(known[word] for word in words)


def _precisions(text: str) -> tuple[Precision, ...]:
    known: dict[str, Precision] = {"float32": "float32", "int8": "int8"}
    words = dict.fromkeys(text.split(","))
    if not known.keys() >= words.keys():
        raise UsageError(f"--precision {text}: expected float32, int8 or float32,int8")
    return tuple(known[word] for word in words)
