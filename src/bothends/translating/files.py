"""Files in, files out: what `bothends translate` does with a translator.

Lines come out in the order of the input, as soon as they are ready; an output file appears when it
is complete. Warnings report what a reader of the output could not see: lines that were cut,
translations that hit their length limit or are suspiciously short, lines of several sentences.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from bothends.errors import BothendsError, UsageError, warn
from bothends.files import output_file
from bothends.storage.places import Place
from bothends.text.lines import LineReader
from bothends.text.sentences import holds_several
from bothends.text.vocabulary import most_tokens
from bothends.translating.cells import TableCells
from bothends.translating.protecting import LineProtector
from bothends.translating.translation import EMPTY, Translation, TranslationOptions
from bothends.translator import Translator

if TYPE_CHECKING:  # lines need none of it, and it takes its time to import
    from bothends.documents import DocumentFormat

#: Lines that are named in warnings of one kind; the others are only counted.
MOST_WARNINGS = 20

_FIELDS = (
    *("text", "score", "logprob", "tokens", "pieces", "steps"),
    *("finished", "truncated", "short", "sentences", "time"),
)


@dataclass(frozen=True)
class LineFormat:
    """How the translation of a line is written: `n_best` lines of text, or a record."""

    n_best: int = 1
    scores: bool = False
    json: bool = False

    def write(self, translation: Translation) -> str:
        if self.json:
            return json.dumps(_record(translation), ensure_ascii=False) + "\n"
        # Empty lines where there are no more translations: output stays aligned.
        best = [*translation.hypotheses, *[EMPTY] * self.n_best][: self.n_best]
        return "".join(
            f"{each.score:.6f}\t{each.text}\n" if self.scores else f"{each.text}\n" for each in best
        )


def _record(translation: Translation) -> dict[str, Any]:
    """The fields by their names; `hypotheses`, the n best, only if there are several."""
    record = {name: getattr(translation, name) for name in _FIELDS}
    if translation.next_best:
        record["hypotheses"] = [
            {name: getattr(each, name) for name in _FIELDS} for each in translation.hypotheses
        ]
    return record


class TranslationOutput(Protocol):
    """Where translations go."""

    def write(self, file: int, text: str) -> None:
        """Write a text that belongs to the input file of this number; files come in order."""
        ...


class StandardOutput:
    """All translations on stdout, each at once: somebody may be waiting for this very line."""

    def __init__(self) -> None:
        self._file = sys.stdout.buffer  # bytes: text is UTF-8 in and out, whatever the locale

    def write(self, file: int, text: str) -> None:
        self._file.write(text.encode("utf-8", "replace"))
        self._file.flush()


class OutputFiles:
    """A file for each input, or one for all. A file gets its name when it is complete."""

    def __init__(self, paths: Sequence[Path], stack: ExitStack) -> None:
        self._paths = list(paths)
        self._stack = stack
        self._open: ExitStack | None = None
        self._number = -1
        self._file: BinaryIO | None = None

    def write(self, file: int, text: str) -> None:
        number = min(file, len(self._paths) - 1)
        self._go_to(number)
        assert self._file is not None
        try:
            self._file.write(text.encode("utf-8", "replace"))
        except OSError as error:
            path = self._paths[number]
            raise BothendsError(f"{path}: cannot be written ({error.strerror})") from None

    def finish(self) -> None:
        """Give the last files their names, those without a line too."""
        self._go_to(len(self._paths) - 1)
        if self._open is not None:
            self._open.close()

    def _go_to(self, number: int) -> None:
        while self._number < number:
            if self._open is not None:
                self._open.close()
            self._number += 1
            path = self._paths[self._number]
            # Closed by whoever goes on; an error before that closes it as a failure.
            self._open = self._stack.enter_context(ExitStack())
            self._file = self._open.enter_context(output_file(path))


def choose_outputs(inputs: Sequence[Path], outputs: Sequence[Path]) -> list[Path]:
    """The files to write: one for all inputs, one for each, or one for each in a directory."""
    if len(outputs) == 1 and (outputs[0].is_dir() or str(outputs[0]).endswith("/")):
        directory = outputs[0]
        if not inputs:
            raise UsageError(f"--output {directory}: is a directory, but no input has a name")
        if not directory.is_dir():
            raise BothendsError(f"--output {directory}: no such directory")
        # Compressed text is read, but never written.
        return [directory / path.name.removesuffix(".gz") for path in inputs]
    if len(outputs) not in (1, len(inputs)):
        raise UsageError(
            f"--output is given {len(outputs)} times for {len(inputs)} files: give it once, or "
            "once for each file, or name a directory"
        )
    return list(outputs)


def format_by_name(inputs: Sequence[Path]) -> DocumentFormat | None:
    """The format that the names of the files tell: `page.md` is Markdown. None if they are lines.

    Files of several formats are an error, because the output has only one.
    """
    if not any(path.suffix for path in inputs):  # nothing tells what they are
        return None
    from bothends.documents import format_of

    formats = dict.fromkeys(map(format_of, inputs))
    if len(formats) > 1:
        names = ", ".join(str(path) for path in inputs[:4])
        raise UsageError(
            f"{names}: files of several formats ({', '.join(formats)}); translate each format "
            "separately, or name one with --format"
        )
    return next((found for found in formats if found != "lines"), None)


def expand_globs(paths: Sequence[Place]) -> list[Place]:
    """Paths, with a pattern such as `*.txt`, which no shell has expanded, as the files it means."""
    found: list[Place] = []
    for path in paths:
        if not isinstance(path, Path) or path.exists() or not set("*?[") & set(str(path)):
            found.append(path)
            continue
        base = Path(path.anchor) if path.is_absolute() else Path()
        matches = sorted(base.glob(str(path.relative_to(path.anchor))))
        if not matches:
            raise BothendsError(f"{path}: no file matches")
        found += [match for match in matches if match.is_file()]
    return found


class Watch:
    """Warns about lines that were cut or look wrong, and counts them."""

    def __init__(
        self,
        translator: Translator,
        reader: LineReader,
        options: TranslationOptions,
        *,
        strict: bool,
    ) -> None:
        self.lines = 0
        self._translator = translator
        self._reader = reader
        self._longest = translator.longest_source(options)
        self._strict = strict
        self._counts: Counter[str] = Counter()

    def reading(self) -> Iterator[str | None]:
        """The lines as they are read, with a warning of the first that holds several sentences, and
        of the first that is longer than all that the model learned from."""
        index, several, longer = 0, False, False
        language = self._translator.description.source_language
        for line in self._reader:
            if line is not None:
                where = self._reader.where
                if not several and holds_several(line, language):
                    several = True
                    warn(
                        f"{where(index)}: holds several sentences, and a model translates one at a "
                        "time; without --format lines, they are split"
                    )
                elif not longer and (beyond := self._beyond_training(line)):
                    longer = True
                    warn(f"{where(index)}: {beyond}; without --format lines, it is cut at clauses")
                index += 1
            yield line

    def _beyond_training(self, line: str) -> str:
        """How a line is longer than all that the model learned from; empty if it is not.

        One that is cut at the maximum is not meant: it has a warning of its own.
        """
        lengths = self._translator.description.lengths
        longest = None if lengths is None else lengths.longest_source
        if longest is None or most_tokens(line) <= longest:
            return ""
        tokens = len(self._translator.vocabularies.source.encode([line])[0])
        if not longest < tokens <= self._longest:
            return ""
        return f"{tokens} tokens, and the model learned from {longest} at most"

    def see(self, translation: Translation) -> None:
        """The translation of the next line."""
        where = self._reader.where(self.lines)
        self.lines += 1
        if translation.truncated:
            self._tell(
                "over-long",
                f"{where}: longer than {self._longest} tokens",
                "the rest of it is not translated",
                "--max-source-length",
            )
        if not translation.finished:
            self._tell(
                "unfinished",
                f"{where}: the translation reached its maximum length",
                "and was cut there",
                "--max-length",
            )
        self._counts["short"] += translation.short

    def summarise(self) -> None:
        """The counts, as far as there is something to count."""
        if count := self._counts["over-long"]:
            warn(f"{count:,} over-long {'line was' if count == 1 else 'lines were'} cut")
        if count := self._counts["unfinished"]:
            what = "translation was" if count == 1 else "translations were"
            warn(f"{count:,} {what} cut at the maximum length")
        if count := self._counts["short"]:
            what = "translation is much shorter than its source"
            if count > 1:
                what = "translations are much shorter than their sources"
            warn(f"{count:,} {what}, and may lack a part; --json marks them as short")

    def _tell(self, kind: str, complaint: str, consequence: str, option: str) -> None:
        if self._strict:
            raise BothendsError(f"{complaint}; see {option}")
        self._counts[kind] += 1
        if self._counts[kind] <= MOST_WARNINGS:
            warn(f"{complaint}, {consequence}")
        elif self._counts[kind] == MOST_WARNINGS + 1:
            warn(f"more {kind} lines follow, which are only counted")


def translate_files(
    translator: Translator,
    reader: LineReader,
    output: TranslationOutput,
    options: TranslationOptions,
    style: LineFormat,
    *,
    strict: bool = False,
    warn_of_several: bool = False,
    protector: LineProtector | None = None,
    advance: Callable[[int], None] | None = None,
) -> int:
    """Translate all lines of some files; the number of them."""
    watch = Watch(translator, reader, options, strict=strict)
    lines: Iterable[str | None] = watch.reading() if warn_of_several else reader
    if protector is not None:
        cells = TableCells(options)
        lines = protector.masked(cells.cut(lines))
        advance = advance and protector.in_lines(cells.in_lines(advance))
    with closing(translator.stream(lines, options, advance=advance)) as translations:
        answers: Iterable[Translation] = translations
        if protector is not None:
            answers = cells.joined(protector.mended(translations))
        for index, translation in enumerate(answers):
            watch.see(translation)
            output.write(reader.file_of(index), style.write(translation))
    watch.summarise()
    return watch.lines
