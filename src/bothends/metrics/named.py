"""The metrics of `bothends evaluate`, by the names that users give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bothends.errors import UsageError, nearest
from bothends.metrics.otem import otem
from bothends.metrics.sums import (
    DEFAULT_TOKENIZER,
    Metric,
    bleu,
    chrf,
    exact,
    percentage,
    rouge,
    token_statistics,
    tokenizer_for,
    word_tokenizer,
)
from bothends.model.bundled import find_model
from bothends.model.directory import read_description
from bothends.text.repeats import LONGEST_REPEAT, remove_repeats


def choose_metrics(names: str, tokenizer: str) -> list[Metric]:
    """The metrics named in `bleu,chrf,...`, each once; `rouge` is all three, `all` is every one."""
    wanted: dict[str, None] = {}
    for word in names.lower().split(","):
        found = _GROUPS.get(word.strip(), (word.strip(),))
        wanted.update(dict.fromkeys(found))
    for name in wanted:
        if name not in _METRICS:
            raise UsageError(f"--metrics: unknown {name!r}; {nearest(name, _METRICS | _GROUPS)}")
    return [_METRICS[name](tokenizer) for name in wanted]


def default_tokenizer(models: Sequence[Path]) -> str:
    """The default tokenizer, by the language that the first model writes."""
    if not models:
        return DEFAULT_TOKENIZER
    return tokenizer_for(read_description(find_model(models[0])).target_language)


def repetition(tokenizer: str) -> Metric:
    """The share of words, in percent, that repeat the 1 to 4 words right before them.

    Those are what `--deduplicate` removes, up to the tokenizer's idea of a word.
    """

    def count(hypothesis: list[str], _reference: list[str]) -> list[float]:
        return [len(hypothesis) - len(remove_repeats(hypothesis)), len(hypothesis)]

    return Metric(
        name="repetition",
        title="repetition %",
        signature=f"immediately repeated n-grams, n to {LONGEST_REPEAT}|tok:{tokenizer}",
        higher_is_better=False,
        statistics=token_statistics(word_tokenizer(tokenizer), count),
        score=percentage,
    )


def length_ratio(tokenizer: str) -> Metric:
    """Words of the hypotheses for 100 words of the references: neither more nor fewer is better."""
    return Metric(
        name="length",
        title="length %",
        signature=f"words of hypotheses / words of references|tok:{tokenizer}",
        higher_is_better=None,
        statistics=token_statistics(
            word_tokenizer(tokenizer), lambda found, expected: [len(found), len(expected)]
        ),
        score=percentage,
    )


_METRICS: dict[str, Callable[[str], Metric]] = {
    "bleu": bleu,
    "chrf": lambda tokenizer: chrf(),
    "rouge1": lambda tokenizer: rouge("1"),
    "rouge2": lambda tokenizer: rouge("2"),
    "rougel": lambda tokenizer: rouge("L"),
    "otem": otem,
    "otem4": lambda tokenizer: otem(tokenizer, order=4),
    "repetition": repetition,
    "length": length_ratio,
    "exact": lambda tokenizer: exact(),
}
_GROUPS = {"rouge": ("rouge1", "rouge2", "rougel"), "all": tuple(_METRICS)}
