"""`bothends translate FILE ... --output PATH --workers N`: files translated as a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bothends.cli.outputs import check_writable
from bothends.errors import UsageError

if TYPE_CHECKING:
    from bothends.distillation.teachers import ModelTeacher
    from bothends.engines.registry import EngineName
    from bothends.storage.places import Place

WorkersOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|ray[:ADDRESS]", help="Run as a job that resumes: N processes, or a Ray cluster."
    ),
]
ShardOption = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="Do only part I of N, for one of N machines."),
]
ShardLinesOption = Annotated[
    int, typer.Option(min=1, help="Lines per shard: translated and saved together.")
]
OnCrashOption = Annotated[
    Literal["error", "empty", "aside"],
    typer.Option(
        help="If a line crashes workers: fail and name it, leave its translation empty, or leave "
        "it empty and keep the line in crashed.jsonl."
    ),
]
SameKindOption = Annotated[
    bool,
    typer.Option(
        "--same-kind", help="Use one kind of processor only: others may round differently."
    ),
]
ShardPictureOption = Annotated[
    str | None,
    typer.Option("--picture", metavar="FILE.svg", help="Draw the shards over time at the end."),
]


@dataclass(frozen=True)
class JobSettings:
    """How a job is done, as opposed to what."""

    workers: str | None
    shard: str | None
    shard_lines: int
    on_crash: Literal["error", "empty", "aside"]
    same_kind: bool
    picture: str | None


def parse_picture(text: str | None, inputs: Iterable[Place]) -> Place | None:
    """Where a picture goes; a mistake shows before the job begins."""
    if text is None:
        return None
    from bothends.storage.places import Remote, parse_place

    place = parse_place(text)
    if place.suffix != ".svg":
        raise UsageError(f"--picture {text}: expected a name that ends in .svg")
    if not isinstance(place, Remote):
        read = [each for each in inputs if isinstance(each, Path)]
        check_writable({"--picture": place}, read, plots=False)
    return place


@dataclass(frozen=True)
class SearchSettings:
    """What a job lets a user choose."""

    beam: int
    length_penalty: float
    max_source_length: int


def check_lines(files: Iterable[Place], format_: str | None) -> None:
    """A job cuts its input into shards of lines, which would tear a document apart. Those that
    `translate` takes for documents by their names are refused, too."""
    if format_ not in (None, "lines"):
        raise UsageError(f"--format {format_}: a job translates lines, not documents")
    if format_ is None:
        from bothends.documents import format_of

        for file in files:
            if format_of(file.name) != "lines":
                raise UsageError(
                    f"{file}: a job translates lines, not documents; leave out --workers and "
                    "--shard, or add --format lines"
                )


def job_teacher(
    model: Path | None, engine: EngineName | None, search: SearchSettings, format_: str | None
) -> ModelTeacher:
    """Whoever translates, as `translate` would without a job."""
    from bothends.distillation.teachers import ModelTeacher
    from bothends.engines.registry import default_engine
    from bothends.model.bundled import find_model
    from bothends.model.directory import read_description
    from bothends.translating.translation import splits_lines

    directory = find_model(model, weights=engine == "torch")
    splits = format_ is None and splits_lines(read_description(directory).task)
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
    files: Sequence[Place],
    output: Sequence[Place],
    settings: JobSettings,
) -> None:
    """Run the job and say what was written."""
    from bothends.distillation.bulk import BulkTranslation, translate_in_bulk
    from bothends.distillation.shard_run import Share
    from bothends.jobs.pool import parse_pool
    from bothends.jobs.processes import available_cores

    if not files or len(output) != 1:
        raise UsageError(
            "a job needs files and one --output: translate FILE ... --output PATH --workers N"
        )
    target = output[0]
    if len(files) == 1 and isinstance(target, Path) and not target.is_dir():
        # A file, as without a job.
        check_writable({"--output": target}, [each for each in files if isinstance(each, Path)])
    manifest = translate_in_bulk(
        BulkTranslation(
            teacher=teacher,
            inputs=tuple(files),
            output=output[0],
            pool=parse_pool(settings.workers or str(available_cores())),
            share=None if settings.shard is None else Share.parse(settings.shard),
            shard_lines=settings.shard_lines,
            on_crash=settings.on_crash,
            same_kind=settings.same_kind,
            picture=parse_picture(settings.picture, files),
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
    print_job_notes(manifest.kinds, manifest.crashed)
    print(f"written to {output[0]}")


def print_job_notes(kinds: Mapping[str, str], crashed: Sequence[str]) -> None:
    """What a reader of the result should know of how it was made."""
    if crashed:
        more = f" and {len(crashed) - 3:,} more" if len(crashed) > 3 else ""
        print(f"  no translation, as they crash workers: {', '.join(crashed[:3])}{more}")
    if len(kinds) > 1:
        print(f"  made by {len(kinds)} kinds of processors, which may round differently")
