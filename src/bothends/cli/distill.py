"""`bothends distill`: a teacher writes the corpus that a student learns from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bothends.cli.bulk import (
    OnCrashOption,
    SameKindOption,
    ShardPictureOption,
    WorkersOption,
    parse_picture,
    print_job_notes,
)
from bothends.cli.options import (
    DEFAULTS,
    BeamOption,
    CommandRestartOption,
    CommandTimeoutOption,
    CommandWindowOption,
    LengthPenaltyOption,
    MaxSourceLengthOption,
)
from bothends.jobs import SHARD_LINES
from bothends.jobs.filter_process import ProgramOptions

if TYPE_CHECKING:
    from bothends.distillation.corpus_directory import Manifest


def distill(
    source: Annotated[
        list[str], typer.Option(metavar="FILE...", help="Source text, plain or .gz.")
    ],
    output: Annotated[str, typer.Option(metavar="DIR", help="The distilled corpus to write.")],
    teacher: Annotated[
        Path | None,
        typer.Option(
            "--teacher", "--model", metavar="DIR", help="The teacher: a directory or a name."
        ),
    ] = None,
    teacher_command: Annotated[
        str | None,
        typer.Option(
            metavar="CMD", help="A program as the teacher: it writes a line for each line it reads."
        ),
    ] = None,
    teacher_version: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Version of the program, for the manifest."),
    ] = None,
    command_timeout: CommandTimeoutOption = ProgramOptions.timeout,
    command_window: CommandWindowOption = ProgramOptions.window,
    command_restart: CommandRestartOption = False,
    beam: BeamOption = DEFAULTS.beam,
    length_penalty: LengthPenaltyOption = DEFAULTS.length_penalty,
    max_source_length: MaxSourceLengthOption = DEFAULTS.max_source_length,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that share the work. Default: one per core."),
    ] = None,
    workers: WorkersOption = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Do only part I of N, for one of N machines."),
    ] = None,
    merge: Annotated[
        bool,
        typer.Option(
            "--merge", help="Translate nothing; merge the shards, or list the missing ones."
        ),
    ] = False,
    drop_empty: Annotated[
        bool, typer.Option("--drop-empty", help="Drop pairs with an empty side.")
    ] = False,
    max_ratio: Annotated[
        float | None,
        typer.Option(help="Drop pairs with more target tokens per source token, e.g. 3."),
    ] = None,
    drop_repetitions: Annotated[
        bool,
        typer.Option(
            "--drop-repetitions", help="Drop targets that repeat words when their sources do not."
        ),
    ] = False,
    min_score: Annotated[
        float | None,
        typer.Option(help="Drop targets below this log probability per token, e.g. -1.5."),
    ] = None,
    shard_lines: Annotated[
        int, typer.Option(min=1, help="Lines per shard: translated and saved together.")
    ] = SHARD_LINES,
    on_crash: OnCrashOption = "error",
    same_kind: SameKindOption = False,
    picture: ShardPictureOption = None,
    engine: Annotated[
        Literal["native", "onnx", "torch"], typer.Option(help="What runs the teacher's network.")
    ] = "onnx",
) -> None:
    """Let a teacher translate the corpus that students learn from.

    Run the same command again to resume. Then: bothends prepare --source DIR/train.source --target
    DIR/train.target --vocabulary TEACHER.
    """
    from pydantic import ValidationError

    from bothends.distillation.distill import Distillation
    from bothends.distillation.distill import distill as run
    from bothends.distillation.filters import PairFilters
    from bothends.distillation.shard_run import Share
    from bothends.distillation.teachers import CommandTeacher, ModelTeacher, choose_teacher
    from bothends.errors import UsageError
    from bothends.jobs.pool import parse_pool
    from bothends.jobs.processes import available_cores
    from bothends.model.bundled import find_model
    from bothends.storage.places import parse_place
    from bothends.storage.schemas import first_problem

    if processes is not None and workers is not None:
        raise UsageError("--processes and --workers: give one of the two")
    try:
        filters = PairFilters(
            drop_empty=drop_empty,
            max_ratio=max_ratio,
            drop_repetitions=drop_repetitions,
            min_score=min_score,
        )
    except ValidationError as error:
        raise UsageError(first_problem(error)) from None
    model = command = None
    if teacher is not None:
        directory = find_model(teacher, weights=engine == "torch")
        model = ModelTeacher(directory, engine, beam, length_penalty, max_source_length)
    if teacher_command is not None:
        program = ProgramOptions.parse(
            teacher_command, command_timeout, command_window, command_restart
        )
        command = CommandTeacher(program, teacher_version)
    sources = tuple(map(parse_place, source))
    manifest = run(
        Distillation(
            teacher=choose_teacher(model, command),
            sources=sources,
            output=parse_place(output),
            filters=filters,
            processes=processes or available_cores(),
            pool=None if workers is None else parse_pool(workers),
            share=None if shard is None else Share.parse(shard),
            merge_only=merge,
            shard_lines=shard_lines,
            on_crash=on_crash,
            same_kind=same_kind,
            picture=parse_picture(picture, sources),
        )
    )
    if manifest is not None:
        _print_report(manifest, output)


def _print_report(manifest: Manifest, output: str) -> None:
    counts, filters = manifest.counts, manifest.filters
    reasons = {
        "empty": "with an empty side",
        "too_long": f"with more than {filters.max_ratio} target tokens for a source token",
        "repetition": "with repetitions",
        "low_score": f"with a score below {filters.min_score}",
    }
    print(f"{counts.read:,} lines read, {counts.kept:,} pairs kept")
    if counts.dropped:
        dropped = [f"{count:,} {reasons[reason]}" for reason, count in counts.dropped.items()]
        print(f"  dropped: {', '.join(dropped)}")
    if counts.unfinished or counts.truncated:
        print(
            f"  {counts.unfinished:,} translations cut at the length limit, "
            f"{counts.truncated:,} over-long sources cut"
        )
    print_job_notes(manifest.kinds, manifest.crashed)
    print(f"written to {output}")
