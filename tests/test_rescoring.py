"""A second model that ranks hypotheses: the sums of both models' scores, in every engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bothends.cli import run
from bothends.engines.torch import TorchEngine
from bothends.errors import UsageError
from bothends.order import GenerationOrder
from bothends.search.scoring import force_scores, force_scores_of_each
from bothends.text.vocabulary import SpecialTokens
from bothends.translating.translation import TranslationOptions
from bothends.translator import Translator
from command_line import error_line
from conftest import MakeModel, random_source
from tiny_model import sentences, tiny_model

LINES = sentences(30, seed=21)


@pytest.mark.parametrize("order", ["1x1", "2x1", "2x2", "4x1"])
def test_several_targets_of_a_source_that_is_read_once(
    order: str, make_model: MakeModel, random: np.random.Generator
) -> None:
    engine, parsed = TorchEngine(make_model(order)), GenerationOrder.parse(order)
    source = random_source(random, 2, 6, 23, padded=True)
    targets = [[[5, 6, 7], [8], []], [[9, 10, 11, 12, 13]]]
    first, second = force_scores_of_each(engine, parsed, SpecialTokens(), source, targets)
    every = [target for some in targets for target in some]
    expected = force_scores(engine, parsed, SpecialTokens(), source[[0, 0, 0, 1]], every)
    assert [one.logprob for one in [*first, *second]] == pytest.approx(
        [one.logprob for one in expected]
    )
    assert [one.length for one in first] == [3, 1, 0]


@pytest.mark.parametrize(
    ("precision", "engine"), [("float32", "onnx"), ("int8", "onnx"), ("int8", "native")]
)
def test_hypotheses_are_ranked_by_both_models(precision: str, engine: str) -> None:
    if engine == "native":
        pytest.importorskip("bothends.engines.native._native")
    fast, exact = (
        Translator.load(tiny_model(order, precision), threads=2, engine=engine)  # type: ignore[arg-type]
        for order in ("2x1", "1x1")
    )
    options = TranslationOptions(beam=4, n_best=4, deduplicate=False)
    alone = fast.translate(LINES, options)
    with fast.rescored_by(exact) as both:
        found = both.translate(LINES, options)
        assert both.translate(LINES[3], beam=4, deduplicate=False).text == found[3].text
        streamed = both.stream(LINES, deduplicate=False)
        assert [each.text for each in streamed] == [each.text for each in found]
    # int8: batches of other shapes round in other ways
    tolerance = 1e-3 if precision == "float32" else 0.1
    moved = 0
    for line, before, after in zip(LINES, alone, found, strict=True):
        assert {each.text for each in before.hypotheses} == {each.text for each in after.hypotheses}
        theirs = exact.score([line] * 4, [each.tokens for each in after.hypotheses][:4])
        for each, score in zip(after.hypotheses, theirs, strict=False):
            mean = (each.logprob + score.logprob) / 2
            assert each.score == pytest.approx(options.score(mean, len(each.tokens)), abs=tolerance)
        scores = [each.score for each in after.hypotheses]
        assert scores == sorted(scores, reverse=True)
        moved += before.text != after.text
    assert moved  # it has a say


def test_a_model_with_another_vocabulary_reads_the_text(tmp_path: Path) -> None:
    fast, other = (Translator.load(tiny_model(order), threads=1) for order in ("2x1", "1x1"))
    known = fast.rescored_by(other).translate(LINES[:6], beam=3)

    class Renamed:
        """The same vocabulary under another name, so that texts are cut into tokens anew."""

        model = b"another"

        def __getattr__(self, name: str) -> object:
            return getattr(other.vocabularies.target, name)

    renamed = Renamed()
    object.__setattr__(other._model, "vocabularies", type(other.vocabularies)(renamed, renamed))  # type: ignore[arg-type]
    again = fast.rescored_by(other).translate(LINES[:6], beam=3)
    assert [each.text for each in again] == [each.text for each in known]


@pytest.mark.parametrize(
    ("theirs", "wrong"),
    [
        (("en", "de"), "target language is 'de' .* target language is 'pt'"),
        (("fr", "pt"), "source language is 'fr' .* source language is 'en'"),
        (("en_GB", "pt-BR"), None),
        ((None, "pt"), None),
    ],
)
def test_a_model_of_other_languages_does_not_rank(
    theirs: tuple[str | None, str], wrong: str | None
) -> None:
    fast, other = (Translator.load(tiny_model(order), threads=1) for order in ("2x1", "1x1"))
    for each, (source, target) in ((fast, ("en", "pt")), (other, theirs)):
        each.description = replace(each.description, source_language=source, target_language=target)
    if wrong is None:
        fast.rescored_by(other)
        return
    with pytest.raises(UsageError, match=wrong):
        fast.rescored_by(other)


def test_a_name_does_not_rank() -> None:
    with pytest.raises(TypeError, match=r"expected a Translator, .* not str"):
        Translator.load(tiny_model("2x1"), threads=1).rescored_by("1x1")  # type: ignore[arg-type]


def test_the_command(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join(LINES[:5]) + "\n", "utf-8")
    models = ["--model", str(tiny_model("2x1")), "--rescore", str(tiny_model("1x1"))]
    assert run(["translate", str(text), *models]) == 0
    written = capsysbinary.readouterr().out.decode().splitlines()
    with Translator.load(tiny_model("2x1"), threads=1) as fast:
        expected = fast.rescored_by(Translator.load(tiny_model("1x1"), threads=1))
        assert written == [each.text for each in expected.translate(LINES[:5])]


def test_greedy_search_leaves_nothing_to_rank(capsys: pytest.CaptureFixture[str]) -> None:
    status, line = error_line(["translate", "--rescore", "x", "--beam", "1"], capsys)
    assert status == 2
    assert "--rescore chooses between the hypotheses of a beam" in line
