"""Lines whose addresses, numbers with units and the like must come back: masked, then mended.

Plain numbers are left to the model, which is asked again if it loses one. Lines in capitals or with
typographic quotes are asked for in plain writing. A line's sentences are asked for one by one, so
that each has its own writing, and comes back with the capital that it begins with.

Most lines have nothing of the kind. A quick look tells, and they are translated as they are.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from bothends.text.number_styles import NumberStyles
from bothends.text.numbers import lost_numbers, without_false_starts
from bothends.text.plain_writing import PlainWriting
from bothends.text.sentences import split_sentences
from bothends.text.units import FRACTIONS, RAISED, SIGNS, UNITS
from bothends.text.unknown_words import UnknownWords
from bothends.translating.line_job import join_sentences
from bothends.translating.parts import PartCounter
from bothends.translating.translation import Translation, TranslationOptions
from bothends.translator import Translator

if TYPE_CHECKING:  # most lines need none of it, and it takes its time to import
    from bothends.documents.masked_line import MaskedLine

#: Signs that ordinary sentences do not have.
_SIGNS = re.compile(rf"[`<>=^@_{{}}/\\$%#€£¥₽\u2044{SIGNS}{FRACTIONS}{RAISED}]|\+\+|\[\[")
#: Names of files and hosts have dots inside, some addresses colons; quotes end after them.
_INSIDE = re.compile("[.:][^\\s.\"'\u2019\u201d)]")
_DIGIT = re.compile(r"\d")
_GAP = "[ \u00a0\u202f]"


@cache
def _numbers() -> re.Pattern[str]:
    """Digits that are more than a year or a count."""
    return re.compile(rf"\d(?:\d{{4}}|[() \u00a0\u202f./-]{{1,2}}\d|{_GAP}?(?:{UNITS})(?![\w²³/]))")


def may_hold_spans(line: str) -> bool:
    """A quick look whether a line has something to protect; it suspects more than there is.

    A line without a letter is nothing else: models answer "?" with anything.
    """
    if _SIGNS.search(line) or _INSIDE.search(line):
        return True
    if not any(map(str.isalpha, line)):
        return bool(line) and not line.isspace()
    return _DIGIT.search(line) is not None and _numbers().search(line) is not None


def _unindented(line: str) -> tuple[str, str]:
    """The line without the spaces before it, and these."""
    words = line.lstrip(" ")
    return words, line[: len(line) - len(words)]


class _Question(NamedTuple):
    """A line on its way."""

    #: spaces before it, which no model sees
    indentation: str
    text: str
    #: of which `text` is what a model can be asked, if there is something to protect
    masked: MaskedLine | None
    #: of the text in plain writing, at least one
    sentences: Sequence[str]


class LineProtector:
    """Masks lines on their way to a model, and mends their translations, in the same order."""

    def __init__(
        self, translator: Translator, options: TranslationOptions, *, strict: bool = False
    ) -> None:
        self._translator = translator
        self._options = options.decided(translator.description.task)
        self._strict = strict
        description = translator.description
        languages = description.source_language, description.target_language
        self._writing = PlainWriting(*languages)
        self._styles = NumberStyles.of(*languages)
        vocabulary = translator.vocabularies.source
        self._unknown_words = UnknownWords(vocabulary, description.source_language)
        #: the lines that are under way
        self._under_way: deque[_Question] = deque()
        self._counter = PartCounter()

    def masked(self, lines: Iterable[str | None]) -> Iterator[str | None]:
        """The sentences of the lines, with placeholders for their spans; None, a pause, is passed
        on."""
        for line in lines:
            if line is None:
                yield None
                continue
            line, indentation = _unindented(line)
            suspect = may_hold_spans(line) or self._unknown_words(line)
            masked = self._mask(line) if suspect else None
            text = line if masked is None else masked.text
            sentences = self._sentences(self._writing.of(text))
            self._under_way.append(_Question(indentation, text, masked, sentences))
            self._counter.read(len(sentences))
            yield from map(self._writing.of, sentences)

    def mended(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """The translations of the lines, from those of their sentences."""
        translated = iter(translations)
        for first in translated:
            question = self._under_way.popleft()
            others = islice(translated, len(question.sentences) - 1)
            yield self._mended(question, [first, *others])

    def in_lines(self, advance: Callable[[int], None]) -> Callable[[int], None]:
        """`advance`, which counts lines, for sentences: they are all lines at the end."""
        return self._counter.in_wholes(advance)

    def _sentences(self, line: str) -> list[str]:
        if not self._options.split_sentences:
            return [line]
        spans = split_sentences(line, self._writing.language)
        return [line[start:end] for start, end in spans] if len(spans) > 1 else [line]

    def _mended(self, question: _Question, translations: Sequence[Translation]) -> Translation:
        """The translation of a line, with its writing, its numbers and its spans."""
        indentation, source, masked, sentences = question
        answered = [
            replace(each, text=self._with_numbers(sentence, self._restored(sentence, each)))
            for sentence, each in zip(sentences, translations, strict=True)
            if each.sentences  # a vocabulary may have nothing for one
        ]
        translation = translations[0]
        if answered:
            language = self._writing.target_language
            translation = join_sentences(answered, self._options, language)
        text = self._restored(source, translation)
        if masked is not None:
            mended = masked.answer(text)
            text = self._around_spans(masked.line) if mended is None else mended
        text = indentation + text if text else text
        return translation if text == translation.text else replace(translation, text=text)

    def _restored(self, source: str, translation: Translation) -> str:
        return self._writing.restore(source, translation.text)

    def _mask(self, line: str) -> MaskedLine | None:
        from bothends.documents.masked_line import mask_line

        return mask_line(line, self._unknown_words)

    def _with_numbers(self, line: str, answer: str) -> str:
        """A translation of a sentence that has its numbers, if there is one."""
        answer = without_false_starts(line, answer)
        if not lost_numbers(line, answer, self._styles):
            return answer
        from bothends.documents.numbers import mend_numbers
        from bothends.documents.placeholders import NUMBERED_LETTER
        from bothends.documents.plain_writing import asking_plainly

        def translate(lines: Sequence[str]) -> list[str]:
            return [each.text for each in self._translator.translate(lines, self._options)]

        asking = asking_plainly(translate, self._writing)
        (text,) = mend_numbers([line], [answer], asking, NUMBERED_LETTER, self._styles)
        return text

    def _around_spans(self, line: str) -> str:
        """The line translated as a document: its sentences, or what is between their spans."""
        from bothends.translating.documents import DocumentTranslator

        options = replace(self._options, split_sentences=False)
        documents = DocumentTranslator(
            self._translator, options, split_lines=True, strict=self._strict
        )
        return documents.translate(line.replace("\r", " "), "lines").strip()
