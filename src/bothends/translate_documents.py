"""Documents in, documents out, and lines with a glossary: `bothends translate` on what people have.

Warnings report what a reader of the output could not see: translations that hit their length limit
or are suspiciously short, and terms of a glossary that a translation does not use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bothends.documents import (
    DocumentFormat,
    DocumentOptions,
    DocumentReport,
    Glossary,
    translate_document,
)
from bothends.errors import BothendsError, warn
from bothends.streaming import split_into_windows
from bothends.text.lines import STANDARD_INPUT, Invalid, LineReader, read_text
from bothends.translate_files import Output
from bothends.translation import TranslationOptions
from bothends.translator import Translator

#: Terms that are named in the warning about a glossary.
MOST_TERMS = 5


class DocumentTranslator:
    """Translates documents with a model, and counts what needs a look."""

    def __init__(
        self,
        translator: Translator,
        options: TranslationOptions,
        *,
        glossary: Glossary | None = None,
        split_lines: bool = False,
        strict: bool = False,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        description, vocabulary = translator.description, translator.vocabularies.source
        limit = options.max_source_length
        if description.lengths is not None:
            limit = min(limit, description.lengths.longest_source)
        self._translator = translator
        self._options = options
        self._strict = strict
        self._advance = advance
        self._document = DocumentOptions(
            language=description.source_language,
            glossary=glossary,
            max_length=limit,
            length=lambda text: len(vocabulary.encode([text])[0]),
            split_lines=split_lines,
        )
        self._counts: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()

    def translate(self, text: str, format: DocumentFormat) -> str:
        result = translate_document(text, format, self._sentences, self._document)
        self._count(result.report)
        return result.text

    def _sentences(self, sentences: Sequence[str]) -> list[str]:
        found = list(self._translator.stream(sentences, self._options, advance=self._advance))
        unfinished = sum(not each.finished for each in found)
        if unfinished and self._strict:
            raise BothendsError("the translation of a sentence would be cut; see --max-length")
        self._counts["unfinished"] += unfinished
        self._counts["short"] += sum(each.short for each in found)
        return [each.text for each in found]

    def _count(self, report: DocumentReport) -> None:
        self._counts["hits"] += report.glossary_hits
        self._counts["misses"] += report.glossary_misses
        self._missed.update(report.missed_terms)

    def summarise(self) -> None:
        """Warn of what there is to warn of."""
        if count := self._counts["unfinished"]:
            warn(f"{count:,} translations of sentences were cut at the maximum length")
        if count := self._counts["short"]:
            warn(f"{count:,} translations of sentences are much shorter than their sources")
        if count := self._counts["misses"]:
            terms = [f"{term} ({times})" for term, times in self._missed.most_common(MOST_TERMS)]
            more = ", ..." if len(self._missed) > MOST_TERMS else ""
            warn(
                f"the glossary was not honoured at {count:,} of "
                f"{count + self._counts['hits']:,} places: {', '.join(terms)}{more}"
            )


def translate_documents(
    documents: DocumentTranslator,
    paths: Sequence[Path],
    output: Output,
    format: DocumentFormat,
    invalid: Invalid,
) -> None:
    """Translate documents, each whole; stdin if there is no path."""
    for number, path in enumerate(paths or [STANDARD_INPUT]):
        output.write(number, documents.translate(read_text(path, invalid), format))
    documents.summarise()


def translate_lines(documents: DocumentTranslator, reader: LineReader, output: Output) -> int:
    """Translate line by line, some at a time; the number of lines."""
    count = 0
    for window in split_into_windows(_as_lines(reader), weigh=len):
        if not window:
            continue
        translated = documents.translate("\n".join(window), "lines").split("\n")
        for line in translated:
            output.write(reader.file_of(count), f"{line}\n")
            count += 1
    documents.summarise()
    return count


def _as_lines(reader: LineReader) -> Iterable[str | None]:
    """Lines of which none looks like two: a carriage return would begin a line's end."""
    return (None if line is None else line.replace("\r", " ") for line in reader)
