"""Text as people have it: paragraphs, Markdown, HTML and subtitles, around any translator.

    result = translate_document(text, "markdown", translate)
    print(result.text, result.report.sentences)

`translate` takes sentences and returns their translations. Everything that is not running text
comes back as it was, and the report counts what did not go smoothly.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Literal, get_args

from bothends.documents.flows import FlowTranslator, checked_answers
from bothends.documents.glossary import Glossary
from bothends.documents.numbers import keeping_numbers
from bothends.documents.options import (
    DocumentOptions,
    DocumentReport,
    DocumentResult,
    Translate,
    TranslateWith,
)
from bothends.documents.plain import needs_no_reading, translate_lines, translate_plain
from bothends.documents.plain_writing import asking_plainly
from bothends.documents.protected import ALL_KINDS, check_kinds
from bothends.documents.subtitles import translate_subtitles
from bothends.errors import BothendsError, UsageError, nearest
from bothends.text.number_styles import NumberStyles

__all__ = [
    "FORMATS",
    "DocumentFormat",
    "DocumentOptions",
    "DocumentReport",
    "DocumentResult",
    "Glossary",
    "Translate",
    "TranslateWith",
    "format_of",
    "translate_document",
]

DocumentFormat = Literal["lines", "text", "markdown", "html", "srt", "vtt"]
FORMATS: tuple[DocumentFormat, ...] = get_args(DocumentFormat)

_KNOWN = tuple(each for each in FORMATS if each != "lines")

_SUFFIXES: dict[str, DocumentFormat] = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".mkd": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".srt": "srt",
    ".vtt": "vtt",
}


#: Formats with a structure that is not known here: as lines, it would be translated, too.
_FOREIGN_SUFFIXES = frozenset(
    ".ass .csv .doc .docx .epub .ipynb .json .jsonl .odt .pdf .po .pot .pptx .rst .rtf .ssa .tex "
    ".tsv .xliff .xlf .xlsx .xml .yaml .yml".split()
)


def format_of(path: Path | str) -> DocumentFormat:
    """The format that a file name tells, compressed or not; `lines` if it tells none.

    A format whose markup could not be kept is a `UsageError`.
    """
    suffix = Path(str(path).removesuffix(".gz")).suffix.lower()
    if suffix in _FOREIGN_SUFFIXES:
        raise UsageError(
            f"{path}: not a format that keeps its markup ({', '.join(_KNOWN)}); --format lines "
            "translates it line by line, markup included"
        )
    return _SUFFIXES.get(suffix, "lines")


def translate_document(
    text: str,
    format: DocumentFormat,
    translate: Translate,
    options: DocumentOptions | None = None,
) -> DocumentResult:
    """Translate a document whole; see `DocumentOptions` and `DocumentReport`.

    `translate` is called with many sentences at a time, and seldom more than twice. The formats
    `markdown` and `html` need the extra `documents`.
    """
    if format not in FORMATS:
        raise UsageError(f"no format is called {format!r}: {nearest(format, FORMATS)}")
    options = options or DocumentOptions()
    protect = options.protect
    if protect is None:
        protect = frozenset() if format == "lines" else ALL_KINDS
    kinds = check_kinds(protect)
    if kinds:  # otherwise the model alone is asked for
        translate = asking_plainly(translate, options.writing)
    if "identifier" in kinds:
        styles = NumberStyles.of(options.language, options.target_language)
        translate = keeping_numbers(translate, options.placeholders, styles)
    if format == "text" and needs_no_reading(text, options):
        (answer,) = checked_answers([text], translate([text]))
        return DocumentResult(answer, DocumentReport(sentences=1))
    report = DocumentReport()
    flows = FlowTranslator(translate, options, report, kinds)
    if format == "lines":
        translated = translate_lines(text, flows, options, report)
    elif format == "text":
        translated = translate_plain(text, flows)
    elif format in ("srt", "vtt"):
        translated = translate_subtitles(text, flows, web=format == "vtt")
    elif format == "markdown":
        _require("markdown_it", format)
        _require("selectolax.lexbor", format)
        from bothends.documents.markdown import translate_markdown

        translated = translate_markdown(text, flows, options, report)
    else:
        _require("selectolax.lexbor", format)
        from bothends.documents.html import translate_html

        translated = translate_html(text, flows, options, report)
    report.unplaced_tags = min(report.unplaced_tags, report.tags)
    return DocumentResult(translated, report)


def _require(module: str, format: DocumentFormat) -> None:
    """Complain where an optional package is missing."""
    try:
        import_module(module)
    except ModuleNotFoundError:
        raise BothendsError(
            f"{format} needs the package {module.split('.')[0].replace('_', '-')}: "
            "pip install 'bothends[documents]'"
        ) from None
