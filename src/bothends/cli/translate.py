"""`bothends translate` and `bothends summarize`: line in, line out."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bothends.cli.bulk import (
    JobSettings,
    OnCrashOption,
    SameKindOption,
    SearchSettings,
    ShardLinesOption,
    ShardOption,
    ShardPictureOption,
    WorkersOption,
    check_lines,
    job_teacher,
    translate_job,
)
from bothends.cli.options import (
    DEFAULTS,
    BeamOption,
    DeduplicateOption,
    DeviceOption,
    EngineOption,
    InvalidOption,
    JsonOption,
    LengthPenaltyOption,
    ModelOption,
    PrecisionOption,
    ShortlistOption,
    ThreadsOption,
)
from bothends.cli.outputs import STANDARD_INPUT, check_writable
from bothends.errors import UsageError
from bothends.jobs import SHARD_LINES

if TYPE_CHECKING:
    from bothends.storage.places import Place


def translate(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Text, line by line; stdin if none."),
    ] = None,
    model: ModelOption = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file; one for all inputs, one for each, or a directory.",
        ),
    ] = None,
    format_: Annotated[
        Literal["lines", "text", "markdown", "html", "srt", "vtt"] | None,
        typer.Option(
            "--format",
            help="Format of the input. Default: by file name (.txt, .md, .html, .srt, .vtt), "
            "otherwise lines, split into sentences. With `lines`, every line is one sentence.",
        ),
    ] = None,
    beam: BeamOption = DEFAULTS.beam,
    length_penalty: LengthPenaltyOption = DEFAULTS.length_penalty,
    n_best: Annotated[int, typer.Option(min=1, help="Translations per line.")] = DEFAULTS.n_best,
    min_length: Annotated[
        int, typer.Option(min=0, help="Minimum length of a translation, in tokens.")
    ] = DEFAULTS.min_length,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum length of a translation, in tokens. Default: 2 x the line's + 20."
        ),
    ] = DEFAULTS.max_length,
    max_source_length: Annotated[
        int,
        typer.Option(
            min=1,
            help="Longest sentence, in tokens; a longer one is split at its clauses, or with "
            "--format lines cut off.",
        ),
    ] = DEFAULTS.max_source_length,
    deduplicate: DeduplicateOption = DEFAULTS.deduplicate,
    rescore: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="A second model that helps to rank the beam, such as a 1x1 model of the same "
            "languages.",
        ),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Print SCORE<TAB>TEXT.")] = False,
    json_: JsonOption = False,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Source tokens per batch, padding included.")
    ] = DEFAULTS.batch_tokens,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = None,
    device: DeviceOption = None,
    shortlist: ShortlistOption = True,
    invalid: InvalidOption = "error",
    glossary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Terms to use, line by line: SOURCE<TAB>TARGET."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Fail if a line or a translation would be cut, or a part of a document would stay "
            "untranslated.",
        ),
    ] = False,
    progress: Annotated[
        bool | None,
        typer.Option(help="Report lines and speed on stderr; by default on a terminal."),
    ] = None,
    workers: WorkersOption = None,
    shard: ShardOption = None,
    shard_lines: ShardLinesOption = SHARD_LINES,
    on_crash: OnCrashOption = "error",
    same_kind: SameKindOption = False,
    picture: ShardPictureOption = None,
) -> None:
    """Translate text, line by line.

    Line N of the output belongs to line N of the input.
    """
    from bothends.storage.places import parse_place
    from bothends.translating.files import LineFormat, choose_outputs, expand_globs, format_by_name
    from bothends.translating.load_options import LoadOptions
    from bothends.translating.request import TranslationRequest, carry_out
    from bothends.translating.translation import TranslationOptions

    places = [parse_place(file) for file in files or []]
    written = [parse_place(file) for file in output or []]
    if workers is not None or shard is not None:
        searches = (n_best > 1, min_length, max_length, rescore, not shortlist)
        others = (*searches, scores, json_, strict, threads, glossary, precision, device)
        changed = (invalid != "error", batch_tokens != DEFAULTS.batch_tokens, progress is not None)
        if any(others) or any(changed) or deduplicate is not None:
            raise UsageError(
                "a job (--workers, --shard) takes only these options: --model, --beam, "
                "--length-penalty, --max-source-length, --engine and --format lines"
            )
        sources = expand_globs(places)
        check_lines(sources, format_)
        search = SearchSettings(beam, length_penalty, max_source_length)
        teacher = job_teacher(model, engine, search, format_)
        settings = JobSettings(workers, shard, shard_lines, on_crash, same_kind, picture)
        translate_job(teacher, sources, written, settings)
        return
    if same_kind or picture is not None or on_crash != "error" or shard_lines != SHARD_LINES:
        raise UsageError(
            "--shard-lines, --same-kind, --picture and --on-crash are for jobs: add --workers"
        )
    inputs = [_path(place) for place in expand_globs(places)]
    outputs = choose_outputs(inputs, [_path(place) for place in written]) if written else []
    check_writable({"--output": outputs}, inputs or [STANDARD_INPUT])
    options = TranslationOptions(
        beam=beam,
        length_penalty=length_penalty,
        n_best=n_best,
        min_length=min_length,
        max_length=max_length,
        max_source_length=max_source_length,
        deduplicate=deduplicate,
        batch_tokens=batch_tokens,
    )
    if rescore is not None and beam == 1:
        raise UsageError("--rescore chooses between the hypotheses of a beam: use --beam 2 or more")
    if format_ is None:
        format_ = format_by_name(inputs)
    is_document = format_ not in (None, "lines")
    if (is_document or glossary) and (n_best > 1 or scores or json_):
        what = f"--format {format_}" if is_document else "--glossary"
        hint = "; --format lines takes it as lines" if is_document else ""
        raise UsageError(f"{what}: is written as text, without --n-best, --scores, --json{hint}")
    carry_out(
        TranslationRequest(
            inputs,
            outputs,
            model,
            LoadOptions(engine, precision, threads, device, shortlist),
            options,
            format_,
            LineFormat(n_best, scores, json_),
            invalid,
            strict,
            progress,
            glossary,
            rescore,
        )
    )


@wraps(translate)
def summarize(**options: Any) -> None:
    """`translate` with a model of the user's: the bundled ones only translate."""
    if options["model"] is None:
        raise UsageError("no bundled model summarises: name one with --model DIR")
    translate(**{**options, "format_": options["format_"] or "lines"})


def _path(place: Place) -> Path:
    """A place on this machine."""
    if isinstance(place, Path):
        return place
    raise UsageError(f"{place}: only a job reads and writes URLs: give --workers, too")
