"""Options of a document's translation, and the report on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from bothends.documents.placeholders import NUMBERED_LETTER, PlaceholderStyle
from bothends.text.clauses import Length
from bothends.text.plain_writing import PlainWriting
from bothends.text.sentences import SentenceSplitter, split_sentences

if TYPE_CHECKING:
    from bothends.documents.glossary import Glossary

#: Sentences in, their translations out, in the same order.
Translate = Callable[[Sequence[str]], Sequence[str]]

#: Sentences in, each with the target phrases that its translation must hold; translations out.
TranslateWith = Callable[[Sequence[str], Sequence[Sequence[str]]], Sequence[str]]

#: Half-open offsets into a text, in order.
FindSpans = Callable[[str], Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class DocumentOptions:
    """How a document is translated."""

    #: of the source, for abbreviations and capitals; unknown by default
    language: str | None = None
    #: of the translation, for numbers, quotes and capitals; unknown by default
    target_language: str | None = None
    splitter: SentenceSplitter = split_sentences
    #: kinds of spans that come back as they are, see `protected.KINDS`; None: all of them, but
    #: none in the format `lines`
    protect: frozenset[str] | None = None
    #: finds words that the model has no letters for, which come back as they are too
    unknown_words: FindSpans | None = None
    placeholders: PlaceholderStyle = NUMBERED_LETTER
    glossary: Glossary | None = None
    #: a search that can be told which phrases to use; without it, placeholders carry the glossary
    translate_with: TranslateWith | None = None
    #: translate what readers see of attributes too: alt, title, placeholder, aria-label
    attributes: bool = True
    #: the longest sentence in units of `length`; longer ones are cut at clauses
    max_length: int | None = None
    length: Length = len
    #: in the format `lines`: translate the sentences of a line one by one
    split_lines: bool = False

    @property
    def writing(self) -> PlainWriting:
        """How models are asked for text in capitals or with typographic quotes."""
        return PlainWriting(self.language, self.target_language)


@dataclass
class DocumentReport:
    """What happened to a document. All figures are counts."""

    sentences: int = 0
    #: sentences that were too long and were translated in parts
    cut_sentences: int = 0
    #: lines of the format `lines` that hold more than one sentence
    lines_of_several_sentences: int = 0
    protected_spans: int = 0
    #: sentences translated around their protected spans, because the model lost or repeated one
    fallbacks: int = 0
    #: inline tags inside sentences, and those of them whose place was guessed
    tags: int = 0
    unplaced_tags: int = 0
    glossary_hits: int = 0
    glossary_misses: int = 0
    #: blocks left in the source language, because their translation would not parse as before
    kept_blocks: int = 0
    #: glossary terms that a translation does not hold, with their counts
    missed_terms: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class DocumentResult:
    """A translated document and the report on it."""

    text: str
    report: DocumentReport
