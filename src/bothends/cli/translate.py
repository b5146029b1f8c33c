"""`bothends translate` and `bothends summarize`: line in, line out."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from bothends.errors import BothendsError, UsageError, warn

if TYPE_CHECKING:
    from bothends.translation import Translation


def translate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Text, one sentence per line; stdin if none."),
    ] = None,
    model: ModelOption = None,
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
    engine: EngineOption = "onnx",
    device: DeviceOption = None,
    invalid: InvalidOption = "error",
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at an over-long line instead of cutting it.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--progress", help="Report lines and speed on stderr.")
    ] = False,
) -> None:
    """Translate text, line by line.

    Line N of the output belongs to line N of the input.
    """
    from bothends.progress import progress
    from bothends.text.lines import LineReader
    from bothends.translation import TranslationOptions
    from bothends.translator import LoadOptions

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
    reader = LineReader(files or [], invalid)
    translator = LoadOptions(engine, precision, threads, device).load(model)
    begin = time.monotonic()
    output = sys.stdout.buffer  # bytes: text is UTF-8 in and out, whatever the locale
    bar = report and not sys.stdout.isatty()  # where it would be drawn into the translations
    count = overlong = 0
    with (
        closing(translator.stream(reader, options)) as translations,
        progress("translate", "lines") if bar else nullcontext(_ignore) as advance,
    ):
        for count, translation in enumerate(translations, start=1):
            if translation.truncated:
                complaint = f"{reader.where(count - 1)}: longer than {max_source_length} tokens"
                if strict:
                    raise BothendsError(f"{complaint}; see --max-source-length")
                warn(f"{complaint}, the rest of it is not translated")
                overlong += 1
            if json_:
                text = json.dumps(_record(translation), ensure_ascii=False) + "\n"
            else:
                text = _lines(translation, n_best, scores)
            output.write(text.encode("utf-8", "replace"))
            output.flush()  # somebody may be waiting for this very line
            advance(1)
    if overlong:
        warn(f"{overlong:,} over-long {'line was' if overlong == 1 else 'lines were'} cut")
    if report:
        seconds = time.monotonic() - begin
        print(f"{count:,} lines, {count / seconds:,.1f} a second", file=sys.stderr)


@wraps(translate)
def summarize(**options: Any) -> None:
    """`translate` with a model of the user's: those in the box only translate."""
    if options["model"] is None:
        raise UsageError("no model in the box summarises: name one with --model DIR")
    translate(**options)


def _lines(translation: Translation, n_best: int, scores: bool) -> str:
    """`n_best` lines, empty ones where there are no more translations: output stays aligned."""
    from bothends.translation import EMPTY

    best = list(translation.hypotheses)
    best += [EMPTY] * (n_best - len(best))
    return "".join(
        f"{each.score:.6f}\t{each.text}\n" if scores else f"{each.text}\n" for each in best
    )


def _record(translation: Translation) -> dict[str, Any]:
    """The fields by their names; `hypotheses`, the n best, only if there are several."""
    record = {name: getattr(translation, name) for name in _FIELDS}
    if translation.next_best:
        record["hypotheses"] = [
            {name: getattr(each, name) for name in _FIELDS} for each in translation.hypotheses
        ]
    return record


_FIELDS = (
    "text",
    "score",
    "logprob",
    "tokens",
    "pieces",
    "steps",
    "finished",
    "truncated",
    "time",
)


def _ignore(lines: int) -> None: ...
