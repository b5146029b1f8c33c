"""Subtitles (SRT, WebVTT): numbers, times and the lines of a cue stay; what is said is translated.

The lines of a cue are one text, since a sentence often runs over both; a dash, >> or a name in
capitals begins another speaker's line, and a line in brackets or of a song stands for itself.
Sounds in brackets keep these and their place (`subtitle_sounds`). Formatting tags and positions
stay around their words. In WebVTT an empty line ends a cue: names of cues, notes, styles and
regions come after it, and stay.
"""

# Marks of other scripts look like ours to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape, unescape

from bothends.documents.flows import FlowTranslator
from bothends.documents.pieces import Atom, Close, Flow, New, Open, Piece, Text
from bothends.documents.subtitle_sounds import Sounds

_TIME = r"\d{1,3}:\d{2}:\d{2}[,.]\d{1,3}"
#: The head of a cue: its number, if there is one, and its times.
_HEAD = re.compile(rf"(?:[^\S\n]*\d+[^\S\n]*\r?\n)?[^\S\n]*{_TIME}\s*-->\s*{_TIME}[^\n]*(?:\n|$)")
_WEB_TIME = r"(?:\d{2,}:)?\d{2}:\d{2}\.\d{3}"
_WEB_HEAD = re.compile(
    rf"^[^\S\n]*{_WEB_TIME}[^\S\n]*-->[^\S\n]*{_WEB_TIME}[^\n]*(?:\n|\Z)", re.MULTILINE
)
_EMPTY_LINE = re.compile(r"^\r?$", re.MULTILINE)
_MARKUP = re.compile(r"(</?(?:b|i|u|s|font)(?:\s[^<>\n]*)?>|\{[^{}\n]*\})", re.IGNORECASE)
#: Also voices, classes, and the time at which a word is said: <v Ann>, <c.red>, <00:01.000>
_WEB_MARKUP = re.compile(r"(<[^<>\n]*>)")
_TAG_NAME = re.compile(r"</?([A-Za-z]+)")
_ENTITY = re.compile(r"(&(?:[A-Za-z]+|#\d+|#[xX][0-9A-Fa-f]+);)")
_TAGS = r"(?:<[^<>\n]*>|\{[^{}\n]*\})*"
_MARK = r"(?:[-–—]|>{2,3}|(?:&gt;){2,3})[^\S\n]*"
#: Who speaks, perhaps how: ANN: or ANN (shouting):
_NAME = r"[A-Z][A-Z0-9 .'-]{0,30}(?::[^\S\n]+|(?<= )(?=[\[(][^\[\]()<>{}\n]{1,40}[\])]:[^\S\n]))"
#: A dash or >>, and the name of who speaks in capitals, perhaps in italics or at another position.
_SPEAKER = re.compile(rf"(?:{_TAGS}(?:{_MARK}(?:{_NAME})?|{_NAME}))?")
#: A line that tells a sound: [DOOR OPENS]
_SOUND = re.compile(r"[\[(][^\])\n]*[\])]")
#: A line of a song, perhaps in italics.
_SONG = re.compile(rf"{_TAGS}[♪♫]")


def translate_subtitles(text: str, translator: FlowTranslator, web: bool = False) -> str:
    """Translate the text of each cue, in SRT or WebVTT. What is before the first cue stays."""
    parts: list[str | Flow] = []
    sounds = Sounds()
    cursor = 0
    heads = [*(_WEB_HEAD if web else _HEAD).finditer(text)]
    for index, head in enumerate(heads):
        end = heads[index + 1].start() if index + 1 < len(heads) else len(text)
        empty = _EMPTY_LINE.search(text, head.end(), end) if web else None
        end = empty.start() if empty else end
        parts.append(text[cursor : head.end()])
        parts += _cue(text[head.end() : end], web, sounds)
        cursor = end
    parts.append(text[cursor:])
    flows = [part for part in parts if not isinstance(part, str)]
    inside = [_spelled(words, web) for words in sounds.words]
    translated = translator.translate([*flows, *inside])
    heard = [_write(pieces, web) for pieces in translated[len(flows) :]]
    said = [_write(sounds.replaced(pieces, heard), web) for pieces in translated[: len(flows)]]
    written = iter(said)
    return "".join(part if isinstance(part, str) else next(written) for part in parts)


def _cue(text: str, web: bool, sounds: Sounds) -> list[str | Flow]:
    body = text.rstrip()
    parts: list[str | Flow] = []
    for number, speech in enumerate(_speeches(body)):
        if number % 2:
            parts.append(speech)
            continue
        mark = _SPEAKER.match(speech)
        begin = mark.end() if mark else 0
        parts += [speech[:begin], _flow(speech[begin:], web, sounds)]
    return [*parts, text[len(body) :]]


def _speeches(body: str) -> list[str]:
    """What is said by each, with the line breaks between them."""
    first, *rest = re.split(r"(\r?\n)", body)
    speeches = [first]
    for end, line in zip(rest[::2], rest[1::2], strict=True):
        before = speeches[-1].rpartition("\n")[2]
        marked = _SPEAKER.match(line)
        alone = _SOUND.fullmatch(line) or _SOUND.fullmatch(before) or _SONG.match(line)
        if (marked and marked[0]) or alone:
            speeches += [end, line]
        else:
            speeches[-1] += end + line
    return speeches


def _flow(text: str, web: bool, sounds: Sounds) -> Flow:
    """Sounds are opaque, and so are tags that are not closed in the same speech."""
    pieces: list[Piece] = []
    opened: list[tuple[int, str]] = []
    for part, is_markup in _parts(text, web, sounds):
        if isinstance(part, Atom):
            pieces.append(part)
            continue
        if not is_markup:
            pieces += _spelled(part, web)
            continue
        found = _TAG_NAME.match(part)
        name = found[1].lower() if found else ""
        if part.startswith("</") and any(name == known for _, known in opened):
            while opened[-1][1] != name:
                index, _ = opened.pop()
                pieces[index] = Atom(pieces[index].raw, "void")  # type: ignore[union-attr]
            opened.pop()
            pieces.append(Close(part))
        elif name and not part.startswith("</"):
            opened.append((len(pieces), name))
            pieces.append(Open(part))
        else:
            pieces.append(Atom(part, "void"))
    for index, _ in opened:
        pieces[index] = Atom(pieces[index].raw, "void")  # type: ignore[union-attr]
    return pieces


def _parts(text: str, web: bool, sounds: Sounds) -> Iterator[tuple[str | Atom, bool]]:
    """Sounds, and what is between them: text, and markup (True)."""
    for part in sounds.cut(text):
        if isinstance(part, Atom):
            yield part, False
            continue
        for number, each in enumerate((_WEB_MARKUP if web else _MARKUP).split(part)):
            if each:
                yield each, number % 2 == 1


def _spelled(text: str, web: bool) -> list[Piece]:
    """Text, in which `&amp;` stands for a character in WebVTT."""
    if not web:
        return [Text(text, text)]
    return [Text(unescape(part), part) for part in _ENTITY.split(text) if part]


def _write(pieces: list[Piece], web: bool) -> str:
    """A translator's text cannot end a cue: it holds no empty line, and no arrow of times."""

    def spell(text: str) -> str:
        return escape(text, quote=False) if web else text.replace("-->", "→")

    return "".join(spell(piece.text) if isinstance(piece, New) else piece.raw for piece in pieces)
