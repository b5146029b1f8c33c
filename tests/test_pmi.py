"""Perplexity and mutual information: worked by hand, and the command as users run it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bothends import GenerationOrder, Translator
from bothends.cli import run
from bothends.errors import BothendsError
from bothends.evaluation.analyses.pmi import ScoredModel, analyse
from bothends.search.scoring import ForcedScore, corpus_perplexity
from command_line import error_line
from tiny_model import sentences, tiny_model


def model(order: str, *logprobs: float) -> ScoredModel:
    """Targets of one token each, with these logprobs; the end symbol is certain."""
    scores = [ForcedScore([logprob], 0.0) for logprob in logprobs]
    return ScoredModel.of(order, GenerationOrder.parse(order), scores)


@pytest.mark.parametrize(
    ("order", "alone"),
    [
        ("1x2", "1x1"),
        ("1x4", "1x1"),
        ("1x2+vanilla-mask", "1x1"),
        ("2x1", "2x1+autoregressive"),
        ("2x2", "2x1+autoregressive"),
        ("2x1+vanilla-positions", "2x1+vanilla-positions+autoregressive"),
    ],
)
def test_every_order_has_one_that_writes_in_turn(order: str, alone: str) -> None:
    assert str(GenerationOrder.parse(order).one_at_a_time) == alone
    assert str(GenerationOrder.parse(alone).one_at_a_time) == alone


def test_the_estimate_is_a_difference_of_log_perplexities() -> None:
    # 4 symbols each: 2 tokens and 2 ends
    analysis = analyse(
        [model("1x1", -1.0, -3.0), model("1x2", -2.0, -4.0), model("2x1", -1.0, -1.0)], samples=0
    )
    assert [each.log_perplexity for each in analysis.perplexities] == [1.0, 1.5, 0.5]
    assert analysis.perplexities[1].perplexity == pytest.approx(math.exp(1.5))
    (estimate,) = analysis.estimates  # 2x1 has nothing to be compared with
    assert (estimate.parallel, estimate.in_turn) == ("1x2", "1x1")
    assert estimate.nats == pytest.approx(0.5)
    assert estimate.pmi is None


def test_intervals_are_of_paired_samples() -> None:
    # Sentences differ much, but one model is always 0.4 below the other: 0.2 a symbol.
    logprobs = [-float(number) for number in range(20)]
    pair = [model("2x1+autoregressive", *logprobs), model("2x1", *(x - 0.4 for x in logprobs))]
    analysis = analyse(pair, samples=200)
    (estimate,) = analysis.estimates
    assert estimate.direction == "both ends"
    assert estimate.pmi is not None
    interval = estimate.pmi.interval
    assert (interval.low, estimate.nats, interval.high) == pytest.approx((0.2, 0.2, 0.2))
    spread = analysis.perplexities[0].interval
    assert spread is not None
    assert spread.high > 2 * spread.low


def test_models_of_different_vocabularies_are_refused() -> None:
    scores = [ForcedScore([-1.0], 0.0), ForcedScore([-1.0, -1.0], 0.0)]
    other = ScoredModel.of("other", GenerationOrder.parse("1x2"), scores)
    message = "other and 1x1 have different vocabularies.*: target 2 is 3 symbols .* and 2 for"
    with pytest.raises(BothendsError, match=message):
        analyse([model("1x1", -1.0, -1.0), other], samples=0)
    # Those that make no estimate stand side by side.
    assert not analyse([model("2x1", -1.0, -1.0), other], samples=0).estimates


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name in ("source", "target"):
        text = "".join(f"{line}\n" for line in sentences(12, seed=3))
        Path(name).write_text(text, encoding="utf-8")
    return ["--source", "source", "--target", "target"]


@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_models_are_compared(
    files: list[str], capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    directories = [str(tiny_model(order)) for order in ("1x1", "2x1")]
    options = ["--engine", engine, "--bootstrap", "50", "--json", "x.json"]
    assert run(["analyse", "pmi", "--model", *directories, *files, *options]) == 0
    printed = capsys.readouterr().out
    assert "Perplexity of 12 targets" in printed
    assert "No PMI: it takes 1x2 and 1x1" in printed
    report = json.loads(Path("x.json").read_text())
    lines = sentences(12, seed=3)
    for directory, found in zip(directories, report["perplexities"], strict=True):
        expected = corpus_perplexity(Translator.load(directory).score(lines, lines))
        # the engines agree to single precision
        assert found["perplexity"] == pytest.approx(expected, rel=1e-4)


def test_mistakes_are_one_line(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("target").write_text("one line\n")
    _, message = error_line(["analyse", "pmi", "--model", "nowhere", *files], capsys)
    assert message.startswith("target has 1 lines, but source has 12")
