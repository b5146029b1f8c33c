"""Options of a search: how many hypotheses, how long, and how they are ranked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

from bothends.errors import UsageError, nearest

NORMALISATIONS = ("google", "mean")
#: The exported graphs compute each row's attention over the entries of all rows of its sentence, so
#: memory grows with the square of the beam and with the length: 0.4 GB here for a sentence of 16
#: tokens and a small model, and as much for every other sentence of the batch.
MAX_BEAM = 256
#: Tokens that a target can be forced to have: some tens of seconds for a sentence.
LONGEST_MINIMUM = 2048
#: Tokens that a target may be allowed to have: none has as many, and engines count in 32 bits.
LONGEST_MAXIMUM = 1_000_000_000
#: Powers of a length that a float still holds. Useful ones are below 2.
LARGEST_LENGTH_PENALTY = 50


def check_whole_number(name: str, value: object, least: int) -> None:
    """Complain about an option that is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise UsageError(f"{name} must be a whole number from {least} on, not {value!r}")


@dataclass(frozen=True)
class SearchOptions:
    """What to search for. Lengths are in tokens of text: the end symbol is not counted."""

    #: hypotheses kept per sentence; 1 is greedy search
    beam: int = 4
    #: 0 prefers short targets, see `score`
    length_penalty: float = 0.6
    #: how a logprob becomes a score, see `score`
    normalisation: Literal["google", "mean"] = "google"
    #: hypotheses returned per sentence, at most `beam`
    n_best: int = 1
    min_length: int = 0
    #: None: twice the source's tokens and 20 more, see `limit`
    max_length: int | None = None

    def __post_init__(self) -> None:
        for name, least in {"beam": 1, "n_best": 1, "min_length": 0}.items():
            check_whole_number(name, getattr(self, name), least)
        if self.max_length is not None:
            check_whole_number("max_length", self.max_length, 1)
        if self.min_length > LONGEST_MINIMUM:
            raise UsageError(
                f"min_length {self.min_length}: at most {LONGEST_MINIMUM}; every target would have "
                "to be as long, and the time that takes grows with the square"
            )
        if self.max_length is not None and self.max_length > LONGEST_MAXIMUM:
            raise UsageError(f"max_length {self.max_length}: at most {LONGEST_MAXIMUM}")
        if self.beam > MAX_BEAM:
            raise UsageError(f"beam {self.beam}: at most {MAX_BEAM}, or memory would run out")
        if self.n_best > self.beam:
            raise UsageError(
                f"n_best must not exceed the beam: {self.n_best} hypotheses were asked of a beam "
                f"of {self.beam}; widen the beam or ask for fewer"
            )
        if self.max_length is not None and self.min_length > self.max_length:
            raise UsageError(
                f"min_length {self.min_length} is greater than max_length {self.max_length}"
            )
        penalty = self.length_penalty
        if not isinstance(penalty, Real) or not 0 <= penalty < math.inf:
            raise UsageError(f"length_penalty must be 0 or more, not {penalty!r}")
        if penalty > LARGEST_LENGTH_PENALTY:
            raise UsageError(f"length_penalty {penalty:g}: at most {LARGEST_LENGTH_PENALTY}")
        if self.normalisation not in NORMALISATIONS:
            raise UsageError(
                f"unknown normalisation {self.normalisation!r}; "
                + nearest(self.normalisation, NORMALISATIONS)
            )

    def limit(self, source_length: int) -> int:
        """The most tokens that the target of a source with this many tokens may have."""
        if self.max_length is not None:
            return self.max_length
        return max(2 * source_length + 20, self.min_length)

    def score(self, logprob: float, length: int) -> float:
        """A logprob normalised by the number of text tokens; the end symbol is not counted.

        `google` divides by `((5 + length) / 6) ** length_penalty` (Wu et al. 2016), `mean` by the
        length, where the empty text counts as one token.
        """
        if self.normalisation == "mean":
            return logprob / max(length, 1)
        norm: float = ((5 + length) / 6) ** self.length_penalty
        return logprob / norm
