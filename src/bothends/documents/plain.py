"""Plain text: paragraphs, blank lines, list marks and indentation come back as they were.

Lines that were wrapped are one paragraph, whose sentences run over line breaks; the breaks come
back in proportion. Lines that stand for themselves (lists, addresses, verse) stay lines. What
stands between tabs is the cell of a table, and stands for itself, too.
"""

# Marks of other scripts look like ours to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

import re

from bothends.documents.flows import FlowTranslator
from bothends.documents.options import DocumentOptions, DocumentReport
from bothends.documents.pieces import Atom, Flow, New, Piece, Text
from bothends.text.sentences import holds_several, split_sentences
from bothends.text.units import FRACTIONS, RAISED

#: The time of a message in a chat, with a date or without.
_TIME = (
    r"(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4},?[^\S\n]+)?\d{1,2}:\d{2}(?::\d{2})?"
    r"(?:[^\S\n]?[AaPp]\.?[Mm]\b\.?)?"
)
_NAME = r"(?:[\w.+-]+(?:[^\S\n][\w.+-]+){0,2}:[^\S\n]+)?"
#: Indentation, quote marks, the mark of a list item, and when a message was said by whom:
#: `[12:01] Ann: `, `31/12/2025, 12:01 - Ann: `, `12:01 <ann> `.
_PREFIX = re.compile(
    r"[^\S\n]*(?:[>|][^\S\n]?)*[^\S\n]*"
    r"(?:(?:[-=*~_+]{2,}|[-*+•◦‣·–—]|\(?\d{1,3}[.)]|\(?[A-Za-z][)])"
    r"(?:[^\S\n]+(?:\[[ xX]\][^\S\n]+)?|$))?"
    rf"(?:[\[(]{_TIME}[\])][^\S\n]+(?:-[^\S\n]+)?{_NAME}|{_TIME}[^\S\n]+-[^\S\n]+{_NAME}"
    rf"|{_TIME}[^\S\n]+)?"
    r"(?:<[@+]?[\w.-]{1,40}>[^\S\n]+)?"
)
#: A rule after a title on its line: --- Day changed ---
_RULE_AFTER = re.compile(r"(?<=\S)[^\S\n]+[-=*~_]{2,}$")
#: A line shorter than this was not wrapped where the next word would not have fitted.
_SHORTEST_WRAPPED = 40


#: To patterns, fractions and raised digits are letters.
_LETTERS = rf"[^\W\d_{FRACTIONS}{RAISED}]+"
#: Letters with single spaces, commas, hyphens and apostrophes between them, one mark at the end.
_ONE_SENTENCE = re.compile(rf"{_LETTERS}(?:(?:,? |['’-]){_LETTERS})*[.!?]?")


def is_one_sentence(text: str) -> bool:
    """Whether a text is a sentence without anything to protect or to lay out.

    Most messages are. They need none of what is done for paragraphs, which takes longer than
    anything else that a server does for them.
    """
    return _ONE_SENTENCE.fullmatch(text) is not None and text[0].isalpha()


def needs_no_reading(text: str, options: DocumentOptions) -> bool:
    """Whether a text is one sentence, and the options leave it as it is."""
    return (
        options.glossary is None
        and options.splitter is split_sentences
        and is_one_sentence(text)
        and options.writing.of(text) == text
        and not (options.unknown_words and options.unknown_words(text))
        and (options.max_length is None or options.length(text) <= options.max_length)
    )


def translate_plain(text: str, translator: FlowTranslator) -> str:
    """Translate the paragraphs of a text."""
    parts = _paragraphs(text)
    flows = [part for part in parts if not isinstance(part, str)]
    translated = iter(translator.translate(flows))
    return "".join(
        part if isinstance(part, str) else write_text(next(translated)) for part in parts
    )


def translate_lines(
    text: str, translator: FlowTranslator, options: DocumentOptions, report: DocumentReport
) -> str:
    """Translate line by line; a line in is a line out."""
    lines = re.split(r"(\r?\n)", text)
    flows: list[Flow] = [
        _cells(line) if options.split_lines else [Text(line, line)] for line in lines[::2]
    ]
    report.lines_of_several_sentences += sum(
        holds_several(line, options.language) for line in lines[::2]
    )
    translated = translator.translate(flows, whole=not options.split_lines)
    lines[::2] = [write_text(pieces).replace("\n", " ") for pieces in translated]
    return "".join(lines)


def write_text(pieces: list[Piece]) -> str:
    """Pieces of plain text as they are."""
    return "".join(piece.text if isinstance(piece, New) else piece.raw for piece in pieces)


def _paragraphs(text: str) -> list[str | Flow]:
    """Literal parts and flows; a flow is a line, or the lines of a wrapped paragraph."""
    lines = re.split(r"(?<=\n)", text)
    parts: list[str | Flow] = []
    index = 0
    while index < len(lines):
        first = index
        index += 1
        while index < len(lines) and _goes_on(lines[index - 1], lines[index], index - 1 == first):
            index += 1
        prefix, body, end = _dissect(lines[first])
        parts.append(prefix)
        flow: list[Piece] = []
        for number in range(first, index):
            if number > first:
                indent, body, end = _dissect(lines[number], plain=True)
                flow.append(Text(indent, indent))
            flow += _cells(body)
            if number < index - 1:  # the break is part of the text: white space inside a sentence
                flow.append(Text(end, end))
        parts += [flow, end]
    return parts


def _cells(text: str) -> Flow:
    """What stands between tabs; a tab ends a sentence."""
    pieces: list[Piece] = []
    for number, part in enumerate(re.split(r"(\t+)", text)):
        if part:
            pieces.append(Atom(part, "break") if number % 2 else Text(part, part))
    return pieces


def _dissect(line: str, plain: bool = False) -> tuple[str, str, str]:
    """Prefix, text, and the line's end with the white space before it."""
    stripped = line.rstrip()
    match = re.match(r"\s*", stripped) if plain else _PREFIX.match(stripped)
    cut = match.end() if match else 0
    rule = None if plain else _RULE_AFTER.search(stripped, cut)
    end = rule.start() if rule else len(stripped)
    return stripped[:cut], stripped[cut:end], line[end:]


def _goes_on(line: str, following: str, first: bool) -> bool:
    """Whether a line was wrapped, so that its sentence goes on in the following one."""
    _, body, _ = _dissect(line, plain=not first)
    prefix, text, _ = _dissect(following)
    if not body or not text or prefix.strip() or line.lstrip().startswith((">", "|")):
        return False
    if "\t" in body + text:  # rows of a table
        return False
    # Its next word would not have fitted; a sentence goes on in small letters, at any width.
    return len(line.rstrip()) >= _SHORTEST_WRAPPED or (
        text[:1].islower() and body[-1:] not in ".!?:;"
    )
