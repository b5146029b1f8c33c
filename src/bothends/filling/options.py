"""What is asked of a filling, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from bothends.errors import UsageError
from bothends.search.options import (
    LONGEST_MINIMUM,
    MAX_BEAM,
    SearchOptions,
    check_whole_number,
)
from bothends.text.arguments import check_names
from bothends.text.words import bare_word


@dataclass(frozen=True)
class FillOptions:
    """How to fill a gap. Words are counted in the whole text, given ends included.

    Attributes:
        n_best: Fillings to return.
        beam: Beam size for each length of the gap.
        length_penalty: How much longer texts are preferred.
        words: Exact number of words; if the model finds no such text, the nearest number.
        length: Exact number of tokens.
        min_words: Minimum number of words.
        max_words: Maximum number of words.
        include: Words or phrases that must be in the gap, spelled exactly so.
        exclude: Words that must not be in the gap, in any capitalisation.
        max_length: Maximum number of tokens; by default twice the source's and 20 more.
    """

    n_best: int = 1
    beam: int = SearchOptions.beam
    length_penalty: float = SearchOptions.length_penalty
    words: int | None = None
    length: int | None = None
    min_words: int = 0
    max_words: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_length: int | None = None

    def __post_init__(self) -> None:
        check_whole_number("n_best", self.n_best, 1)
        if self.n_best > MAX_BEAM:
            raise UsageError(f"n_best {self.n_best}: at most {MAX_BEAM}")
        check_whole_number("beam", self.beam, 1)
        check_whole_number("min_words", self.min_words, 0)
        for name in ("words", "length", "max_words", "max_length"):
            if getattr(self, name) is not None:
                check_whole_number(name, getattr(self, name), 1)
        if self.max_words is not None and self.min_words > self.max_words:
            raise UsageError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        if self.words is not None and (self.min_words or self.max_words is not None):
            raise UsageError("words is an exact number: leave out min_words and max_words")
        if self.length is not None and self.length > LONGEST_MINIMUM:
            raise UsageError(f"length {self.length}: at most {LONGEST_MINIMUM}")
        if self.length is not None and self.length > (self.max_length or self.length):
            raise UsageError(f"length {self.length} is more than max_length {self.max_length}")
        for name in ("include", "exclude"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} takes a list of words")
            object.__setattr__(self, name, tuple(getattr(self, name)))
            for word in getattr(self, name):
                if not word.strip():
                    raise UsageError(f"{name}: an empty word")
        for word in self.exclude:
            if len(word.split()) > 1:
                raise UsageError(f"exclude: {word!r} is more than one word")
            if not bare_word(word):
                raise UsageError(f"exclude: {word!r} is no word, it has no letters or digits")
        excluded = set(map(bare_word, self.exclude))
        for phrase in self.include:
            if both := excluded.intersection(map(bare_word, phrase.split())):
                raise UsageError(f"{min(both)!r} cannot be both included and excluded")
        self.search  # noqa: B018 (checks the rest)

    @classmethod
    def build(cls, n_best: int, others: Mapping[str, Any]) -> FillOptions:
        """Options from keyword arguments. An unknown name is a TypeError."""
        check_names("filling", others, (field.name for field in fields(cls)))
        return cls(n_best=n_best, **others)

    @property
    def fewest_words(self) -> int:
        """The least number of words that is allowed."""
        return self.words or self.min_words

    @property
    def most_words(self) -> int | None:
        """The largest number of words that is allowed; None: any."""
        return self.words or self.max_words

    @property
    def search(self) -> SearchOptions:
        """Options of the search for each length of the gap."""
        # Some results say the same in other tokens, so as many as the beam are kept.
        beam = max(self.beam, self.n_best)
        return SearchOptions(beam=beam, n_best=beam, length_penalty=self.length_penalty)


@dataclass(frozen=True)
class Filling:
    """A text with the given beginning and end, character by character.

    Attributes:
        text: `prefix + middle + suffix`.
        prefix: The given beginning.
        suffix: The given end.
        middle: What was written between them, with its spaces.
        score: `logprob` after length normalisation: fillings are ranked by it.
        logprob: Log probability of the whole text and its end symbol, given the source.
        tokens: Ids in the target vocabulary, in text order, without the end symbol.
        pieces: The same tokens as the vocabulary spells them, `▁` for a space.
        gap: The first token of the gap and the first after it.
        steps: Decoder steps for a text of this length.
        words: Words of `text`.
    """

    text: str
    prefix: str
    middle: str
    suffix: str
    score: float
    logprob: float
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    gap: tuple[int, int]
    steps: int

    @property
    def words(self) -> int:
        return len(self.text.split())
