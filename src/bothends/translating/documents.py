"""Documents in, documents out, and lines with a glossary: `bothends translate` on what people have.

Warnings report what a reader of the output could not see: sentences that were cut, translations
that hit their length limit or are suspiciously short, blocks that stay in the source language, and
terms of a glossary that a translation does not use. What is cut is named by its text: a sentence of
a document has no line of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bothends.documents import (
    DocumentFormat,
    DocumentOptions,
    DocumentReport,
    Glossary,
    translate_document,
)
from bothends.documents.protected import ALL_KINDS
from bothends.errors import BothendsError, warn
from bothends.text.lines import STANDARD_INPUT, Invalid, LineReader, read_text
from bothends.text.unknown_words import UnknownWords
from bothends.translating.files import MOST_WARNINGS, TranslationOutput
from bothends.translating.streaming import split_into_windows
from bothends.translating.translation import TranslationOptions
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
        self._longest = translator.longest_source(options)
        self._translator = translator
        self._options = replace(options, split_sentences=False)  # it gets sentences
        self._strict = strict
        self._advance = advance
        self._document = DocumentOptions(
            language=description.source_language,
            target_language=description.target_language,
            glossary=glossary,
            max_length=translator.longest_sentence(options),
            length=lambda text: len(vocabulary.encode([text])[0]),
            # With --format lines, a line is taken as it is.
            protect=ALL_KINDS if split_lines else None,
            unknown_words=UnknownWords(vocabulary, description.source_language),
            split_lines=split_lines,
        )
        self._counts: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._file = ""

    def translate(self, text: str, format: DocumentFormat, file: str = "") -> str:
        """Translate a document; messages name its `file`."""
        self._file = file
        result = translate_document(text, format, self._sentences, self._document)
        self._count(result.report)
        return result.text

    def _sentences(self, sentences: Sequence[str]) -> list[str]:
        found = list(self._translator.stream(sentences, self._options, advance=self._advance))
        for sentence, each in zip(sentences, found, strict=True):
            if each.truncated:
                what = f"longer than {self._longest} tokens, the rest is cut"
                self._tell("over-long", sentence, what, "--max-source-length")
            if not each.finished:
                what = "its translation reached the maximum length and was cut there"
                self._tell("unfinished", sentence, what, "--max-length")
            self._counts["short"] += each.short
        return [each.text for each in found]

    def _tell(self, kind: str, sentence: str, what: str, option: str) -> None:
        file = f"{self._file}: " if self._file else ""
        where = f"{file}{sentence[:40]!r}{'...' * (len(sentence) > 40)}"
        if self._strict:
            raise BothendsError(f"{where}: {what}; see {option}")
        self._counts[kind] += 1
        if self._counts[kind] <= MOST_WARNINGS:
            warn(f"{where}: {what}")

    def _count(self, report: DocumentReport) -> None:
        if report.kept_blocks:
            count = report.kept_blocks
            what = f"{count:,} blocks stay" if count > 1 else "1 block stays"
            complaint = f"{what} in the source language: {self._file}"
            if self._strict:
                raise BothendsError(f"{complaint}; translate it without --strict, and then by hand")
            warn(complaint)
        self._counts["tags"] += report.tags
        self._counts["unplaced"] += report.unplaced_tags
        self._counts["hits"] += report.glossary_hits
        self._counts["misses"] += report.glossary_misses
        self._missed.update(report.missed_terms)

    def summarise(self) -> None:
        """Warn of what there is to warn of."""
        for kind, what in (
            ("over-long", "over-long sentences that were cut"),
            ("unfinished", "translations of sentences that were cut at the maximum length"),
            ("short", "translations that are much shorter than their sentences"),
        ):
            if count := self._counts[kind]:
                warn(f"{what}: {count:,}")
        if count := self._counts["unplaced"]:
            warn(f"tags whose place was guessed: {count:,} of {self._counts['tags']:,}")
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
    output: TranslationOutput,
    format: DocumentFormat,
    invalid: Invalid,
) -> None:
    """Translate documents, each whole; stdin if there is no path."""
    for number, path in enumerate(paths or [STANDARD_INPUT]):
        file = "<stdin>" if path == STANDARD_INPUT else str(path)
        output.write(number, documents.translate(read_text(path, invalid), format, file))
    documents.summarise()


def translate_lines(
    documents: DocumentTranslator, reader: LineReader, output: TranslationOutput
) -> int:
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
