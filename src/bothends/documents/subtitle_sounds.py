"""Sounds in subtitles: [door closes], (laughs), [whispering].

The brackets tell that nobody says the words. A model that is given them in a sentence drops them,
or takes the sound for a part of what is said. So a sound is opaque in its sentence, and its words
are translated alone.
"""

# Marks of other scripts look like ours to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bothends.documents.pieces import Atom, Piece

_SOUND = re.compile(
    r"(?<!\w)(?:\[(?P<square>[^\[\]<>{}]{1,200})\]|\((?P<round>[^()\[\]<>{}]{1,200})\)):?(?!\w)"
)
#: What stands before a sentence, and not in it.
_BEFORE_SENTENCE = re.compile(r"(?:^|[.!?…:♪♫\])\"'”’»])(?:\s|<[^<>]*>|\{[^{}]*\})*$")
#: Characters that are looked back for it.
_LOOK_BACK = 100


class Sounds:
    """The sounds of a file, each of which is asked for once."""

    def __init__(self) -> None:
        #: what there is to translate
        self.words: list[str] = []
        #: of a sound with its brackets, the number of its words
        self._numbers: dict[str, int] = {}

    def cut(self, speech: str) -> Iterator[str | Atom]:
        """The sounds of a speech, and what is between them.

        Round brackets inside a sentence are likely to be said: "Come (if you can) at six."
        """
        cursor = 0
        for match in _SOUND.finditer(speech):
            before = speech[max(0, match.start() - _LOOK_BACK) : match.start()]
            if match["round"] is not None and not _BEFORE_SENTENCE.search(before):
                continue
            yield speech[cursor : match.start()]
            yield Atom(match[0], "void")
            cursor = match.end()
            if match[0] not in self._numbers:
                self._numbers[match[0]] = len(self.words)
                self.words.append(match["square"] or match["round"])
        yield speech[cursor:]

    def replaced(self, pieces: Sequence[Piece], translations: Sequence[str]) -> list[Piece]:
        """The pieces with the sounds as these translations of all words have them."""
        return [
            self._translated(piece, translations) if isinstance(piece, Atom) else piece
            for piece in pieces
        ]

    def _translated(self, atom: Atom, translations: Sequence[str]) -> Atom:
        number = self._numbers.get(atom.raw)
        if number is None or not translations[number].strip():
            return atom
        raw = atom.raw
        return Atom(f"{raw[0]}{translations[number]}{raw[len(self.words[number]) + 1 :]}", "void")
