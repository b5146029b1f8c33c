"""Stand-ins for spans that a model must copy, and whether it did.

Which strings a model copies depends on its data, so the style is a value. A style makes a name for
each span of a sentence and finds names again in a translation. A span counts as found only if its
name is there exactly once; whoever masks must have another way for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

#: A letter or digit that would make a name part of a longer word; Chinese, Japanese, Korean and
#: Thai write words without spaces between them.
_LETTER = "[^\\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"


def is_letter(character: str) -> bool:
    """Whether a name beside this character would be part of a longer word."""
    return re.match(_LETTER, character) is not None


@dataclass(frozen=True)
class PlaceholderStyle:
    """Names are `before`, a number, `after`; numbers begin at `first`."""

    name: str
    before: str
    after: str = ""
    first: int = 1

    def make(self, number: int) -> str:
        return f"{self.before}{self.first + number}{self.after}"

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # Models put spaces inside and change the case of letters; neither makes it another name.
        # Not inside a word or a longer number: X1 is not in MAX12.
        before, after = (r"\s?".join(map(re.escape, text)) for text in (self.before, self.after))
        parts = [rf"(?<!{_LETTER})(?<!\d[.,])", before, r"\s?" if before else "", r"(\d+)"]
        parts += [r"\s?" if after else "", after, rf"(?!{_LETTER})(?![.,]\d)"]
        return re.compile("".join(parts), re.IGNORECASE)

    def numbers(self, text: str, count: int) -> list[int] | None:
        """`count` numbers whose names are not in the text yet; None if it is full of names."""
        taken = {int(match[1]) - self.first for match in self._pattern.finditer(text)}
        free = [number for number in range(count + len(taken)) if number not in taken]
        return free[:count] if len(taken) < 100 else None

    def find(self, text: str, numbers: Sequence[int]) -> list[tuple[int, int, int]] | None:
        """Start, end and index into `numbers` of each name; None unless each is there once."""
        index_of = {number: index for index, number in enumerate(numbers)}
        found = []
        for match in self._pattern.finditer(text):
            index = index_of.get(int(match[1]) - self.first) if len(match[1]) < 9 else None
            if index is not None:
                found.append((match.start(), match.end(), index))
        return (
            found if sorted(index for _, _, index in found) == list(range(len(numbers))) else None
        )


#: X1, X2: words of most vocabularies, with a number that tells them apart
NUMBERED_LETTER = PlaceholderStyle("letter", "X")
#: 7310, 7311: bare numbers, which models of plain text copy best
NUMBER = PlaceholderStyle("number", "", first=7310)
#: <1>, <2>: for models trained with tags
ANGLE = PlaceholderStyle("angle", "<", ">")
#: {1}, {2}: for models trained on software texts
BRACE = PlaceholderStyle("brace", "{", "}")

STYLES = {style.name: style for style in (NUMBERED_LETTER, NUMBER, ANGLE, BRACE)}
