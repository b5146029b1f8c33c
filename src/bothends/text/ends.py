"""A given beginning and end of a text as tokens, and the text that was written between them.

The given texts are never changed: what comes out begins and ends with exactly the characters that
went in. A token can carry the space before its word, so the two seams need care:

- A prefix that ends in a space is followed by a new word, whose token brings that space.
- After any other prefix both are possible, a new word and the rest of a word. The model may know
  the whole word as one token, so the last tokens are also taken back: then the first token of the
  gap must begin with what they spell.
- A suffix that begins with a space is a new word.
- Any other suffix is cut into tokens in two ways, with a space before it and without. Which of them
  fits is for the model to say; before a full stop it is never the space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bothends.errors import UsageError
from bothends.text.vocabulary import TextVocabulary

#: No space is written before these.
CLOSING = frozenset(".,;:!?)]}%…»”\u2019")


@dataclass(frozen=True)
class Ends:
    """One way to cut the given texts into tokens."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    #: how the first token of the gap must begin, and it must go on; empty: it may be any
    opening: str = ""

    def __len__(self) -> int:
        return len(self.prefix) + len(self.suffix)


class GivenEnds:
    """A prefix and a suffix, each as text or as tokens."""

    def __init__(
        self,
        vocabulary: TextVocabulary,
        prefix: str | Sequence[int] = "",
        suffix: str | Sequence[int] = "",
        *,
        may_overlap: bool = False,
    ) -> None:
        self._vocabulary = vocabulary
        if isinstance(prefix, str):
            self.prefix = prefix
            left = self._encode("prefix", prefix)
        else:
            left = self._check("prefix", prefix)
            self.prefix = self._text(left)
        if isinstance(suffix, str):
            self.suffix = suffix
            rights = self._suffix_tokens(suffix)
        else:
            rights = [self._check("suffix", suffix)]
            opens_word = bool(rights[0]) and bool(vocabulary.starts_word[rights[0][0]])
            self.suffix = " " * opens_word + self._text(rights[0])
        if not may_overlap:
            _check_overlap(self.prefix, self.suffix)
        self._left = left
        beginnings = [(left, "")]
        if isinstance(prefix, str) and prefix[-1:].isalpha():
            beginnings += self._taken_back(left)
        self.ways = tuple(
            Ends(tokens, right, opening) for right in rights for tokens, opening in beginnings
        )
        #: tokens of the given text, the fewest of all ways to cut it
        self.shortest = len(left) + min(map(len, rights))
        #: must the token after the prefix begin a word?
        self.space_follows = bool(left) and self.prefix[-1:].isspace()

    def middle(self, ends: Ends, tokens: Sequence[int]) -> str | None:
        """The text between the given ends in a text of these tokens.

        `prefix + middle + suffix` is then the text. None if the tokens do not join cleanly, such as
        half a character in bytes.
        """
        special = self._vocabulary.special
        gap = tokens[len(ends.prefix) : len(tokens) - len(ends.suffix)]
        if {special.pad, special.unknown, special.start, special.end} & set(gap):
            return None
        whole, left, right = self._vocabulary.decode([tokens, self._left, ends.suffix])
        if not whole.startswith(left) or not whole.endswith(right) or "\ufffd" in whole:
            return None
        if len(left) + len(right) > len(whole):
            return None
        middle = whole[len(left) : len(whole) - len(right)]
        # The spaces at the seams that are the user's own.
        if self.space_follows:
            if not middle.startswith(" "):
                return None
            middle = middle[1:]
        if right and self.suffix[0].isspace() and (middle or self.space_follows):
            if not middle.endswith(" "):
                return None
            middle = middle[:-1]
        return middle

    def _taken_back(self, left: tuple[int, ...]) -> list[tuple[tuple[int, ...], str]]:
        """The prefix without its last token, and without its last word: what must be spelled."""
        word = max(np.flatnonzero(self._vocabulary.starts_word[list(left)]), default=0)
        cuts = dict.fromkeys((len(left) - 1, int(word)))
        return [(left[:cut], "".join(self._vocabulary.pieces(left[cut:]))) for cut in cuts]

    def _suffix_tokens(self, suffix: str) -> list[tuple[int, ...]]:
        after_space = self._encode("suffix", suffix)
        if not after_space or suffix[0].isspace():
            return [after_space]
        inside = tuple(self._vocabulary.encode_inside(suffix))
        if suffix[0] in CLOSING or inside == after_space:
            return [inside]
        return [after_space, inside]

    def _encode(self, name: str, text: str) -> tuple[int, ...]:
        (ids,) = self._vocabulary.encode([text])
        if self._vocabulary.special.unknown in ids:
            for character in text:
                if self._vocabulary.special.unknown in self._vocabulary.encode([character])[0]:
                    raise UsageError(
                        f"{name}: the model's vocabulary has no {character!r} "
                        f"(U+{ord(character):04X}); leave it out"
                    )
        return tuple(ids)

    def _check(self, name: str, tokens: Sequence[int]) -> tuple[int, ...]:
        special = self._vocabulary.special.ids
        for token in tokens:
            if token not in range(self._vocabulary.size) or token in special:
                raise UsageError(f"{name}: {token} is not a token of text in the vocabulary")
        return tuple(int(token) for token in tokens)

    def _text(self, tokens: Sequence[int]) -> str:
        (text,) = self._vocabulary.decode([tokens])
        return text


def _check_overlap(prefix: str, suffix: str) -> None:
    """Complain about words that are given twice.

    A single word may well stand on both sides of a gap ("sehr ... sehr gut"); several in a row are
    the same words of the sentence, and to write them twice is not what anybody means.
    """
    left, right = (
        [re.sub(r"^\W+|\W+$", "", word) for word in text.split()] for text in (prefix, suffix)
    )
    for shared in range(min(len(left), len(right)), 1, -1):
        if left[-shared:] == right[:shared]:
            raise UsageError(
                f"prefix and suffix overlap: both have {' '.join(right[:shared])!r}; "
                "give these words in one of them"
            )
    for name, outer, other, inner in (
        ("prefix", left, "suffix", right),
        ("suffix", right, "prefix", left),
    ):
        places = range(len(outer) - len(inner) + 1)
        if len(inner) > 1 and any(outer[i : i + len(inner)] == inner for i in places):
            raise UsageError(
                f"the {name} contains the whole {other} {' '.join(inner)!r}; "
                "give these words in one of them"
            )
