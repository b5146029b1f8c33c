"""Which pairs of a distilled corpus are dropped. By default none: line N stays line N.

A teacher's mistakes are of a few kinds that need no reference to be seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from pydantic import Field

from bothends.distillation.shard_file import Record
from bothends.storage.schemas import Strict
from bothends.text.repeats import remove_repeats

Reason = Literal["empty", "too_long", "repetition", "low_score"]

_WORD = re.compile(r"\w+")


class PairFilters(Strict):
    """The filters, each off unless it is asked for."""

    #: leave out pairs whose source or translation is empty
    drop_empty: bool = False
    #: most tokens of a translation for each token of its source
    max_ratio: float | None = Field(None, gt=0)
    #: leave out translations that repeat themselves where their source does not
    drop_repetitions: bool = False
    #: least log probability per token, end symbol included
    min_score: float | None = Field(None, le=0)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why pairs may be left out, in the order in which they are checked."""
        active: dict[Reason, bool] = {
            "empty": self.drop_empty,
            "too_long": self.max_ratio is not None,
            "repetition": self.drop_repetitions,
            "low_score": self.min_score is not None,
        }
        return tuple(reason for reason, on in active.items() if on)

    def refuse(self, source: str, record: Record) -> Reason | None:
        """The first reason to leave out a pair, or None."""
        checks: dict[Reason, Callable[[], bool]] = {
            "empty": lambda: not source.strip() or not record.text.strip(),
            "too_long": lambda: record.tokens > (self.max_ratio or 0) * record.source_tokens,
            "repetition": lambda: repeated_words(record.text) > repeated_words(source),
            "low_score": lambda: record.score is not None and record.score < (self.min_score or 0),
        }
        return next((reason for reason in self.reasons if checks[reason]()), None)


def repeated_words(text: str) -> int:
    """Words that, alone or as a phrase of up to four, repeat the words right before them.

    Words are runs of letters and digits: punctuation between them does not hide a repetition.
    """
    words = _WORD.findall(text.lower())
    return len(words) - len(remove_repeats(words))
