"""The task's own metric of a validation, with the signature without which it means nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bothends import metrics


@dataclass(frozen=True)
class Score:
    """A number, higher is better, and how it was computed."""

    value: float
    signature: str


def task_metric(
    name: str, tokenizer: str, hypotheses: Sequence[str], references: Sequence[str]
) -> Score:
    """The metric `bleu`, `chrf`, `rouge` (ROUGE-L) or `exact` of a whole test set, in percent."""
    metric = {
        "bleu": lambda: metrics.bleu(tokenizer),
        "chrf": metrics.chrf,
        "rouge": lambda: metrics.rouge("L"),
        "exact": metrics.exact,
    }[name]()
    return Score(metric.of(hypotheses, references), metric.signature)
