"""`bothends translate` and `bothends summarize`: line in, line out."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bothends.cli.bulk import (
    OnCrashOption,
    SearchSettings,
    ShardLinesOption,
    ShardOption,
    WorkersOption,
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
    MaxSourceLengthOption,
    ModelOption,
    PrecisionOption,
    ThreadsOption,
)
from bothends.cli.outputs import check_writable
from bothends.errors import UsageError

if TYPE_CHECKING:
    from bothends.progress import Advance
    from bothends.text.lines import LineReader


def translate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Text, line by line; stdin if none."),
    ] = None,
    model: ModelOption = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where translations go; again for each FILE, or a directory for all.",
        ),
    ] = None,
    format_: Annotated[
        Literal["lines", "text", "markdown", "html", "srt"] | None,
        typer.Option(
            "--format",
            help="By default as the file name says (.txt, .md, .html, .srt), or else lines, split "
            "where they hold several sentences; lines: one sentence each, as it is.",
        ),
    ] = None,
    beam: BeamOption = DEFAULTS.beam,
    length_penalty: LengthPenaltyOption = DEFAULTS.length_penalty,
    n_best: Annotated[
        int, typer.Option(min=1, help="Translations of each line.")
    ] = DEFAULTS.n_best,
    min_length: Annotated[
        int, typer.Option(min=0, help="Fewest tokens of a translation.")
    ] = DEFAULTS.min_length,
    max_length: Annotated[
        int | None,
        typer.Option(min=1, help="Most tokens of a translation; else 2 x the line's + 20."),
    ] = DEFAULTS.max_length,
    max_source_length: MaxSourceLengthOption = DEFAULTS.max_source_length,
    deduplicate: DeduplicateOption = DEFAULTS.deduplicate,
    scores: Annotated[bool, typer.Option("--scores", help="Print SCORE<TAB>TEXT.")] = False,
    json_: JsonOption = False,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Source tokens of a batch, padding included.")
    ] = DEFAULTS.batch_tokens,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = None,
    device: DeviceOption = None,
    invalid: InvalidOption = "error",
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a line or translation that would be cut.")
    ] = False,
    progress: Annotated[
        bool | None,
        typer.Option(help="Report lines and speed on stderr; by default on a terminal."),
    ] = None,
    workers: WorkersOption = None,
    shard: ShardOption = None,
    shard_lines: ShardLinesOption = 2000,
    on_crash: OnCrashOption = "error",
) -> None:
    """Translate text, line by line.

    Line N of the output belongs to line N of the input.
    """
    from bothends.text.lines import LineReader
    from bothends.translate_files import (
        LineFormat,
        OutputFiles,
        StandardOutput,
        choose_outputs,
        expand_globs,
        format_by_name,
        translate_documents,
        translate_files,
    )
    from bothends.translation import TranslationOptions
    from bothends.translator import LoadOptions

    inputs = expand_globs(files or [])
    if workers is not None or shard is not None:
        others = (n_best > 1, min_length, max_length, deduplicate, scores, json_, strict, threads)
        if any(others) or precision or device or invalid != "error":
            raise UsageError(
                "of the options for translations, a job takes --beam, --length-penalty, "
                "--max-source-length, --engine and --format lines alone"
            )
        search = SearchSettings(beam, length_penalty, max_source_length)
        teacher = job_teacher(model, engine, search, format_)
        translate_job(teacher, inputs, output or [], workers, shard, shard_lines, on_crash)
        return
    outputs = choose_outputs(inputs, output) if output else []
    check_writable({"--output": outputs}, inputs)
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
    # What a pipe brings, or a job with scores and records, are lines.
    if format_ is None and not (scores or json_ or n_best > 1):
        format_ = format_by_name(inputs)
    is_document = format_ is not None and format_ != "lines"
    if is_document and (n_best > 1 or scores or json_):
        raise UsageError(
            f"--format {format_}: is written as text, without --n-best, --scores, --json"
        )
    reader = LineReader(inputs, invalid)
    begin = time.monotonic()
    count, advance = 0, None
    with (
        LoadOptions(engine, precision, threads, device).load(model) as translator,
        ExitStack() as stack,
    ):
        destination = OutputFiles(outputs, stack) if outputs else StandardOutput()
        if format_ is not None and format_ != "lines":
            translate_documents(
                translator, inputs, destination, format_, options, invalid, strict=strict
            )
        else:
            if progress is None:  # a bar, unless somebody types the text
                typed = not inputs and sys.stdin is not None and sys.stdin.isatty()
                progress = sys.stderr.isatty() and not typed
            if progress and not (sys.stdout.isatty() and not outputs):
                advance = stack.enter_context(_bar(reader))
            # A summary is of all sentences of a line.
            translates = translator.description.task == "translation"
            count = translate_files(
                translator,
                reader,
                destination,
                replace(options, split_sentences=translates and format_ is None),
                LineFormat(n_best, scores, json_),
                strict=strict,
                warn_of_several=translates and format_ == "lines",
                advance=advance,
            )
        if isinstance(destination, OutputFiles):
            destination.finish()
    if not is_document and (progress or advance is not None):
        seconds = time.monotonic() - begin
        print(f"{count:,} lines, {count / seconds:,.1f} a second", file=sys.stderr)


@wraps(translate)
def summarize(**options: Any) -> None:
    """`translate` with a model of the user's: the bundled ones only translate."""
    if options["model"] is None:
        raise UsageError("no bundled model summarises: name one with --model DIR")
    translate(**{**options, "format_": options["format_"] or "lines"})


def _bar(reader: LineReader) -> AbstractContextManager[Advance]:
    """A progress bar, or lines of progress, with the total where it can be known."""
    from bothends.progress import progress

    return progress("translate", "lines", reader.total())
