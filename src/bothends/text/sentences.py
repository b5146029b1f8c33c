"""Sentences inside a line or paragraph, and what lies between them.

A sentence is a pair of offsets, so that nothing of the text can change: the sentences and the gaps
between them are the text. A gap is white space, or nothing in scripts without spaces.

The rules prefer a missed boundary to a wrong one: two sentences in one cost a translation little,
half a sentence costs it the sense.
"""

# Marks of other scripts look like ours to the linter.
# ruff: noqa: RUF001, RUF003

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from bothends.text.abbreviations import Abbreviations, abbreviations
from bothends.text.languages import short_code

#: Stands for something opaque inside a text (code, a link): it may begin or end a sentence.
OBJECT = "\ufffc"
#: Ends a sentence wherever it stands.
SEPARATOR = "\u2029"

# Full-width marks end a sentence wherever they stand, the others only before white space.
_WIDE_ENDS = "。！？｡．"
_ENDS = ".!?…‼⁇⁈⁉؟۔।॥։።။។"
_WIDE_CLOSERS = "」』）】》〉〕”’］"
_CLOSERS = "\"'”’»«›‹“‘)]}" + _WIDE_CLOSERS
_OPENERS = "\"'“”‘’„‚«»‹›([{¿¡–—-*_「『（【《〈〔［"

_END = re.compile(
    rf"[{_WIDE_ENDS}]+[{_WIDE_ENDS}{re.escape(_ENDS)}]*"
    rf"|[{re.escape(_ENDS)}][{re.escape(_ENDS)}{_WIDE_ENDS}]*(?:[ \u00a0](?=\.))?"
)
_AFTER_END = re.compile(
    rf"(?:\[\d{{1,3}}\]|[{re.escape(_CLOSERS)}{OBJECT}])*(?:[ \u00a0\u202f]»(?=\s|$))?"
)
# Tried only where white space begins: from each of its characters would take the square of them.
_BREAK = re.compile(rf"(?<![^\S{SEPARATOR}])[^\S{SEPARATOR}]*(?:{SEPARATOR}|\n[^\S\n]*\n)\s*")
_SPACE = re.compile(r"\s+")
_WORD_BEFORE = re.compile(r"[^\s(\[{\"'“”„«»‹›,;:/–—]*$")
_SPACED_ABBREVIATION = re.compile(r"\w{1,4}\.[ \u00a0]?$")
_LIST_MARK = re.compile(r"\s*(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})\.$")
_WIDE_SCRIPT = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
# 「行こう。」と彼は言った: what is quoted goes on.
_QUOTE_GOES_ON = re.compile("[とってのはがをにで、，,]")

_NEXT_WORD = re.compile(r"\W*([\w']+)(?!\.)\b")
#: "and so on": ends a sentence, although its last part alone is an abbreviation.
_LAST_WORDS = frozenset({"т.д", "т.п"})

_BRACKETS = {"(": ")", "「": "」", "『": "』", "（": "）", "【": "】", "《": "》"}
_WIDE_QUOTES = {"“": "”", "‘": "’"}
#: Longer brackets are split inside: they hold a paragraph, not an aside.
_LONGEST_BRACKET = 200


class Span(NamedTuple):
    """Half-open offsets into a text."""

    start: int
    end: int


class SentenceSplitter(Protocol):
    """Finds the sentences of a text; what lies between them must be white space or nothing."""

    def __call__(self, text: str, language: str | None = None) -> Sequence[Span]: ...


def split_sentences(text: str, language: str | None = None) -> list[Span]:
    """The sentences of a line or paragraph, without the white space around them.

    An empty line ends a sentence, a single line break does not. `language` chooses the
    abbreviations; without it those of all languages count.
    """
    spans: list[Span] = []
    start = 0
    for match in [*_BREAK.finditer(text), None]:
        end = match.start() if match else len(text)
        spans.extend(_split_block(text, start, end, language))
        start = match.end() if match else end
    return spans


def holds_several(text: str, language: str | None = None) -> bool:
    """Whether a line that should be one sentence is more than one."""
    return len(split_sentences(text, language)) > 1


def _split_block(text: str, begin: int, end: int, language: str | None) -> list[Span]:
    block = text[begin:end]
    if language is not None and short_code(language) == "el":
        block = block.replace(";", "?")  # the Greek question mark
    rules = _Rules(block, abbreviations(language))
    spans = []
    start = 0
    for match in _END.finditer(block):
        if match.end() <= start:
            continue
        stop = rules.boundary(match, start)
        if stop is not None:
            spans.append((start, stop))
            start = stop
    spans.append((start, len(block)))
    return [span for pair in spans if (span := _trimmed(block, *pair, begin)) is not None]


def _trimmed(block: str, start: int, end: int, offset: int) -> Span | None:
    while start < end and block[start].isspace():
        start += 1
    while end > start and block[end - 1].isspace():
        end -= 1
    return Span(offset + start, offset + end) if start < end else None


class _Rules:
    """Whether a mark ends a sentence, by what stands before and after it."""

    def __init__(self, block: str, known: Abbreviations) -> None:
        self.block = block
        self.known = known
        # Chat in small letters only: then a small letter says nothing.
        self.cased = any(character.isupper() for character in block)
        self.inside = _inside_brackets(block)

    def boundary(self, match: re.Match[str], start: int) -> int | None:
        """Where the sentence that begins at `start` ends, if it ends at this mark."""
        closed = _AFTER_END.match(self.block, match.end())
        end = closed.end() if closed else match.end()
        if end == len(self.block):
            return end
        # Closing brackets belong to the sentence; a bracket that stays open keeps it going.
        if self.inside[end]:
            return None
        wide = match[0][0] in _WIDE_ENDS
        if wide or (match[0][0] in "!?" and _WIDE_SCRIPT.match(self.block, end)):
            quoted = end > match.end()
            return None if quoted and _QUOTE_GOES_ON.match(self.block, end) else end
        space = _SPACE.match(self.block, end)
        if space is None:
            return None
        following = self._following(space.end())
        if not following or (following.islower() and self.cased):
            return None
        if match[0] == "." and self._abbreviated(match.start(), start, space.end(), following):
            return None
        return end

    def _following(self, position: int) -> str:
        """The first letter, digit or object after opening quotes and brackets."""
        for character in self.block[position : position + 8]:
            if character not in _OPENERS and not character.isspace():
                return character
        return ""

    def _abbreviated(self, stop: int, start: int, after: int, following: str) -> bool:
        before = self.block[start:stop] if stop - start < 40 else self.block[stop - 40 : stop]
        word = _word(before)
        lower = word.lower()
        if stop - start < 8 and _LIST_MARK.match(self.block[start : stop + 1]):
            return True
        if word.isdigit():
            ordinal = (
                self.known.ordinals
                and len(word) <= 2
                and before[-len(word) - 1 : -len(word)] != ","
            )
            return ordinal and following.isalpha() and not self._starts_sentence(after)
        if following.isdigit() and lower in self.known.before_numbers:
            return True
        # "z. B.", "т. е.": joined, they may be in a list; each part alone is an initial.
        joined = lower
        rest = before[: len(before) - len(word)]
        while len(joined) < 12 and _SPACED_ABBREVIATION.search(rest) and len(word) <= 2:
            part = _word(rest.rstrip()[:-1])
            joined = f"{part.lower()}.{joined}"
            rest = rest[: rest.rstrip().rfind(part)]
        if joined in _LAST_WORDS:
            return False
        if lower in self.known.before_names or joined in self.known.before_names:
            return True
        initial = len(word) == 1 and word.isalpha() and word.isupper()
        acronym = bool(re.fullmatch(r"(?:\w\.-?)+\w", word))
        company = lower in {"inc", "ltd", "corp", "co", "bros", "jr", "cia", "ltda"}
        if initial or acronym or company:
            return not self._starts_sentence(after)
        return False

    def _starts_sentence(self, position: int) -> bool:
        """Whether the word here often begins a sentence; another initial does not."""
        found = _NEXT_WORD.match(self.block, position)
        return found is not None and found[1].lower() in self.known.starters


def _word(text: str) -> str:
    found = _WORD_BEFORE.search(text)
    return found[0] if found else ""


def _inside_brackets(block: str) -> bytearray:
    """For each offset, whether it lies inside a short pair of brackets; linear in the text."""
    # Quotation marks are brackets where the script has no spaces; elsewhere speech is split.
    pairs = _BRACKETS | (_WIDE_QUOTES if _WIDE_SCRIPT.search(block) else {})
    inside = bytearray(len(block) + 1)
    expected: list[tuple[str, int]] = []
    for index, character in enumerate(block):
        if character in pairs:
            expected.append((pairs[character], index))
        elif expected and character == expected[-1][0]:
            start = expected.pop()[1]
            if not expected and index - start <= _LONGEST_BRACKET:
                inside[start + 1 : index + 1] = b"\1" * (index - start)
    return inside
