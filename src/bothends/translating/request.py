"""All that `bothends translate` is asked for, as a value, and how it is carried out.

Heavy parts are imported where a request needs them: a plain line is translated soon after the
program starts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bothends.text.lines import Invalid, LineReader
from bothends.translating.files import LineFormat, OutputFiles, StandardOutput, translate_files
from bothends.translating.load_options import LoadOptions
from bothends.translating.protecting import LineProtector
from bothends.translating.translation import TranslationOptions, splits_lines

if TYPE_CHECKING:  # lines need none of it, and it takes its time to import
    from bothends.documents import DocumentFormat


@dataclass(frozen=True)
class TranslationRequest:
    """What to translate, with what, and how."""

    #: stdin if there is none
    inputs: Sequence[Path] = ()
    #: stdout if there is none
    outputs: Sequence[Path] = ()
    model: Path | None = None
    loading: LoadOptions = field(default_factory=LoadOptions)
    options: TranslationOptions = field(default_factory=TranslationOptions)
    #: None: lines that may hold several sentences
    format: DocumentFormat | None = None
    lines: LineFormat = field(default_factory=LineFormat)
    invalid: Invalid = "error"
    strict: bool = False
    #: None: on a terminal
    progress: bool | None = None
    #: a file of terms
    glossary: Path | None = None
    #: a model that ranks hypotheses as well
    rescorer: Path | None = None

    def translates_documents(self) -> bool:
        return self.format is not None and self.format != "lines"

    def shows_progress(self) -> bool:
        """A bar on a terminal, unless somebody types the text."""
        if self.progress is not None:
            return self.progress
        typed = not self.inputs and sys.stdin is not None and sys.stdin.isatty()
        return sys.stderr.isatty() and not typed


def carry_out(request: TranslationRequest) -> None:
    """Load the model, and translate from the inputs to the outputs."""
    terms = None
    if request.glossary is not None:
        from bothends.documents import Glossary

        terms = Glossary.load(request.glossary)
    reader = LineReader(request.inputs, request.invalid)
    begin = time.monotonic()
    progress = request.shows_progress()
    is_document = request.translates_documents()
    count, advance = 0, None
    with request.loading.load(request.model) as translator, ExitStack() as stack:
        if request.rescorer is not None:
            one_thread = replace(request.loading, threads=1)
            rescorer = stack.enter_context(one_thread.load(request.rescorer))
            translator = stack.enter_context(translator.rescored_by(rescorer))
        destination = OutputFiles(request.outputs, stack) if request.outputs else StandardOutput()
        if progress and not (sys.stdout.isatty() and not request.outputs):
            from bothends.progress import progress as bar

            # How many sentences a document has is known when it has been read to its end.
            unit, total = ("sentences", None) if is_document or terms else ("lines", reader.total())
            advance = stack.enter_context(bar("translate", unit, total))
        translates = splits_lines(translator.description.task)
        split = translates and request.format is None
        if is_document or terms is not None:
            from bothends.translating.documents import (
                DocumentTranslator,
                translate_documents,
                translate_lines,
            )

            documents = DocumentTranslator(
                translator,
                request.options,
                glossary=terms,
                split_lines=split,
                strict=request.strict,
                advance=advance,
            )
            if request.format is not None and is_document:
                translate_documents(
                    documents, request.inputs, destination, request.format, request.invalid
                )
            else:
                count = translate_lines(documents, reader, destination)
        else:
            options = replace(request.options, split_sentences=split)
            # Records and scores are of what the model wrote; other lines are text to be read.
            protects = split and request.lines == LineFormat()
            count = translate_files(
                translator,
                reader,
                destination,
                options,
                request.lines,
                strict=request.strict,
                warn_of_several=translates and request.format == "lines",
                protector=LineProtector(translator, options, strict=request.strict)
                if protects
                else None,
                advance=advance,
            )
        if isinstance(destination, OutputFiles):
            destination.finish()
    if not is_document and progress:
        seconds = time.monotonic() - begin
        print(f"{count:,} lines, {count / seconds:,.1f} a second", file=sys.stderr)
