"""`bothends translate FILE ... --output PATH --workers N`: files translated as a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bothends.cli.outputs import check_writable
from bothends.errors import UsageError

if TYPE_CHECKING:
    from bothends.distillation.teachers import ModelTeacher
    from bothends.engines.registry import EngineName

WorkersOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|ray[:ADDRESS]", help="Run as a job that resumes: N processes, or a Ray cluster."
    ),
]
ShardOption = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="Only the I-th of N parts of the job, for one of N machines."),
]
ShardLinesOption = Annotated[
    int, typer.Option(min=1, help="Lines of the job that are translated and saved together.")
]
OnCrashOption = Annotated[
    Literal["error", "empty"],
    typer.Option(help="A line that crashes workers: name it and fail, or translate to nothing."),
]


@dataclass(frozen=True)
class SearchSettings:
    """What a job lets a user choose."""

    beam: int
    length_penalty: float
    max_source_length: int


def job_teacher(
    model: Path | None, engine: EngineName | None, search: SearchSettings, format_: str | None
) -> ModelTeacher:
    """Whoever translates, as `translate` would without a job."""
    from bothends.distillation.teachers import ModelTeacher
    from bothends.engines.registry import default_engine
    from bothends.model.bundled import find_model
    from bothends.model.directory import read_description

    if format_ not in (None, "lines"):
        raise UsageError(f"--format {format_}: a job translates lines, not documents")
    directory = find_model(model)
    # A summary is of all sentences of a line.
    splits = format_ is None and read_description(directory).task == "translation"
    return ModelTeacher(
        directory,
        engine or default_engine(directory),
        search.beam,
        search.length_penalty,
        search.max_source_length,
        splits,
    )


def translate_job(
    teacher: ModelTeacher,
    files: Sequence[Path],
    output: Sequence[Path],
    workers: str | None,
    shard: str | None,
    shard_lines: int,
    on_crash: Literal["error", "empty"],
) -> None:
    """Run the job and say what was written."""
    from bothends.bulk import BulkTranslation, translate_in_bulk
    from bothends.distillation.shard_run import Share
    from bothends.jobs.pool import parse_pool
    from bothends.processes import available_cores

    if not files or len(output) != 1:
        raise UsageError(
            "a job needs files and one --output: translate FILE ... --output PATH --workers N"
        )
    if len(files) == 1 and not output[0].is_dir():  # a file, as without a job
        check_writable({"--output": output}, files)
    manifest = translate_in_bulk(
        BulkTranslation(
            teacher=teacher,
            inputs=tuple(files),
            output=output[0],
            pool=parse_pool(workers or str(available_cores())),
            share=None if shard is None else Share.parse(shard),
            shard_lines=shard_lines,
            on_crash=on_crash,
        )
    )
    if manifest is None:
        return
    print(f"{manifest.job.lines:,} lines translated")
    if manifest.unfinished or manifest.truncated:
        print(
            f"  {manifest.unfinished:,} translations cut at the length limit, "
            f"{manifest.truncated:,} over-long lines cut"
        )
    print(f"written to {output[0]}")
