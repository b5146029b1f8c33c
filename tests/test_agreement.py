"""Contrastive agreement: hand-worked subjects and intervals, and the command as users run it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import pytest

from bothends import Translator
from bothends.cli import run
from bothends.evaluation.analyses.agreement import (
    Accuracies,
    Accuracy,
    bin_of,
    judge,
    make_pairs,
    tally,
    wilson,
)
from bothends.evaluation.analyses.subject import lowercase_words, subject_distance
from bothends.search.scoring import ForcedScore
from command_line import error_line
from tiny_model import sentences, tiny_model

#: Words that begin one sentence below and stand in the middle of another.
LOWERCASE = lowercase_words([["nachts", "gestern", "dann", "schnell"]])


@pytest.mark.parametrize(
    ("sentence", "distance"),
    [
        ("Die Straße hat|haben Bewunderer.", 1),
        ("Die Ergebnisse der Umfrage werden|wird überraschen.", 3),
        ("Transaktionen mit Aktien des Unternehmens erreichten|erreichte die Hälfte.", 5),
        ("Der Schub der Wellen ist|sind groß.", 3),
        # after the verb
        ("Nachts sind|ist die Erscheinungen schlimm.", 2),
        ("Mit dem Fernrohr hat|haben man viel gesehen.", 1),
        # clauses
        ("Er sagte, die ganze Familie sei|seien besorgt.", 1),
        ("Das Haus, das 1903 gebaut wurde|wurden, steht.", 3),
        ("Einige Personen, die schon bezahlt hatten, kamen|kam nicht.", 5),
        ("Meine Schmerzen sind groß und ich trage|tragen sie.", 1),
        # an article that stands alone
        ("Er meint, dass einige ihre Hände hoben|hob", 3),
        # a plural needs a plural subject
        ("Das Angebot und die Preise waren|war gut.", 1),
        ("Gestern kam|kamen", None),
    ],
)
def test_the_subject_is_found(sentence: str, distance: int | None) -> None:
    correct = [word.split("|")[0] for word in sentence.split()]
    incorrect = [_wrong(word) for word in sentence.split()]
    assert subject_distance(correct, incorrect, LOWERCASE) == distance


def _wrong(word: str) -> str:
    """`kam|kamen,` is `kamen,`: the punctuation stands after both."""
    return word.split("|")[-1]


def test_pairs_that_differ_otherwise_have_no_distance() -> None:
    assert subject_distance(["Er", "ist", "da"], ["Er", "sind"], LOWERCASE) is None
    assert subject_distance(["Er", "ist", "da"], ["Sie", "sind", "da"], LOWERCASE) is None


def test_wilson_intervals() -> None:
    # 8 of 10, by the formula: centre (0.8 + 0.1921) / 1.3841, spread 0.2268
    interval = wilson(8, 10)
    assert (interval.low, interval.high) == pytest.approx((49.02, 94.33), abs=0.01)
    assert wilson(0, 5).low == 0
    assert wilson(5, 5).high == pytest.approx(100)


def test_accuracy_is_counted_by_distance() -> None:
    labels = ["1", "2", "5", "6-7", "6-7", "8-10", "11-15", "16+", "16+", "unknown"]
    assert [bin_of(each) for each in (1, 2, 5, 6, 7, 10, 11, 16, 99, None)] == labels
    pairs = make_pairs("abcd", "abcd", "abcd", [1, 7, 6, 1])
    result = tally("model", "2x1", pairs, [True, False, True, True])
    assert result.overall == Accuracy("all", 3, 4, wilson(3, 4))
    assert [(each.label, each.right, each.pairs) for each in result.bins] == [
        ("1", 2, 2),
        ("6-7", 1, 2),
    ]
    assert Accuracies.from_json(json.loads(json.dumps(result.as_json()))) == result


def test_equal_probabilities_are_wrong() -> None:
    class Scores:
        """The correct translation, then the wrong one, of each of three pairs."""

        def stream_scores(self, pairs: Iterable[tuple[str, str]]) -> Iterator[ForcedScore]:
            for _, logprob in zip(pairs, (-1.0, -2.0, -1.5, -1.5, -2.0, -1.0), strict=True):
                yield ForcedScore([logprob], 0.0)

    pairs = make_pairs("abc", "abc", "def", [1, 1, 1])
    assert list(judge(cast(Translator, Scores()), pairs)) == [True, False, False]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Copies are what the tiny models learned: they find copies likelier than others' lines."""
    monkeypatch.chdir(tmp_path)
    lines = sentences(20, seed=7)
    for name, content in {
        "source": lines,
        "right": lines,
        "wrong": lines[1:] + lines[:1],
        "distances": [str(1 + number % 3) for number in range(20)],
    }.items():
        Path(name).write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return ["--source", "source", "--correct", "right", "--incorrect", "wrong"]


def test_models_are_compared(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    models = [str(tiny_model(order)) for order in ("1x1", "2x1")]
    options = ["--distances", "distances", "--json", "x.json", "--picture", "x.svg"]
    assert run(["analyse", "agreement", "--model", *models, *files, *options]) == 0
    printed = capsys.readouterr().out
    assert "Agreement, % right" in printed
    assert "guessed" not in printed
    report = json.loads(Path("x.json").read_text())
    assert [system["order"] for system in report["systems"]] == ["1x1", "2x1"]
    for directory, system in zip(models, report["systems"], strict=True):
        translator = Translator.load(directory)
        lines, others = (Path(name).read_text().splitlines() for name in ("right", "wrong"))
        right, wrong = (translator.score(lines, each) for each in (lines, others))
        expected = sum(a.logprob > b.logprob for a, b in zip(right, wrong, strict=True))
        assert system["overall"]["right"] == expected
        assert expected > 10
        assert [each["pairs"] for each in system["bins"]] == [7, 7, 6]
    assert Path("x.svg").read_text().startswith("<?xml")


def test_distances_are_guessed_where_none_are_given(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyse", "agreement", "--model", str(tiny_model("2x1")), *files]) == 0
    assert "Distances are guessed" in capsys.readouterr().out


def test_mistakes_are_one_line(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["analyse", "agreement", "--model", "nowhere", *files]
    same = error_line([*command, "--incorrect", "right"], capsys)
    assert same == (1, "right and right have the same lines: expected a wrong verb in the second")
    Path("distances").write_text("1\n" * 19 + "0\n")
    status, message = error_line([*command, "--distances", "distances"], capsys)
    assert status == 1
    assert message == "distances, line 20: expected a distance from 1 on, not '0'"
    Path("distances").write_text("1\n" * 19 + "9" * 5000 + "\n")
    _, message = error_line([*command, "--distances", "distances"], capsys)
    assert message.startswith("distances, line 20: expected a distance from 1 on, not '999")
    assert len(message) < 100
    Path("wrong").write_text("one line\n")
    assert "wrong has 1 lines, but source has 20" in error_line(command, capsys)[1]
    Path("source").write_text("")
    assert "source: is empty" in error_line(command, capsys)[1]
