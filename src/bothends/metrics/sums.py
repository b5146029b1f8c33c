"""Quality of a text against its reference, as a function of sums over sentences.

Every metric here is two steps: `statistics` are a few numbers for each sentence, and `score` turns
their sum over a test set into the metric. The sums of any other selection of sentences give its
score without looking at the text again: that is what makes a bootstrap cheap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bothends.errors import BothendsError, UsageError, nearest
from bothends.text.languages import short_code

Numbers = NDArray[np.float64]
Tokenize = Callable[[str], list[str]]

DEFAULT_TOKENIZER = "13a"
#: Languages without spaces, or with so few that sacreBLEU has tokenizers of their own for them.
_TOKENIZERS = {"ja": "ja-mecab", "ko": "ko-mecab", "zh": "zh"}

#: n-grams of characters that chrF counts: sacreBLEU's defaults, as is beta.
_CHRF_ORDER, _CHRF_BETA = 6, 2


@dataclass(frozen=True)
class Metric:
    """One metric, ready to be computed; `signature` says how, without which it means nothing."""

    name: str
    title: str
    signature: str
    higher_is_better: bool | None  # None: neither, the reference is what to match
    statistics: Callable[[Sequence[str], Sequence[str]], Numbers]  # hypotheses, references: (S, K)
    score: Callable[[Numbers], Numbers]  # sums (..., K) -> (...)

    def of(self, hypotheses: Sequence[str], references: Sequence[str]) -> float:
        """The score of a whole test set."""
        return float(self.score(self.statistics(hypotheses, references).sum(axis=0)))


def bleu(tokenizer: str = DEFAULT_TOKENIZER) -> Metric:
    """BLEU of sacreBLEU, with one of its tokenizers."""
    metric = _sacrebleu_bleu(tokenizer)
    # Counts of a sentence are public in the result of `sentence_score`, and the same under either
    # setting; without this one, sacreBLEU warns about sentence scores that nobody looks at.
    metric.effective_order = True
    orders = int(metric.max_ngram_order)

    def count(hypothesis: str, reference: str) -> list[float]:
        found = metric.sentence_score(hypothesis, [reference])
        return [found.sys_len, found.ref_len, *found.counts, *found.totals]

    def of_sums(sums: Numbers) -> float:
        # sacreBLEU wants whole numbers, which these are.
        length, expected, *counts = sums.astype(int).tolist()
        found = metric.compute_bleu(
            counts[:orders], counts[orders:], length, expected, smooth_method=metric.smooth_method
        )
        return float(found.score)

    return Metric(
        name="bleu",
        title="BLEU",
        signature=_signature(_sacrebleu_bleu(tokenizer)),
        higher_is_better=True,
        statistics=partial(_by_sentence, count),
        score=lambda sums: np.apply_along_axis(of_sums, -1, sums),
    )


def chrf() -> Metric:
    """chrF2 as sacreBLEU defines it; counted here, because it does not give its counts away.

    F_2 of the precision and the recall of n-grams of characters (no spaces), each averaged over
    those n for which hypotheses and references have any.
    """
    try:
        from sacrebleu.metrics import CHRF
    except ImportError as error:
        raise missing_package("chrF", error) from None

    def count(hypothesis: str, reference: str) -> list[float]:
        theirs, ours = ("".join(text.split()) for text in (reference, hypothesis))
        counts: list[float] = []
        for n in range(1, _CHRF_ORDER + 1):
            expected, found = _ngrams(theirs, n), _ngrams(ours, n)
            # A reference too short to have n-grams says nothing about those of the hypothesis.
            total = found.total() if expected else 0
            counts += [total, expected.total(), (found & expected).total()]
        return counts

    def score(sums: Numbers) -> Numbers:
        # (..., 3 * n) -> (..., n) three times
        found, expected, matched = (sums[..., kind::3] for kind in range(3))
        usable = ((found > 0) & (expected > 0)).sum(axis=-1)
        precision = ratio(ratio(matched, found).sum(axis=-1), usable)
        recall = ratio(ratio(matched, expected).sum(axis=-1), usable)
        factor = _CHRF_BETA**2
        return 100 * ratio((1 + factor) * precision * recall, factor * precision + recall)

    return Metric(
        name="chrf",
        title="chrF",
        signature=_signature(CHRF(char_order=_CHRF_ORDER, word_order=0, beta=_CHRF_BETA)),
        higher_is_better=True,
        statistics=partial(_by_sentence, count),
        score=score,
    )


def rouge(kind: Literal["1", "2", "L"]) -> Metric:
    """F1 of ROUGE-1, ROUGE-2 or ROUGE-L by `rouge-score`, the mean over sentences, in percent.

    Its words are runs of a to z and 0 to 9 in lower case, stemmed: it is a metric for English.
    """
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise missing_package("ROUGE", error) from None
    scorer = RougeScorer([f"rouge{kind}"], use_stemmer=True)

    def count(hypothesis: str, reference: str) -> list[float]:
        return [scorer.score(reference, hypothesis)[f"rouge{kind}"].fmeasure, 1]

    return Metric(
        name=f"rouge{kind}",
        title=f"ROUGE-{kind}",
        signature=f"rouge{kind}|F1|stemmer|rouge-score {version('rouge-score')}",
        higher_is_better=True,
        statistics=partial(_by_sentence, count),
        score=percentage,
    )


def exact() -> Metric:
    """The share of lines that equal their reference, in percent."""
    return Metric(
        name="exact",
        title="exact",
        signature="exact match of whole lines",
        higher_is_better=True,
        statistics=partial(_by_sentence, lambda hypothesis, text: [hypothesis == text, 1]),
        score=percentage,
    )


def tokenizer_for(language: str | None) -> str:
    """The tokenizer of sacreBLEU for a language such as `ja`, `zh_CN` or `zho_Hans`."""
    return _TOKENIZERS.get(short_code(language or ""), DEFAULT_TOKENIZER)


def word_tokenizer(name: str) -> Tokenize:
    """The words that BLEU counts with this tokenizer of sacreBLEU."""
    tokenize = _sacrebleu_bleu(name).tokenizer
    return lambda line: str(tokenize(line.rstrip())).split()


def token_statistics(
    tokenize: Tokenize, count: Callable[[list[str], list[str]], Sequence[float]]
) -> Callable[[Sequence[str], Sequence[str]], Numbers]:
    """The `statistics` of a metric that counts words."""
    return partial(
        _by_sentence, lambda hypothesis, text: count(tokenize(hypothesis), tokenize(text))
    )


def ratio(numerator: Numbers, denominator: Numbers) -> Numbers:
    """Element by element; 0 where the denominator is 0."""
    return np.divide(
        numerator,
        denominator,
        out=np.zeros(np.broadcast(numerator, denominator).shape),
        where=np.asarray(denominator) > 0,
    )


def percentage(sums: Numbers) -> Numbers:
    """The score of statistics that are a part and its whole."""
    return 100 * ratio(sums[..., 0], sums[..., 1])


def missing_package(wanted: str, error: ImportError) -> BothendsError:
    return BothendsError(f"{wanted} needs the package {error.name}: pip install 'bothends[eval]'")


def _by_sentence(
    count: Callable[[str, str], Sequence[float]],
    hypotheses: Sequence[str],
    references: Sequence[str],
) -> Numbers:
    pairs = zip(hypotheses, references, strict=True)
    return np.array([count(hypothesis, reference) for hypothesis, reference in pairs], np.float64)


def _ngrams(text: str, n: int) -> Counter[str]:
    return Counter(text[start : start + n] for start in range(len(text) - n + 1))


def _sacrebleu_bleu(tokenizer: str) -> Any:
    try:
        from sacrebleu.metrics import BLEU
    except ImportError as error:
        raise missing_package("BLEU", error) from None
    if tokenizer not in BLEU.TOKENIZERS:
        hint = nearest(tokenizer, BLEU.TOKENIZERS)
        raise UsageError(f"sacreBLEU has no tokenizer {tokenizer!r}; {hint}")
    try:
        return BLEU(tokenize=tokenizer)
    except (RuntimeError, ImportError, OSError, AssertionError) as error:
        # Its message spans lines: a tokenizer that wants packages or a download of its own.
        reason = " ".join(str(error).split())
        raise BothendsError(f"sacreBLEU cannot use its tokenizer {tokenizer}: {reason}") from None


def _signature(metric: Any) -> str:
    """sacreBLEU's own; it learns the number of references only when it scores."""
    metric.corpus_score([""], [[""]])
    return str(metric.get_signature())
