"""What to translate with, and what a line becomes: the values that go into a translator and out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bothends.search.options import SearchOptions, check_whole_number

#: A batch's rows share each reading of the weights; with more rows than this makes, their own state
#: no longer stays in a core's cache, and a sentence takes longer, not shorter.
BATCH_TOKENS = 512


@dataclass(frozen=True)
class TranslationOptions:
    """How lines are translated. Searching is described at `SearchOptions`."""

    beam: int = 4
    length_penalty: float = 0.6
    normalisation: Literal["google", "mean"] = "google"
    #: hypotheses to return for each line, at most `beam`
    n_best: int = 1
    min_length: int = 0
    #: tokens of a translation; by default, twice the line's tokens and 20 more
    max_length: int | None = None
    #: remove words and phrases that immediately repeat
    deduplicate: bool = False
    #: tokens of a line that are translated; what comes after them is cut off
    max_source_length: int = 512
    #: source tokens of a batch, padding included
    batch_tokens: int = BATCH_TOKENS

    def __post_init__(self) -> None:
        for name, least in {"min_length": 0, "max_source_length": 1, "batch_tokens": 1}.items():
            check_whole_number(name, getattr(self, name), least)
        self.search  # noqa: B018  (checks the rest)

    @property
    def search(self) -> SearchOptions:
        """What the search needs to know. The limit of each sentence is given to it separately."""
        return SearchOptions(
            beam=self.beam,
            length_penalty=self.length_penalty,
            normalisation=self.normalisation,
            n_best=self.n_best,
            min_length=self.min_length,
            max_length=self.longest(self.max_source_length),
        )

    def longest(self, source_length: int) -> int:
        """The most tokens that a translation of so many source tokens may have."""
        if self.max_length is not None:
            return self.max_length
        return max(2 * source_length + 20, self.min_length)


@dataclass(frozen=True)
class Translation:
    """One line's translation, the best or an alternative. An empty line has an empty one."""

    text: str
    #: `logprob` after length normalisation: what hypotheses are ranked by
    score: float
    #: log probability of exactly these tokens, and of the end symbol if `finished`, given the line;
    #: repeated words that were removed still count
    logprob: float
    #: ids in the target vocabulary, in text order, without the end symbol
    tokens: tuple[int, ...]
    #: the same as the vocabulary spells them, `▁` for a space
    pieces: tuple[str, ...]
    #: decoder steps that it took
    steps: int
    #: False: cut at the length limit, without an end symbol
    finished: bool
    #: True: the line was longer than `max_source_length`, and its end was not translated
    truncated: bool
    #: seconds that its batch took
    time: float
    #: the next best ones, if `n_best` asked for more than one
    alternatives: tuple[Translation, ...] = ()


#: The translation of an empty line, for which no network is asked.
EMPTY = Translation(
    text="",
    score=0.0,
    logprob=0.0,
    tokens=(),
    pieces=(),
    steps=0,
    finished=True,
    truncated=False,
    time=0.0,
)
