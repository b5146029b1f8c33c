"""OTEM, lower is better: how much of a text is said too often (Yang et al. 2018, "Otem&Utem").

An n-gram is over-translated as often as the hypothesis has it beyond the reference. One that the
reference does not have at all may stand once, because that is a wrong word and not a repeated one:

    over(g) = max(0, count(g in hypothesis) - max(1, count(g in reference)))
    p_n     = sum of over(g) / sum of count(g in hypothesis)     over n-grams g, over all sentences
    OTEM    = LP * (p_1 * ... * p_N)^(1/N),     LP = exp(1 - r/c) if c >= r, else 1

with `c` and `r` the tokens of all hypotheses and references: long output raises the score, by a
factor of at most e. The authors' script reports N = 2, and so does `otem`; with N = 4, `otem4`, the
score of a good system is often 0, because no 4-gram of it is repeated, and no smoothing is applied.
Scores are in percent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bothends.metrics.sums import Metric, Numbers, ratio, token_statistics, word_tokenizer

DEFAULT_ORDER = 2


def otem(tokenizer: str, order: int = DEFAULT_ORDER) -> Metric:
    """OTEM over n-grams of up to `order` words."""

    def count(hypothesis: list[str], reference: list[str]) -> list[float]:
        sizes = range(1, order + 1)
        return [
            len(hypothesis),
            len(reference),
            *(count_over_translated(hypothesis, reference, n) for n in sizes),
            *(max(0, len(hypothesis) - n + 1) for n in sizes),
        ]

    def score(sums: Numbers) -> Numbers:
        length, expected = sums[..., 0], sums[..., 1]
        shares = ratio(sums[..., 2 : 2 + order], sums[..., 2 + order :])  # (..., N)
        penalty = np.exp(np.maximum(0, 1 - ratio(expected, length)))
        mean: Numbers = np.prod(shares, axis=-1) ** (1 / order)
        return 100 * penalty * mean

    return Metric(
        name="otem" if order == DEFAULT_ORDER else f"otem{order}",
        title=f"OTEM-{order}",
        signature=f"OTEM-{order}|tok:{tokenizer}|smooth:none",
        higher_is_better=False,
        statistics=token_statistics(word_tokenizer(tokenizer), count),
        score=score,
    )


def count_over_translated(hypothesis: Sequence[str], reference: Sequence[str], n: int) -> int:
    """The sum of `over(g)` above, over the n-grams of one sentence."""
    expected = _ngrams(reference, n)
    return sum(
        max(0, count - max(1, expected[ngram])) for ngram, count in _ngrams(hypothesis, n).items()
    )


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))
