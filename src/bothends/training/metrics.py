"""The task's own metric of a validation, with the signature without which it means nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bothends.errors import BothendsError


@dataclass(frozen=True)
class Score:
    """A number, higher is better, and how it was computed."""

    value: float
    signature: str


def task_metric(
    name: str, tokenizer: str, hypotheses: Sequence[str], references: Sequence[str]
) -> Score:
    """The metric `bleu`, `chrf`, `rouge` (ROUGE-L) or `exact` of a whole test set, in percent."""
    if name == "exact":
        pairs = zip(hypotheses, references, strict=True)
        same = sum(hypothesis == reference for hypothesis, reference in pairs)
        return Score(100.0 * same / max(1, len(references)), "exact match of whole lines")
    try:
        if name == "rouge":
            from importlib.metadata import version

            from rouge_score.rouge_scorer import RougeScorer

            scorer = RougeScorer(["rougeL"], use_stemmer=True)
            pairs = zip(references, hypotheses, strict=True)
            f = [scorer.score(reference, text)["rougeL"].fmeasure for reference, text in pairs]
            mean = 100.0 * sum(f) / max(1, len(f))
            return Score(mean, f"rougeL|F1|stemmer|rouge-score {version('rouge-score')}")
        from sacrebleu.metrics import BLEU, CHRF

        try:
            metric = BLEU(tokenize=tokenizer) if name == "bleu" else CHRF()
        except (KeyError, ValueError, AssertionError, RuntimeError, ImportError) as error:
            raise BothendsError(
                f"validation.tokenizer: sacreBLEU cannot use {tokenizer!r} ({error})"
            ) from None
        result = metric.corpus_score(list(hypotheses), [list(references)])
        return Score(float(result.score), str(metric.get_signature()))
    except ModuleNotFoundError as error:
        raise BothendsError(
            f"validation.metric {name} needs the package {error.name}: pip install 'bothends[eval]'"
        ) from None
