"""Metrics against the libraries that define them, against figures worked by hand, and resampled."""

from __future__ import annotations

import sys
from math import exp, prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from bothends.errors import BothendsError, UsageError
from bothends.evaluation.evaluate import System, evaluate
from bothends.metrics.named import choose_metrics
from bothends.metrics.otem import count_over_translated
from bothends.metrics.significance import Interval, compare, resample
from bothends.metrics.sums import Metric, bleu, chrf, rouge, tokenizer_for

TEXT = st.lists(st.sampled_from(["a", "b", "cat", "dog,", "é.", "日本語"]), max_size=7).map(
    " ".join
)
PAIRS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5)


def metric(name: str, tokenizer: str = "none") -> Metric:
    (found,) = choose_metrics(name, tokenizer)
    return found


@settings(max_examples=40)
@given(PAIRS)
def test_sums_of_statistics_give_sacrebleus_scores(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = ([pair[side] for pair in pairs] for side in range(2))
    for ours, theirs in ((bleu("13a"), BLEU()), (bleu("char"), BLEU(tokenize="char"))):
        expected = theirs.corpus_score(hypotheses, [references]).score
        assert ours.of(hypotheses, references) == expected
        assert ours.signature == str(theirs.get_signature())
    expected = CHRF().corpus_score(hypotheses, [references]).score
    # Sums in another order: rounding in the last digits.
    assert chrf().of(hypotheses, references) == pytest.approx(expected, abs=1e-9)


def test_rouge_by_hand() -> None:
    # Words: 3 of 4 and 3 of 6, so F1 = 0.6. Pairs: `the cat` of 3 and of 5, so F1 = 0.25. The
    # longest common subsequence is `the cat mat`. The empty line counts as 0.
    lines = ["the cat on mat", ""], ["the cat sat by a mat", "words"]
    assert rouge("1").of(*lines) == pytest.approx(30)
    assert rouge("2").of(*lines) == pytest.approx(12.5)
    assert rouge("L").of(*lines) == pytest.approx(30)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "n", "over"),
    [
        ("the cat", "the cat", 1, 0),
        ("the the cat", "the cat", 1, 1),  # beyond the reference's one
        ("the the cat", "the the the cat", 1, 0),  # fewer than the reference's
        ("dog", "cat", 1, 0),  # wrong, but said once
        ("dog dog dog", "cat", 1, 2),  # wrong, and said twice too often
        ("a b a b a b", "a b", 2, 3),  # `a b` 3 times instead of 1; `b a` 2 times instead of 0
        ("a b", "", 1, 0),
        ("", "a b", 1, 0),
        ("a", "a", 2, 0),  # too short for a pair
    ],
)
def test_over_translated_ngrams(hypothesis: str, reference: str, n: int, over: int) -> None:
    assert count_over_translated(hypothesis.split(), reference.split(), n) == over


def test_otem_by_hand() -> None:
    # Sentence 1: words 6, 4 of them too many; pairs 5, 3 too many. Sentence 2: words 2, pairs 1,
    # none too many. Together 4/8 and 3/6, with 8 words against 4.
    hypotheses, references = ["a b a b a b", "c d"], ["a b", "c d"]
    assert metric("otem").of(hypotheses, references) == pytest.approx(
        100 * exp(1 - 4 / 8) * sqrt(4 / 8 * 3 / 6)
    )
    # Triples: `a b a` and `b a b`, 2 each, 1 too many each, of 4. Fours: `a b a b` 2 of 3, 1.
    assert metric("otem4").of(hypotheses, references) == pytest.approx(
        100 * exp(1 - 4 / 8) * (4 / 8 * 3 / 6 * 2 / 4 * 1 / 3) ** (1 / 4)
    )


def test_short_output_is_not_rewarded_by_otem() -> None:
    # 3 words against 6: no penalty, and none below 1. Words: 2 of 3 too many; pairs: 1 of 2.
    assert metric("otem").of(["a a a"], ["a b c d e f"]) == pytest.approx(100 * sqrt(2 / 3 * 1 / 2))


def test_repetition_and_length() -> None:
    hypotheses, references = ["the the cat sat down sat down", "", "a b a"], ["one two", "x", "y z"]
    # Removed: `the`, `sat down`; `a b a` repeats nothing that is right before it.
    assert metric("repetition").of(hypotheses, references) == pytest.approx(100 * 3 / 10)
    assert metric("length").of(hypotheses, references) == pytest.approx(100 * 10 / 5)
    assert metric("exact").of(["a", "", "b"], ["a", "", "c"]) == pytest.approx(100 * 2 / 3)


@pytest.mark.parametrize("each", choose_metrics("all", "13a"), ids=lambda each: each.name)
def test_empty_lines_are_scored(each: Metric) -> None:
    perfect = {"exact": 100}.get(each.name, 0)
    assert each.of(["", ""], ["", ""]) == perfect
    statistics = each.statistics(["", "a b"], ["a b", "a b"])
    assert len(statistics) == 2
    assert np.isfinite(each.score(resample(statistics, 20, seed=0))).all()


def test_names_of_metrics() -> None:
    names = [each.name for each in choose_metrics("BLEU, rouge,rougeL", "13a")]
    assert names == ["bleu", "rouge1", "rouge2", "rougeL"]
    with pytest.raises(UsageError, match="unknown 'blue'; did you mean bleu"):
        choose_metrics("chrf,blue", "13a")
    with pytest.raises(UsageError, match="no tokenizer '13b'; did you mean 13a"):
        choose_metrics("bleu", "13b")


def test_a_text_with_several_references_is_drawn_as_one() -> None:
    said = ["a b c d", "a x c d", "e f g h i", "q"]
    right = ["a b c d", "a b c d", "e f g h j", "r s"]
    sources = ["1", "2", "3", "4"]

    def intervals(times: int, texts: bool) -> list[Interval | None]:
        lines, references, repeated = (
            [line for line in lines for _ in range(times)] for lines in (said, right, sources)
        )
        metrics = choose_metrics("chrf,length", "13a")
        systems = [System("", "", lines)]
        found = evaluate(systems, "", references, metrics, 200, 0, repeated if texts else None)
        assert (found.lines, found.texts) == (4 * times, 4 if texts else 4 * times)
        return [figure.interval for figure in found.results[0].figures.values()]

    assert intervals(3, texts=True) == intervals(1, texts=False)
    assert intervals(3, texts=False) != intervals(1, texts=False)


def test_japanese_is_split_by_its_own_tokenizer() -> None:
    assert [tokenizer_for(name) for name in ("jpn_Jpan", "zh_CN", "de", None)] == [
        "ja-mecab", "zh", "13a", "13a"
    ]  # fmt: skip
    # Seven words of which the third is wrong, where 13a sees one word, and that wrong.
    said, right = ["私は猫が好きです。"], ["私は犬が好きです。"]
    precisions = [6 / 7, 4 / 6, 2 / 5, 1 / 4]
    assert bleu("ja-mecab").of(said, right) == pytest.approx(100 * prod(precisions) ** 0.25)
    assert "tok:ja-mecab" in bleu("ja-mecab").signature
    assert bleu("13a").of(said, right) == 0


def test_resampling_draws_whole_sentences_and_follows_its_seed() -> None:
    statistics = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    sums = resample(statistics, 200, seed=1)
    assert (sums[:, 1] == 10 * sums[:, 0]).all()  # both columns of the same sentences
    assert (sums == resample(statistics, 200, seed=1)).all()
    assert (sums != resample(statistics, 200, seed=2)).any()
    assert sums[:, 0].min() >= 3
    assert sums[:, 0].max() <= 12


def test_interval_of_a_mean_is_what_theory_says() -> None:
    values = np.random.default_rng(0).normal(5, 2, size=400)
    interval = Interval.of(resample(values[:, None], 4000, seed=0)[:, 0] / 400)
    error = 1.96 * values.std() / sqrt(400)
    # 4,000 samples give a quantile to about 3% of the error's size; three times that.
    assert interval.low == pytest.approx(values.mean() - error, abs=0.1 * error)
    assert interval.high == pytest.approx(values.mean() + error, abs=0.1 * error)


@pytest.mark.parametrize(
    ("difference", "differences", "p"),
    [
        (1.0, [1.0] * 99, 2 * 1 / 100),
        (-1.0, [-1.0] * 99, 2 * 1 / 100),
        (1.0, [1.0] * 94 + [-0.5] * 4 + [0.0], 2 * 6 / 100),  # a tie is not a win
        (0.0, [0.0] * 99, 1.0),  # a system against itself
    ],
)
def test_p_value(difference: float, differences: list[float], p: float) -> None:
    assert compare(difference, np.array(differences)).p == pytest.approx(p)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sacrebleu", "sacrebleu.metrics", "rouge_score", "rouge_score.rouge_scorer"):
        monkeypatch.setitem(sys.modules, module, None)
    for name in ("bleu", "chrf", "rouge1", "otem"):
        with pytest.raises(BothendsError, match=r"pip install 'bothends\[eval\]'"):
            choose_metrics(name, "13a")
